"""Quantisation of rows and of groups of elements against torch, and against recorded codes of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import quant as kernel
from tests.kernels.checks import checking
from tests.kernels.norms import CODES, LARGEST
from tests.kernels.rows import matrix, strided

VECTORS = json.loads((Path(__file__).parent / "quant_vectors.json").read_text())
FP8 = torch.float8_e4m3fnuz


def decoded(codes: torch.Tensor, quant: str) -> torch.Tensor:
    """The numbers that codes stand for."""
    if quant != "mxfp4":
        return codes.float()
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    pairs = torch.stack([codes & 15, codes >> 4], -1)
    return table[pairs.long()].flatten(-2)


@pytest.mark.checked
@pytest.mark.parametrize("dtype", kernel.DTYPES)
@pytest.mark.parametrize("quant", kernel.QUANTS)
@pytest.mark.diagonal(3)
def test_rows(quant: str, dtype: str) -> None:
    for m, n in kernel.SHAPES:
        x = strided(matrix(m, n, dtype), 3)
        out, scales = torch.zeros(m, n, dtype=CODES[quant]), torch.full((m,), torch.nan)
        launch, _ = kernel.build_quant_module(n, dtype, quant)
        with checking():
            launch(x, out, scales, m)
        expected, expected_scales = kernel.reference(x, largest=LARGEST[quant])
        torch.testing.assert_close(scales, expected_scales, rtol=1e-6, atol=0)
        step = 0.5 if quant == "i8" else expected.abs() / 16 + 2.0**-11
        assert ((out.float() - expected).abs() <= step * 1.001 + 1e-4).all()


@pytest.mark.checked
@pytest.mark.parametrize("quant", kernel.GROUPS)
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.BLOCK_SHAPES)], ids=str)
@pytest.mark.diagonal(4)
def test_groups(number: int, shape: tuple[int, int, int], quant: str) -> None:
    m, n, group = shape
    dtype, mx = kernel.DTYPES[number % 3], quant.startswith("mx")
    x = matrix(m, n, dtype)
    x[0, :group] = 0
    out = torch.zeros(m, n // 2 if quant == "mxfp4" else n, dtype=CODES.get(quant, torch.uint8))
    out = out.view(FP8) if quant == "mxfp8" else out
    scales = torch.full((m, n // group), 7).to(torch.uint8 if mx else torch.float32)
    with checking():
        kernel.build_block_quant_module(n, dtype, quant, group)(x, out, scales, m)
    largest = x.float().view(m, -1, group).abs().amax(-1)
    if mx:
        limit = 6 if quant == "mxfp4" else LARGEST["fp8"]
        factors = torch.exp2(scales.float() - 127)
        nonzero = largest > 0
        assert (scales[~nonzero] == 0).all()
        assert (largest <= factors * limit)[nonzero].all()
        assert (largest * 4 > factors * limit)[nonzero].all()
    else:
        factors = largest / LARGEST[quant]
        factors[factors == 0] = 1
        torch.testing.assert_close(scales, factors, rtol=1e-6, atol=0)
        limit = LARGEST[quant]
    wanted = (x.float().view(m, -1, group) / factors[..., None]).clamp(-limit, limit)
    got = decoded(out, quant).view(wanted.shape)
    step = {"i8": 0.5, "mxfp4": wanted.abs() / 4 + 0.25}.get(quant, wanted.abs() / 16 + 2.0**-11)
    assert ((got - wanted).abs() <= step * 1.001 + 1e-4).all()


def rows_of_every_kind(n: int) -> torch.Tensor:
    """NaN in one place, infinity in one, denormals, and numbers that f32 hardly holds."""
    x = matrix(4, n, "f32")
    x[0, 3], x[1, 5] = torch.nan, torch.inf
    return x * torch.tensor([1, 1, 1e-42, 1e37])[:, None]


@pytest.mark.parametrize("quant", kernel.QUANTS)
def test_a_row_with_nan_or_infinity_is_nan(quant: str) -> None:
    """They are NaN as a whole, as torch's are; the others are not touched by it."""
    x, out, scales = rows_of_every_kind(257), torch.zeros(4, 257, dtype=CODES[quant]), torch.zeros(4)
    kernel.build_quant_module(257, "f32", quant)[0](x, out, scales, 4)
    assert [*scales[:3].isfinite()] == [False, False, True]
    assert scales[2] == 1
    found = out.float() * scales[:, None]
    assert found[:2].isnan().all()
    assert not found[2].any()
    assert ((found[3] - x[3]).abs() <= x[3].abs().max() / (250 if quant == "i8" else 16)).all()


