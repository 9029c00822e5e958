"""Launches whose workgroups wait for each other are timed, as if what they wait for were there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import SimulatorError
from flydsl.simulator import tracing
from flydsl.simulator.timing.session import Tracing
from tests.simulator import mistaken_kernels as kernels


def zeros(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


def of_grid_barrier(blocks: int) -> Tracing:
    data, count, out = zeros(blocks), zeros(1), zeros(blocks)
    with tracing() as traced:
        kernels.grid_barrier(data, count, out, blocks)
    assert not count.any()
    assert not out.any(), "the launch is not carried out"
    return traced


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_a_barrier_of_the_grid(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    (launch,) = of_grid_barrier(64).launches
    assert "waits for other workgroups end at once" in launch.trace.sampling
    assert launch.time_us < 10
    executions = np.bincount(launch.trace.events["instruction"], minlength=len(launch.trace.instructions))
    assert executions.max() <= 2 * len(launch.trace.waves), "rounds of the loop that waits are not in the trace"


def test_the_order_of_workgroups_that_wait_changes_nothing() -> None:
    times = {of_grid_barrier(64).time_us for _ in range(2)}
    assert len(times) == 1


@flyc.kernel
def pass_on_kernel(flags: fx.Tensor, blocks: fx.Int32):
    """Each block waits for the one after it, so that the last one goes first."""
    if fx.thread_idx.x == 0:
        own = fx.get_iter(flags) + fx.block_idx.x
        kernels.wait_until(own + 1, 1)
        fx.generic_store(own, fx.Int32(1), memory_order="release", syncscope="agent")


@flyc.jit
def pass_on(flags: fx.Tensor, blocks: fx.Int32):
    pass_on_kernel(flags, blocks).launch(grid=blocks, block=64)


def pass_on_from(last: int) -> Any:
    flags = zeros(33)
    flags[32] = last
    with tracing() as traced:
        pass_on(flags, 32)
    return traced


def test_a_workgroup_may_wait_for_a_later_one() -> None:
    assert pass_on_from(1).time_us < 10


def test_waiting_for_what_nobody_does_is_an_error() -> None:
    with pytest.raises(SimulatorError, match="32 workgroups wait for each other, and none goes on"):
        pass_on_from(0)


@flyc.kernel
def follow_first_kernel(flag: fx.Tensor):
    """Every block but the first waits for it."""
    if fx.thread_idx.x == 0:
        if fx.block_idx.x == 0:
            fx.generic_store(fx.get_iter(flag), fx.Int32(1), memory_order="release", syncscope="agent")
        else:
            kernels.wait_until(fx.get_iter(flag), 1)


@flyc.jit
def follow_first(flag: fx.Tensor):
    follow_first_kernel(flag).launch(grid=64, block=64)


def test_the_first_workgroup_may_be_the_only_one_that_does_not_wait() -> None:
    with tracing() as traced:
        follow_first(zeros(1))
    (launch,) = traced.launches
    assert set(launch.trace.waves["workgroup"].tolist()) <= set(range(0, 64, 8)), "those of one die"
    assert launch.time_us < 10
