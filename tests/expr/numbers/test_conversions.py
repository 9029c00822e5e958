"""Conversions between scalar types and of vectors, on the simulator, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, FlyError
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

TYPES = {
    torch.float64: fx.Float64, torch.float32: fx.Float32, torch.float16: fx.Float16, torch.bfloat16: fx.BFloat16,
    torch.int8: fx.Int8, torch.int16: fx.Int16, torch.int32: fx.Int32, torch.int64: fx.Int64,
}  # fmt: skip


@pytest.mark.parametrize("source", TYPES)
def test_every_pair_of_types(elementwise: Callable[..., torch.Tensor], source: torch.dtype) -> None:
    values = [0.0, 1.0, -1.0, 2.5, -3.75, 100.0, -128.0, 127.0, 0.1, 65.0]
    a = torch.tensor(values, dtype=torch.float64).to(source)
    # Through float64, which holds every value here exactly.
    result = elementwise(lambda x, y: [x.to(t).to(fx.Float64) for t in TYPES.values()], a, a, torch.float64)
    for row, target in zip(result, TYPES, strict=True):
        assert row.tolist() == a.to(target).double().tolist(), target


def test_rounding_to_narrow_floats_is_to_nearest_even(elementwise: Callable[..., torch.Tensor]) -> None:
    generator = torch.manual_seed(0)
    a = torch.cat([
        torch.randn(500, generator=generator) * 1000,
        torch.tensor([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 65519.0, 65520.0, 2**-25, 3e-8, torch.inf]),
    ])  # fmt: skip
    half, brain = elementwise(lambda x, y: [x.to(fx.Float16), x.to(fx.BFloat16)], a, a, torch.float32)
    assert torch.equal(half, a.half().float())
    assert torch.equal(brain, a.bfloat16().float())


def test_half_to_bfloat_goes_through_float(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([0.1, 1 / 3, 65504.0, 6e-8, -2.5], dtype=torch.float16)
    (result,) = elementwise(lambda x, y: [x.to(fx.BFloat16)], a, a, torch.bfloat16)
    assert torch.equal(result, a.bfloat16())


def test_unsigned_and_index(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([0, 1, -1, -128, 127], dtype=torch.int8)
    result = elementwise(
        lambda x, y: [
            fx.Uint8(x).to(fx.Int32), fx.Uint8(x).to(fx.Float32), fx.Uint8(x).to(fx.Index), x.to(fx.Index),
            x.to(fx.Boolean), x.to(fx.Int128).to(fx.Int64), fx.Uint8(x).to(fx.Int4), x.to(fx.Index).to(fx.Float64),
        ],
        a, a, torch.int64,
    )  # fmt: skip
    signed, unsigned = a.long(), a.long() & 255
    nibble = (unsigned & 15) - 16 * (unsigned >> 3 & 1)
    expected = [unsigned, unsigned, unsigned, signed, (signed != 0).long(), signed, nibble, signed]
    assert torch.equal(result, torch.stack(expected))


def test_named_casts(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([1.5, -2.75, 1000.0, -0.0])
    arith = fx.arith
    result = elementwise(
        lambda x, y: [
            arith.fptosi(fx.Int32, x), arith.bitcast(fx.Int32, x), arith.sitofp(fx.Float32, arith.fptosi(fx.Int16, x)),
            arith.trunci(fx.Int16, arith.bitcast(x, fx.Int32)), arith.extf(fx.Float64, arith.truncf(fx.Float16, x)),
        ],
        a, a, torch.int64,
    )  # fmt: skip
    bits = a.view(torch.int32).long()
    assert result.tolist() == [
        a.long().tolist(), bits.tolist(), a.long().tolist(), a.view(torch.int32).to(torch.int16).tolist(),
        a.long().tolist(),
    ]  # fmt: skip


def test_vectors(elementwise: Callable[..., torch.Tensor]) -> None:
    a = torch.tensor([3.0, -4.5, 100.25])
    b = torch.tensor([0.5, 2.0, -1.0])

    def function(x: Any, y: Any) -> list[Any]:
        v = fx.Vector.from_elements([x, y, x + y, 7], fx.Float32)
        w = (v * 2 - y).to(fx.Int32)
        low = v.bitcast(fx.Int16)
        chosen = (v > 1).select(v, 0.0)
        position = (x > 0).select(fx.Int32(2), fx.Int32(3))
        return [v[position], w[0], w[-1], low[1], chosen[0], chosen[1], (-v)[2], *fx.Vector.filled([2], y, fx.Float32)]

    result = elementwise(function, a, b, torch.float32)
    high = (a.view(torch.int32) >> 16).float()
    expected = [
        torch.where(a > 0, a + b, 7.0), (a * 2 - b).trunc(), (14 - b).trunc(), high, torch.where(a > 1, a, 0.0),
        torch.where(b > 1, b, 0.0), -(a + b), b, b,
    ]  # fmt: skip
    assert torch.equal(result, torch.stack(expected))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda v: v + fx.Vector.filled([2], 1, fx.Int32), "types differ"),
        (lambda v: v.bitcast(fx.Index), "bitcast"),
        (lambda v: fx.Vector.filled([3], 1, fx.Int8).bitcast(fx.Int16), "not a multiple"),
        (lambda v: fx.Vector.filled([0], 1, fx.Int8), "the extents of a vector"),
        (lambda v: fx.Vector.from_elements([]), "list of scalars"),
        (lambda v: (v > 0).select(fx.Vector.filled([2], 1, fx.Int32), 0), "different shapes"),
        (lambda v: v[4], "element 4"),
        (lambda v: v[1.0], "position in a vector"),
        (lambda v: v.to("f32"), "not a scalar type"),
        (lambda v: fx.Vector(v[0].ir_value()), "needs a vector value"),
    ],
)
def test_vector_errors(trace: Callable[..., Any], use: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        trace(lambda A, Out: use(fx.Vector.filled([4], Out[0], fx.Int32)))
    assert caught.value.at.file == __file__


def test_narrow_floats_as_parameters() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor, b: fx.BFloat16, h: fx.Float16):
        Out[0] = b.to(fx.Float32)
        Out[1] = h.to(fx.Float32)

    launch = launcher_of(kernel, grid=1, block=1)
    out = torch.zeros(2)
    for number in (0.1, -3.0, float("inf"), 1e-3):
        launch(out, number, number)
        exact = torch.tensor(number)
        assert out.tolist() == [exact.bfloat16().item(), exact.half().item()]


def test_bfloat16_nan_stays_nan(elementwise: Callable[..., torch.Tensor]) -> None:
    """Also where the bits that rounding drops are all that makes it a NaN."""
    a = torch.tensor([0x7F800001, 0x7FFFFFFF, -0x7FFFFF, 0x7F7FFFFF], dtype=torch.int64).to(torch.int32)
    (result,) = elementwise(
        lambda x, y: [x.to(fx.BFloat16)], a.view(torch.float32), a.view(torch.float32), torch.bfloat16
    )
    assert result.isnan().tolist() == [True, True, True, False]
    assert result[3] == torch.inf


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda A, Out: A[0:4, 0], "None keeps a whole mode"),
        (lambda A, Out: max(A[0, 0], A[0, 1]), "fx.arith.maximumf"),
        (lambda A, Out: int(A[0, 0]), "x.to"),
        (lambda A, Out: float(A[0, 0]), "are in fx.math"),
    ],
)
def test_python_functions_that_need_a_number_point_to_the_devices(
    trace: Callable[..., Any], use: Any, message: str
) -> None:
    with pytest.raises(FlyError, match=message):
        trace(use)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_a_nan_is_zero_and_what_is_too_large_the_largest_whole_number(
    elementwise: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """As the instructions have it, whatever the host's CPU does."""
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    a = torch.tensor([torch.nan, -torch.nan, torch.inf, -torch.inf, 65504.0, -65504.0, 2.9, -2.9], dtype=torch.float16)
    (result,) = elementwise(lambda x, y: [x.to(fx.Int16)], a, a, torch.int16)
    assert result.tolist() == [0, 0, 32767, -32768, 32767, -32768, 2, -2]
