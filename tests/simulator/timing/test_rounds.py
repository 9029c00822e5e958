"""Grids whose workgroups have more and more to do, or less and less, or both by turns: a few rounds stand for all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import tracing
from flydsl.simulator.timing.rounds import relative_work
from flydsl.simulator.timing.trace import Trace

THREADS, STEPS = 1024, 64
ROUND = 2 * 304  # workgroups that an MI300X has room for
BLOCKS = 12 * ROUND


@flyc.kernel
def add_up_kernel(
    x: fx.Tensor, y: fx.Tensor, first: fx.Int32, last: fx.Int32, run: fx.Constexpr[int], count: fx.Constexpr[int]
) -> None:
    block = fx.block_idx.x
    total = fx.Float32(0.0)
    for step in range(first + (last - first) * (block // run % count) // (count - 1)):
        total += x[(block * STEPS + step) * THREADS + fx.thread_idx.x]
    y[block * THREADS + fx.thread_idx.x] = total


@flyc.jit
def add_up(
    x: fx.Tensor, y: fx.Tensor, first: fx.Int32, last: fx.Int32, run: fx.Constexpr[int], count: fx.Constexpr[int]
) -> None:
    add_up_kernel(x, y, first, last, run, count).launch(grid=(BLOCKS,), block=(THREADS,))


@cache
def trace_of(first: int, last: int, run: int = 1, count: int = BLOCKS) -> Trace:
    """Of a grid in which `run` workgroups after the other have as much to do as each other, then the next ones.

    That goes in `count` steps from `first` to `last`, and begins again.
    """
    x, y = torch.empty(BLOCKS * STEPS * THREADS), torch.empty(BLOCKS * THREADS)
    with tracing(gpu="mi300x") as traced:
        add_up(x, y, first, last, run, count)
    return traced.launches[0].trace


@pytest.mark.slow
@pytest.mark.parametrize(("first", "last"), [(4, STEPS), (STEPS, 4)], ids=["rising", "falling"])
def test_rounds_count_by_what_they_execute(first: int, last: int) -> None:
    even, uneven = trace_of((STEPS + 4) // 2, (STEPS + 4) // 2), trace_of(first, last)
    assert uneven.time_us == pytest.approx(even.time_us, rel=0.15)
    assert uneven.memory.hbm_read_bytes == pytest.approx(even.memory.hbm_read_bytes, rel=0.08)
    assert "for what they execute" in uneven.sampling
    assert "for what they execute" not in even.sampling


@pytest.mark.slow
def test_a_mask_takes_as_long_in_another_order() -> None:
    """As of causal attention: many heads of a block of queries after each other, or few of them and more sequences.

    Where a sequence is two rounds, or six, the first round and the one in the middle have the most to do.
    """
    few, many = (trace_of(STEPS, 4, ROUND * rounds // 32, 32) for rounds in (2, 6))
    even = trace_of((STEPS + 4) // 2, (STEPS + 4) // 2)
    assert few.time_us == pytest.approx(many.time_us, rel=0.1)
    assert few.time_us == pytest.approx(even.time_us, rel=0.15)


def skipped_work(words: Sequence[int], size: int) -> tuple[float, float]:
    """What is found for workgroups that execute so many instructions, in rounds of `size`, and what it is."""
    middle, last = len(words) // size // 2 * size, len(words) // size * size
    replayed = words[:size], words[middle : middle + size], words[last:]
    skipped = [*range(size, middle), *range(middle + size, last)]
    found = relative_work([(w, w % size) for w in skipped], replayed, lambda them: [words[w] for w in them])
    return found, float(np.sum([words[w] for w in skipped]) / np.sum([words[middle + w % size] for w in skipped]))


@pytest.mark.parametrize("count", [12, 13, 47, 200])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_the_work_of_rounds_between(count: int, size: int) -> None:
    """Of workgroups with more to do the later they come, and that differ within a round, too."""
    found, expected = skipped_work([(10 + w // size) * (5 + w % size) for w in range(count)], size)
    assert found == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("run", [1, 2, 8, 64, 256])
@pytest.mark.parametrize("blocks", [2, 16, 32, 48])
def test_the_work_of_masks(run: int, blocks: int) -> None:
    """Whether or not a sequence has as many workgroups as some rounds."""
    found, expected = skipped_work([blocks - w // run % blocks for w in range(8192)], 64)
    assert found == pytest.approx(expected, rel=0.1)


def test_few_are_looked_at_where_all_are_alike() -> None:
    looked_at: list[int] = []

    def executed(them: Sequence[int]) -> list[int]:
        looked_at.extend(them)
        return [101 + w % 4 for w in them]

    replayed = [100, 101, 102, 103], [102, 103, 104, 105], [101]
    assert relative_work([(w, w % 4) for w in range(4, 400)], replayed, executed) == 1.0
    assert len(looked_at) == 8
