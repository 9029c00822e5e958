from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import topk_gating_softmax_kernel as kernel
from tests.kernels.checks import checking
from tests.kernels.rows import TYPES, strided


def results(t: int, k: int) -> tuple[Any, Any, Any]:
    return torch.full((t, k), torch.nan), *(torch.full((t, k), -9, dtype=torch.int32) for _ in range(2))


def different(t: int, e: int, dtype: str) -> torch.Tensor:
    """Gating numbers of which no two of a row are equal."""
    random = torch.Generator().manual_seed(e)
    rows = [torch.randperm(e, generator=random) for _ in range(t)]
    return (torch.stack(rows) / 32 - 2).to(TYPES[dtype])


@pytest.mark.checked
@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(4)
def test_equals_torch(number: int, shape: tuple[int, int, int], renormalize: bool) -> None:
    t, e, k = shape
    dtype = kernel.DTYPES[0] if e > 256 else kernel.DTYPES[number % 3]
    gating = strided(different(t, e, dtype), 2 * number)
    weights, experts, ids = results(t, k)
    with checking():
        kernel.build_topk_gating_softmax_module(e, k, dtype, renormalize)(gating, weights, experts, ids, t)
    expected, chosen = kernel.reference(gating, k, renormalize)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(experts, chosen)
    assert torch.equal(ids, (torch.arange(k)[None, :] * t + torch.arange(t)[:, None]).int())


def test_of_equals_the_lowest_number_comes_first() -> None:
    gating = torch.zeros(3, 32, dtype=torch.bfloat16)
    gating[1, 20:] = 1
    gating[2] = -torch.inf
    gating[2, 7] = 0
    weights, experts, ids = results(3, 4)
    kernel.build_topk_gating_softmax_module(32, 4)(gating, weights, experts, ids, 3)
    assert experts.tolist() == [[0, 1, 2, 3], [20, 21, 22, 23], [7, 0, 1, 2]]
    torch.testing.assert_close(weights[:2], torch.full((2, 4), 0.25))
    assert weights[2].tolist() == [1, 0, 0, 0]


def test_rows_of_nan_give_valid_experts() -> None:
    gating = torch.full((2, 64), torch.nan)
    weights, experts, ids = results(2, 2)
    kernel.build_topk_gating_softmax_module(64, 2, "f32")(gating, weights, experts, ids, 2)
    assert experts.tolist() == [[0, 1]] * 2


@pytest.mark.sweep
def test_waves_chosen_by_measurement() -> None:
    gating = different(10, 64, "f16")
    weights, experts, ids = results(10, 3)
    kernel.topk_gating_softmax(gating, weights, experts, ids, 10, 64, 3)
    assert torch.equal(experts, kernel.reference(gating, 3)[1])


@pytest.mark.parametrize(("e", "k", "said"), [(100, 2, "100 experts"), (2048, 2, "2048"), (8, 9, "top 9 of 8")])
def test_wrong_arguments(e: int, k: int, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.build_topk_gating_softmax_module(e, k)