@pytest.mark.parametrize("quant", kernel.GROUPS)
@pytest.mark.diagonal(2)
def test_groups_with_nan_or_infinity(quant: str) -> None:
    group, mx = kernel.GROUPS[quant], quant.startswith("mx")
    x, columns = rows_of_every_kind(256), 128 if quant == "mxfp4" else 256
    out = torch.zeros(4, columns, dtype=CODES.get(quant, torch.uint8))
    scales = torch.zeros(4, 256 // group, dtype=torch.uint8 if mx else torch.float32)
    kernel.build_block_quant_module(256, "f32", quant)(x, out, scales, 4)
    assert scales[0, 0] == 255 if mx else scales[0, 0].isnan()
    assert scales[1, 0] >= 240 if mx else scales[1, 0].isinf()
    others = scales[[0, 1], 1:]
    assert ((others > 100) & (others < 140) if mx else others.isfinite()).all()


def test_nothing_to_quantise() -> None:
    kernel.build_quant_module(64, "f32")[0](torch.zeros(0, 64), torch.zeros(0, 64).char(), torch.zeros(0), 0)


def test_recorded_mxfp4_codes() -> None:
    """Eight rows of 64, and every case of rounding to E2M1."""
    x = torch.tensor(VECTORS["x"])
    out, scales = torch.zeros(len(x), 32, dtype=torch.uint8), torch.zeros(len(x), 2, dtype=torch.uint8)
    kernel.build_block_quant_module(64, "f32", "mxfp4")(x, out, scales, len(x))
    assert scales.tolist() == VECTORS["mxfp4_e8m0"]
    assert out.tolist() == VECTORS["mxfp4_bytes"]
    # A number of 4 in each group makes its scale 1, so that the others are rounded as they are.
    numbers = torch.tensor(VECTORS["fp4_in"])
    numbers = torch.cat([numbers, torch.zeros(-len(numbers) % 30)]).view(-1, 30)
    rows = torch.cat([numbers.clamp(-5.9, 5.9), torch.full((len(numbers), 2), 4.0)], 1)
    out, scales = torch.zeros(len(rows), 16, dtype=torch.uint8), torch.zeros(len(rows), 1, dtype=torch.uint8)
    kernel.build_block_quant_module(32, "f32", "mxfp4")(rows, out, scales, len(rows))
    recorded = decoded(torch.tensor([VECTORS["fp4_bytes"]], dtype=torch.uint8), "mxfp4").flatten()
    scaled = decoded(out, "mxfp4") * torch.exp2(scales.float() - 127)
    rounded = scaled[:, :30].flatten()[: len(recorded)]
    same = (scales == 127).expand(-1, 30).flatten()[: len(recorded)]
    assert same.float().mean() > 0.5
    assert torch.equal(rounded[same], recorded[same])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kernel.build_quant_module(64, "f32", "i4"), "'i4'"),
        (lambda: kernel.build_block_quant_module(64, "f32", "fp6"), "'fp6'"),
        (lambda: kernel.build_block_quant_module(100, "f32", "mxfp4"), "groups of 32 in rows of 100"),
    ],
)
def test_wrong_arguments(call: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()
