"""Workgroups without anything to do: a grid with room for more work than there is takes as long as the work."""

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import tracing
from flydsl.simulator.timing.idle import busy_workgroups
from flydsl.simulator.timing.trace import Trace

THREADS, STEPS, DIES = 1024, 64, 8
ROUND = 2 * 304  # workgroups that an MI300X has room for


@flyc.kernel
def add_up_kernel(x: fx.Tensor, y: fx.Tensor, numbers: fx.Int32, dies: fx.Int32) -> None:
    block = fx.block_idx.x
    if (block < numbers) & (block % DIES < dies):
        total = fx.Float32(0.0)
        for step in range(STEPS):
            total += x[(block * STEPS + step) * THREADS + fx.thread_idx.x]
        y[block * THREADS + fx.thread_idx.x] = total


@flyc.jit
def add_up(x: fx.Tensor, y: fx.Tensor, numbers: fx.Int32, dies: fx.Int32, blocks: fx.Int32) -> None:
    add_up_kernel(x, y, numbers, dies).launch(grid=(blocks,), block=(THREADS,))


def trace_of(blocks: int, *, numbers: int | None = None, dies: int = DIES) -> Trace:
    x, y = torch.empty(blocks * STEPS * THREADS), torch.empty(blocks * THREADS)
    with tracing(gpu="mi300x") as traced:
        add_up(x, y, blocks if numbers is None else numbers, dies, blocks)
    return traced.launches[0].trace


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 4])
def test_the_last_ones_take_no_time(rounds: int) -> None:
    exact, with_room = trace_of(rounds * ROUND), trace_of(4 * rounds * ROUND, numbers=rounds * ROUND)
    assert with_room.time_us == pytest.approx(exact.time_us, rel=0.1)
    assert with_room.memory.hbm_read_bytes == pytest.approx(exact.memory.hbm_read_bytes, rel=0.05)
    assert f"{3 * rounds * ROUND} workgroups have nothing to do" in with_room.sampling


@pytest.mark.slow
def test_dies_at_work_have_the_memory_of_those_without_work() -> None:
    every, half = trace_of(4 * ROUND), trace_of(4 * ROUND, dies=4)
    assert half.time_us == pytest.approx(every.time_us / 2, rel=0.15)
    assert half.memory.hbm_read_bytes == pytest.approx(every.memory.hbm_read_bytes / 2, rel=0.05)


@pytest.mark.parametrize("workgroups", [1, 5, 8, 13, 64, 100])
@pytest.mark.parametrize("busy", [1, 3, 8, 40, 100])
def test_the_first_idle_one_of_each_die_is_found(workgroups: int, busy: int) -> None:
    found = busy_workgroups(workgroups, DIES, lambda them: [5000 if w < busy else 20 for w in them])
    assert found.counts == tuple(len(range(die, min(workgroups, busy), DIES)) for die in range(DIES))
    assert found.idle == max(0, workgroups - busy)


def test_short_ones_that_do_something_are_not_idle() -> None:
    """A long first workgroup does not make others idle that have hundreds of instructions."""
    assert busy_workgroups(64, DIES, lambda them: [100_000 if w == 0 else 300 for w in them]).idle == 0


def test_short_products_have_idle_ones_too() -> None:
    """As the second stage of a mixture of experts in 900 instructions, of which 80 find out that there are no rows."""
    assert busy_workgroups(64, DIES, lambda them: [900 if w % DIES < 6 else 80 for w in them]).dies == 6.0
