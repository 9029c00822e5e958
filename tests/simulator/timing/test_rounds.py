"""Grids whose workgroups have more and more to do, or less and less: a few rounds stand for all."""

from __future__ import annotations

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
def add_up_kernel(x: fx.Tensor, y: fx.Tensor, first: fx.Int32, last: fx.Int32) -> None:
    block = fx.block_idx.x
    total = fx.Float32(0.0)
    for step in range(first + (last - first) * block // BLOCKS):
        total += x[(block * STEPS + step) * THREADS + fx.thread_idx.x]
    y[block * THREADS + fx.thread_idx.x] = total


@flyc.jit
def add_up(x: fx.Tensor, y: fx.Tensor, first: fx.Int32, last: fx.Int32) -> None:
    add_up_kernel(x, y, first, last).launch(grid=(BLOCKS,), block=(THREADS,))


def trace_of(first: int, last: int) -> Trace:
    x, y = torch.empty(BLOCKS * STEPS * THREADS), torch.empty(BLOCKS * THREADS)
    with tracing(gpu="mi300x") as traced:
        add_up(x, y, first, last)
    return traced.launches[0].trace


@pytest.mark.slow
@pytest.mark.parametrize(("first", "last"), [(4, STEPS), (STEPS, 4)], ids=["rising", "falling"])
def test_rounds_count_by_what_they_execute(first: int, last: int) -> None:
    even, uneven = trace_of((STEPS + 4) // 2, (STEPS + 4) // 2), trace_of(first, last)
    assert uneven.time_us == pytest.approx(even.time_us, rel=0.15)
    assert uneven.memory.hbm_read_bytes == pytest.approx(even.memory.hbm_read_bytes, rel=0.08)
    assert "for what they execute" in uneven.sampling
    assert "for what they execute" not in even.sampling


@pytest.mark.parametrize("count", [12, 13, 47, 200])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_the_work_of_each_round(count: int, size: int) -> None:
    """Of workgroups with more to do the later they come, and that differ within a round, too."""
    words = [(10 + w // size) * (5 + w % size) for w in range(count)]
    middle = count // size // 2
    first, half, last = words[:size], words[middle * size : (middle + 1) * size], words[count // size * size :]
    found = relative_work(count, first, half, last, lambda them: [words[w] for w in them])
    assert found == pytest.approx([(10 + r) / (10 + middle) for r in range(-(-count // size))])


def test_rounds_that_are_alike_are_not_looked_at() -> None:
    found = relative_work(41, [100] * 4, [102] * 4, [101], lambda them: pytest.fail("nothing to look at"))
    assert found == pytest.approx(np.ones(11), rel=0.03)
