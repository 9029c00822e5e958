from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import silu_and_mul_fq as kernel
from tests.kernels.checks import checking
from tests.kernels.test_quant import decoded

CASES = [
    ("none", False, "silu", False),
    ("fp8", False, "silu", True),
    ("fp4", True, "silu", False),
    ("fp4", False, "swiglu", True),
    ("fp8", True, "swiglu", False),
]


def operands(tokens: int, topk: int, inter: int, quant: str) -> dict[str, Any]:
    """Rows sorted backwards, with rows between them that do not count."""
    random = torch.Generator().manual_seed(tokens)
    rows = tokens * topk
    ids = torch.tensor([slot << 24 | token for token in range(tokens) for slot in range(topk)][::-1], dtype=torch.int32)
    padding = torch.full((rows,), topk << 24 | tokens, dtype=torch.int32)
    width = {"fp4": inter // 2, "fp8": inter, "none": inter}[quant]
    sorted_ids = torch.stack([ids, padding], 1).flatten()
    groups = -(-inter // 256) * 8
    return {
        "x": (torch.randn(rows, 2 * inter, generator=random) * 3).bfloat16(),
        "out": torch.full((rows, width), 3.0).to(torch.bfloat16 if quant == "none" else torch.uint8),
        "scales": torch.full((-(-len(sorted_ids) // 32) * 32 * groups,), 99, dtype=torch.uint8),
        "sorted_ids": sorted_ids,
        "num_valid": torch.tensor([len(sorted_ids) - 1], dtype=torch.int32),
        "topk_ids": torch.randint(0, 4, (rows,), generator=random, dtype=torch.int32),
        "bias": torch.randn(4, 2 * inter, generator=random),
    }


@pytest.mark.checked
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(5)
def test_equals_torch(number: int, shape: tuple[int, int, int], case: tuple[str, bool, str, bool]) -> None:
    (tokens, topk, inter), (quant, gui, act, bias) = shape, case
    given = operands(*shape, quant)
    launch = kernel.build_silu_and_mul_fq_module(inter, topk, quant, gui, act, bias)
    sorted_rows = len(given["sorted_ids"])
    with checking():
        launch(*given.values(), tokens, sorted_rows)
    x = given["x"]
    expected = kernel.reference(x, given["bias"][given["topk_ids"]] if bias else None, act, gui)
    if quant == "none":
        torch.testing.assert_close(given["out"].float(), expected, rtol=1e-2, atol=1e-2)
        return
    groups = -(-inter // 256) * 8
    places = kernel.scale_offset(torch.arange(sorted_rows)[:, None], torch.arange(inter // 32)[None, :], groups)
    scales = given["scales"][places]
    assert (scales[1::2] == 0).all()  # of the rows that do not count
    factors = torch.exp2(scales[0::2].flip(0).float() - 127)
    codes = given["out"] if quant == "fp4" else given["out"].view(torch.float8_e4m3fnuz)
    got = decoded(codes, f"mx{quant}").view(tokens * topk, -1, 32)
    wanted = expected.view(got.shape) / factors[..., None]
    limit = 6 if quant == "fp4" else 240
    step = wanted.abs() / 4 + 0.25 if quant == "fp4" else wanted.abs() / 16 + 2.0**-11
    assert ((got - wanted.clamp(-limit, limit)).abs() <= step * 1.001 + 1e-3).all()
    largest = wanted.abs().amax(-1)
    assert ((largest > limit / 4) & (largest <= limit)).all()


@pytest.mark.parametrize("act", kernel.ACTIVATIONS)
def test_a_nan_of_gate_or_up_is_one_of_the_result(act: str) -> None:
    """The limits of swiglu are for numbers: a NaN of the gate or of up is one of the result."""
    given = operands(3, 2, 64, "none")
    given["x"][0, 3], given["x"][1, 64 + 5], given["x"][2, 7] = torch.nan, torch.nan, torch.inf
    with checking():
        kernel.build_silu_and_mul_fq_module(64, 2, "none", act=act)(*given.values(), 3, len(given["sorted_ids"]))
    expected = kernel.reference(given["x"], act=act)
    torch.testing.assert_close(given["out"].float(), expected, rtol=1e-2, atol=1e-2, equal_nan=True)


def test_scales_lie_in_the_order_of_matrix_instructions() -> None:
    """One byte for each of two groups and two tiles of 16 rows in a word; a lane's word next to its neighbour's."""
    places = [kernel.scale_offset(row, group, 8) for row, group in ((0, 0), (16, 0), (0, 4), (16, 4), (1, 0), (0, 1))]
    assert places == [0, 1, 2, 3, 4, 64]
    every = {kernel.scale_offset(row, group, 16) for row in range(64) for group in range(16)}
    assert every == set(range(64 * 16))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((40_960, 2), "inter_dim 40960 with 1024 threads"),
        ((100, 2), "100"),
        ((256, 2, "int8"), "'int8'"),
        ((256, 2, "fp4", False, "gelu"), "'gelu'"),
    ],
)
def test_wrong_arguments(given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.build_silu_and_mul_fq_module(*given)
