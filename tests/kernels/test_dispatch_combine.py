"""Expert parallelism of simulated GPUs, each in a process of its own."""

from __future__ import annotations

import itertools

import pytest
import torch

from flydsl.errors import ArgumentError
from flydsl.runtime import ranks
from kernels import dispatch_combine_intranode_kernel as kernel
from tests.kernels import collective_ranks as on_ranks


@pytest.mark.slow
def test_tokens_go_to_their_experts_and_results_come_back() -> None:
    assert ranks.run(on_ranks.experts, 4, 4, [0, 1, 2, 3]) == [[]] * 4


@pytest.mark.sweep
def test_workgroups_that_are_chosen_by_measurement() -> None:
    """Other numbers of them for dispatch and combine, one launch after the other."""
    assert ranks.run(on_ranks.experts, 2, 2, [1, 0], None) == [[]] * 2


@pytest.mark.parametrize(
    "options",
    [{"world": 3}, {"experts": 7}, {"topk": 0}, {"row_bytes": 24}, {"dtype": "i8"}, {"max_tokens": 0}],
    ids=str,
)
def test_what_does_not_fit_is_refused(options: dict[str, object]) -> None:
    fitting = {"world": 4, "max_tokens": 8, "experts": 8, "topk": 2, "row_bytes": 32}
    with pytest.raises(ArgumentError):
        kernel.Plan(**fitting | options)


@pytest.mark.parametrize("shape", kernel.SHAPES)
def test_parts_of_an_area_do_not_overlap(shape: tuple[int, int, int, int]) -> None:
    tokens, world, experts, topk = shape
    plan = kernel.Plan(
        world=world,
        max_tokens=tokens,
        experts=experts,
        topk=topk,
        row_bytes=48,
        scale_bytes=16,
        result_bytes=64,
        dtype="f32",
    )
    starts = sorted(plan.offsets.values())
    assert all(start % 16 == 0 for start in starts)
    sizes = [later - start for start, later in itertools.pairwise(starts)]
    rows = plan.capacity
    assert sum(sizes) >= 16 + rows * (48 + 16 + 64 + 8 * topk + 4)
    assert plan.offsets["tokens"] == 16


def test_the_reference_takes_a_token_once_for_each_rank() -> None:
    tokens, indices = torch.arange(4.0).view(2, 2, 1), torch.tensor([[[0, 1], [2, 3]], [[1, 3], [-1, 4]]])
    assert kernel.reference(tokens, indices, experts=4, rank=0).flatten().tolist() == [0, 2]
    assert kernel.reference(tokens, indices, experts=4, rank=1).flatten().tolist() == [1, 2]
