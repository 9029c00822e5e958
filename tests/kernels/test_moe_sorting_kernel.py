from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import moe_sorting_kernel as kernel
from kernels import topk_gating_softmax_kernel as gating
from tests.kernels.checks import checking


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


@pytest.mark.checked
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(2)
def test_equals_reference(shape: tuple[int, int, int, int]) -> None:
    tokens, experts, topk, unit = shape
    check(*routing(tokens, experts, topk), experts, unit)


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("tokens", "experts"), [(20, 33), (150, 70)])
@pytest.mark.diagonal(2)
def test_experts_that_are_masked(tokens: int, experts: int, kept: float) -> None:
    mask = (torch.rand(experts, generator=torch.Generator().manual_seed(1)) < kept).int()
    check(*routing(tokens, experts, 4), experts, 16, mask)


@pytest.mark.parametrize("tokens", [33, 600])
@pytest.mark.diagonal(2)
def test_all_tokens_choose_one_expert(tokens: int) -> None:
    check(torch.full((tokens, 1), 5, dtype=torch.int32), torch.rand(tokens, 1), 9, 16)


@pytest.mark.parametrize("tokens", [5, 300])
@pytest.mark.diagonal(2)
def test_ids_that_are_no_experts_are_in_no_row(tokens: int) -> None:
    ids, weights = routing(tokens, 6, 2)
    ids[::2, 1] = torch.tensor([-1, 6, 1 << 30], dtype=torch.int32)[torch.arange(len(ids[::2])) % 3]
    check(ids, weights, 6, 16)


@pytest.mark.parametrize("tokens", [20, 400])
@pytest.mark.diagonal(2)
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
    launch = kernel.build_moe_sorting_module(6, 2, 16, at_once=True)
    rows, one = torch.zeros(kernel.sorted_size(4, 6, 2, 16)), torch.zeros(1).int()
    tables = (rows.int(), rows, one, torch.zeros(2).int(), torch.zeros(8))
    with pytest.raises(ArgumentError, match="sorted_expert_ids of"):
        launch(ids.view(-1), weights.view(-1), *tables, one, one, one, 4)
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


def softmax_sort(logits: torch.Tensor, topk: int, unit: int, **options: Any) -> list[torch.Tensor]:
    """The tables from logits, whose every element must be written, checked."""
    tokens, experts = logits.shape
    size = kernel.sorted_size(tokens, experts, topk, unit)
    integers = [torch.full((n,), -77, dtype=torch.int32) for n in (size, -(-size // unit), 2)]
    results = [integers[0], torch.full((size,), torch.nan), *integers[1:]]
    moe_buf = torch.full((tokens, 37, 2), torch.nan, dtype=torch.bfloat16)
    dtype = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[logits.dtype]
    with checking():
        kernel.moe_softmax_sort_flydsl(logits, *results, moe_buf, experts, topk, dtype, unit, **options)
    assert not moe_buf.any()
    return results


@pytest.mark.checked
@pytest.mark.parametrize(
    ("tokens", "experts", "topk", "dtype"),
    [(1, 256, 8, torch.bfloat16), (16, 256, 8, torch.float32), (9, 8, 2, torch.float16), (5, 512, 3, torch.float16),
     (21, 64, 4, torch.bfloat16)],
)  # fmt: skip
@pytest.mark.diagonal(2)
def test_logits_are_routed_and_sorted(tokens: int, experts: int, topk: int, dtype: torch.dtype) -> None:
    """By one kernel, and by two for more tokens than it takes."""
    random = torch.Generator().manual_seed(tokens)
    logits = torch.stack([torch.randperm(experts, generator=random) / 32 for _ in range(tokens)]).to(dtype)
    weights, ids = gating.reference(logits, topk)
    found = softmax_sort(logits, topk, 16)
    expected = kernel.reference(ids, weights, experts, 16)
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1], rtol=2e-5, atol=1e-7)
    for got, wanted in zip(found[2:], expected[2:], strict=True):
        assert torch.equal(got, wanted)


def test_logits_with_a_mask_and_the_tokens_that_count() -> None:
    logits = torch.randn(12, 32, generator=torch.Generator().manual_seed(2))
    mask = (torch.arange(32) % 3 > 0).int()
    weights, ids = gating.reference(logits, 4, renormalize=False)
    options = {"expert_mask": mask, "renormalize": False}
    found = softmax_sort(logits, 4, 8, num_local_tokens=torch.tensor([7], dtype=torch.int32), **options)
    for got, expected in zip(found, kernel.reference(ids[:7], weights[:7], 32, 8, mask), strict=True):
        torch.testing.assert_close(got[: len(expected)], expected, rtol=2e-5, atol=1e-7)


def test_wrong_logits() -> None:
    with pytest.raises(ArgumentError, match="gating_logits"):
        kernel.moe_softmax_sort_flydsl(torch.zeros(4, 8), *[torch.zeros(1)] * 5, 16, 2, "f32")
    with pytest.raises(ArgumentError, match="gating_logits"):
        kernel.moe_softmax_sort_flydsl(torch.zeros(4, 16), *[torch.zeros(1)] * 5, 16, 2, "bf16")
    with pytest.raises(ArgumentError, match="gating of 24 experts"):
        softmax_sort(torch.zeros(4, 24), 2, 16)
