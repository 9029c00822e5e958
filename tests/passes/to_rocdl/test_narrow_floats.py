"""Conversions from and to floats below 16 bits, on the simulator, against torch and the formats' own definition."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.dialect.elements import NARROW_FLOATS, round_float
from flydsl.errors import CompileError
from tests.launchers import launcher_of

BLOCK = 256
TORCH = {
    fx.Float8E4M3FN: torch.float8_e4m3fn, fx.Float8E4M3FNUZ: torch.float8_e4m3fnuz, fx.Float8E5M2: torch.float8_e5m2,
    fx.Float8E5M2FNUZ: torch.float8_e5m2fnuz,
}  # fmt: skip
WIDTHS = (0, 1, 3, 8)


def numbers() -> torch.Tensor:
    """f32 of every exponent that matters, every number of the formats, the midpoints between them, and specials."""
    generator = torch.manual_seed(0)
    found = [torch.randn(4096, generator=generator) * torch.exp2(torch.randn(4096, generator=generator) * 6)]
    for dtype in TORCH.values():
        exact = torch.arange(256, dtype=torch.uint8).view(dtype).float()
        exact = exact[exact.isfinite()].unique()
        middle = (exact[1:] + exact[:-1]) / 2
        found += [exact, middle, middle * (1 + 2**-20), middle * (1 - 2**-20)]
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 448, 464, 465, 240, 248, 256, 57344, 61440, 1e38, 1e-38]
    values = torch.cat([*found, torch.tensor(special), -torch.tensor(special)])
    return torch.cat([values, torch.zeros(-values.numel() % BLOCK)])


def convert(x: torch.Tensor, dtype: type[fx.Numeric], width: int, out: torch.Tensor) -> torch.Tensor:
    """Each number converted to `dtype`, as the last one of a vector of `width` elements, or for 0 as a scalar."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.block_idx.x * BLOCK + fx.thread_idx.x
        if width == 0:
            Out[i] = bits(A[i].to(dtype))
        else:
            Out[i] = bits(fx.Vector.from_elements([A[0]] * (width - 1) + [A[i]]).to(dtype)[width - 1])

    launch = launcher_of(kernel, grid=x.numel() // BLOCK, block=BLOCK)
    launch(x, out)
    return out


def bits(value: Any) -> Any:
    """An 8-bit float as its code; other values as they are."""
    return fx.arith.bitcast(fx.Int8, value) if value.dtype.width == 8 else value


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.diagonal(2)
def test_narrowing_is_torchs(dtype: type[fx.Numeric], width: int) -> None:
    x = numbers()
    result = convert(x, dtype, width, torch.zeros(x.numel(), dtype=torch.int8)).view(TORCH[dtype])
    expected = x.to(TORCH[dtype])
    same = (result.view(torch.int8) == expected.view(torch.int8)) | (result.float().isnan() & expected.float().isnan())
    assert same.all(), (x[~same], result.float()[~same], expected.float()[~same])


@pytest.mark.parametrize("dtype", TORCH)
def test_an_f64_is_rounded_once(dtype: type[fx.Numeric]) -> None:
    exact = torch.arange(256, dtype=torch.uint8).view(TORCH[dtype]).double()
    exact = exact[exact.isfinite()].unique()
    middle = (exact[1:] + exact[:-1]) / 2
    beside = [middle * (1 + step) for step in (2.0**-40, -(2.0**-40), 0.0)]
    special = torch.tensor([math.inf, -math.inf, math.nan, 1e300, -1e300], dtype=torch.float64)
    x = torch.cat([exact, *beside, special])
    padded = torch.cat([x, torch.zeros(-x.numel() % BLOCK, dtype=torch.float64)])
    result = convert(padded, dtype, 0, torch.zeros(padded.numel(), dtype=torch.int8)).view(TORCH[dtype]).double()
    rounded = [round_float(dtype.mlir_name, number) for number in x[: -special.numel()].tolist()]
    expected = torch.cat([torch.tensor(rounded, dtype=torch.float64), special.to(TORCH[dtype]).double()])
    result = result[: x.numel()]
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.diagonal(2)
def test_widening_is_torchs(dtype: type[fx.Numeric], width: int) -> None:
    a = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(TORCH[dtype])
    out = convert(a, fx.Float32, width, torch.zeros(BLOCK))
    torch.testing.assert_close(out, a.float(), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(out.signbit() | out.isnan(), a.float().signbit() | out.isnan())


@pytest.mark.parametrize(
    "dtype", [fx.Float6E2M3FN, fx.Float6E3M2FN, fx.Float4E2M1FN, fx.Float8E4M3, fx.Float8E4M3B11FNUZ]
)
def test_formats_that_torch_lacks_round_to_nearest_even(dtype: type[fx.Numeric]) -> None:
    """Compared with MLIR's conversion of constants; what is too large saturates where there is nothing else."""
    limits = NARROW_FLOATS[dtype.mlir_name]
    x = numbers()
    x = x[x.isfinite()]
    x = torch.cat([x, torch.zeros(-x.numel() % BLOCK)])

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.block_idx.x * BLOCK + fx.thread_idx.x
        Out[i] = A[i].to(dtype).to(fx.Float32)

    launch = launcher_of(kernel, grid=x.numel() // BLOCK, block=BLOCK)
    out = torch.zeros(x.numel())
    launch(x, out)
    for number, result in zip(x.tolist(), out.tolist(), strict=True):
        if limits.smallest <= number <= limits.largest:
            assert result == round_float(dtype.mlir_name, number), number
        elif not limits.nan:
            assert result == math.copysign(limits.largest, number), number


def test_scales_are_powers_of_two() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        Out[i] = fx.arith.bitcast(fx.Float8E8M0FNU, A[i]).to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=BLOCK)
    a, out = torch.arange(256, dtype=torch.int16).to(torch.uint8), torch.zeros(BLOCK)
    launch(a.view(torch.int8), out)
    torch.testing.assert_close(out, a.view(torch.float8_e8m0fnu).float(), rtol=0, atol=0, equal_nan=True)


def test_narrowing_to_a_scale_says_that_it_is_not_there() -> None:
    with pytest.raises(CompileError, match="conversion to f8E8M0FNU is unsupported") as caught:
        convert(torch.ones(BLOCK), fx.Float8E8M0FNU, 0, torch.zeros(BLOCK, dtype=torch.int8))
    assert caught.value.at.file == __file__


WIDER = {
    fx.Float64: torch.float64, fx.Float16: torch.float16, fx.BFloat16: torch.bfloat16, fx.Int8: torch.int8,
    fx.Int64: torch.int64,
}  # fmt: skip


@pytest.mark.parametrize("dtype", TORCH)
def test_other_types_go_through_f32(dtype: type[fx.Numeric]) -> None:
    """Canonicalization makes one conversion of two, of scalars and of vectors: there and back again is exact."""
    a = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(TORCH[dtype]).float()
    a = a[(a == a.round()) & (a.abs() < 128)]
    a = torch.cat([a, torch.zeros(BLOCK - a.numel())])

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        for j, wider in enumerate(WIDER):
            value = A[i].to(wider)
            Out[2 * j, i] = value.to(dtype).to(wider).to(fx.Float32)
            pair = fx.Vector.from_elements([value, value]).to(dtype).to(wider)
            Out[2 * j + 1, i] = pair[1].to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=BLOCK)
    out = torch.full((2 * len(WIDER), BLOCK), math.nan)
    launch(a, out)
    assert torch.equal(out, a.expand_as(out))


@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("wider", WIDER)
@pytest.mark.diagonal(2)
def test_narrowing_of_other_types_is_that_of_their_f32(wider: type[fx.Numeric], dtype: type[fx.Numeric]) -> None:
    x = (numbers()[:1024].nan_to_num() * 3).clamp(-120, 120).to(WIDER[wider])
    result = convert(x, dtype, 0, torch.zeros(x.numel(), dtype=torch.int8)).view(TORCH[dtype])
    assert torch.equal(result.float(), x.float().to(TORCH[dtype]).float())


@pytest.mark.parametrize("kind", [fx.Float8E4M3FNUZ, fx.Float8E5M2FNUZ, fx.BFloat16])
def test_launchers_convert_on_the_host(kind: Any) -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor, x: fx.Float32, y: fx.Float32):
        Out[fx.thread_idx.x] = x
        Out[fx.thread_idx.x + 1] = y.to(kind).to(fx.Float32)

    @flyc.jit
    def launch(Out: fx.Tensor, x: fx.Float32):
        kernel(Out, x.to(kind).to(fx.Float32), x).launch(grid=1, block=1)

    out = torch.zeros(2)
    launch(out, 0.7)
    assert out[0] == out[1] != 0
