from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from flydsl.simulator import checking
from kernels import moe_sorting_kernel as kernel


def routing(tokens: int, experts: int, topk: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random experts, all different for a token, and weights."""
    random = torch.Generator().manual_seed(tokens + experts)
    weights, ids = torch.rand(tokens, experts, generator=random).softmax(-1).topk(topk)
    return ids.int(), weights


def sort(ids: torch.Tensor, weights: torch.Tensor, experts: int, unit: int, **options: Any) -> list[torch.Tensor]:
    """The tables, whose every element must be written, checked."""
    size = kernel.sorted_size(*ids.shape[:1], experts, ids.shape[1], unit)
    integers = [torch.full((n,), -77, dtype=torch.int32) for n in (size, -(-size // unit), 2)]
    results = [integers[0], torch.full((size,), torch.nan), *integers[1:]]
    moe_buf = torch.full((ids.shape[0], 37, 2), torch.nan, dtype=torch.bfloat16)
    with checking():
        kernel.moe_sorting_flydsl(ids, weights, *results, moe_buf, experts, unit, **options)
    assert not moe_buf.any()
    return results


def check(ids: torch.Tensor, weights: torch.Tensor, experts: int, unit: int, mask: Any = None) -> None:
    found = sort(ids, weights, experts, unit, expert_mask=mask)
    for got, expected in zip(found, kernel.reference(ids, weights, experts, unit, mask), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
def test_equals_reference(shape: tuple[int, int, int, int]) -> None:
    tokens, experts, topk, unit = shape
    check(*routing(tokens, experts, topk), experts, unit)


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("tokens", "experts"), [(20, 33), (150, 70)])
def test_experts_that_are_masked(tokens: int, experts: int, kept: float) -> None:
    mask = (torch.rand(experts, generator=torch.Generator().manual_seed(1)) < kept).int()
    check(*routing(tokens, experts, 4), experts, 16, mask)


@pytest.mark.parametrize("tokens", [33, 600])
def test_all_tokens_choose_one_expert(tokens: int) -> None:
    check(torch.full((tokens, 1), 5, dtype=torch.int32), torch.rand(tokens, 1), 9, 16)


@pytest.mark.parametrize("tokens", [5, 300])
def test_ids_that_are_no_experts_are_in_no_row(tokens: int) -> None:
    ids, weights = routing(tokens, 6, 2)
    ids[::2, 1] = torch.tensor([-1, 6, 1 << 30], dtype=torch.int32)[torch.arange(len(ids[::2])) % 3]
    check(ids, weights, 6, 16)


@pytest.mark.parametrize("tokens", [20, 400])
def test_the_tokens_that_count(tokens: int) -> None:
    ids, weights = routing(tokens, 6, 2)
    local = tokens - 7
    found = sort(ids, weights, 6, 16, num_local_tokens=torch.tensor([local], dtype=torch.int32))
    for got, expected in zip(found, kernel.reference(ids[:local], weights[:local], 6, 16), strict=True):
        assert torch.equal(got[: len(expected)], expected)


def test_wrong_arguments() -> None:
    ids, weights = routing(4, 6, 2)
    with pytest.raises(ArgumentError, match="the top 2 of 1 experts"):
        sort(ids, weights, 1, 16)
    with pytest.raises(ArgumentError, match="topk_ids"):
        sort(ids.long(), weights, 6, 16)
    with pytest.raises(ArgumentError, match="workspace"):
        sort(*routing(300, 6, 2), 6, 16, workspace=torch.zeros(5, dtype=torch.int32))


def test_the_reference_itself() -> None:
    """Tokens 0 and 2 choose expert 1, every token expert 0 or 3, in blocks of 2 rows."""
    ids = torch.tensor([[1, 0], [3, 0], [3, 1]], dtype=torch.int32)
    weights = torch.arange(6.0).view(3, 2) + 1
    second, none = 1 << 24, 2 << 24 | 3
    rows, of_rows, experts, valid = kernel.reference(ids, weights, 4, 2)
    assert rows.tolist() == [second, second | 1, 0, second | 2, 1, 2, *[none] * 6]
    assert of_rows.tolist() == [2, 4, 1, 6, 3, 5, *[0] * 6]
    assert experts.tolist() == [0, 1, 3, -1, -1, -1]
    assert valid.tolist() == [6, 3]
    assert kernel.reference(ids, weights, 4, 2, [1, 0, 0, 1])[2].tolist() == [0, 1, -1, -1, -1, -1]
