"""Launches whose workgroups wait for each other: the time in which they wait is part of the estimate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import tracing
from flydsl.simulator.timing import signals
from flydsl.simulator.timing.advice import advise
from flydsl.simulator.timing.perfetto import chrome_trace
from flydsl.simulator.timing.session import TracedLaunch, Tracing
from flydsl.simulator.timing.trace import Stall, Trace
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
    assert "at once" not in launch.trace.sampling
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


def pass_on_from(last: int, blocks: int = 32) -> Tracing:
    flags = zeros(blocks + 1)
    flags[blocks] = last
    with tracing() as traced:
        pass_on(flags, blocks)
    return traced


def test_a_chain_of_workgroups_takes_as_long_as_its_links() -> None:
    of_16, of_32, of_64 = (pass_on_from(1, blocks).time_us for blocks in (16, 32, 64))
    assert of_64 - of_32 == pytest.approx(2 * (of_32 - of_16), rel=0.1)
    assert 0.1 < (of_64 - of_32) / 32 < 2, "us for a store and a load that finds it"


def test_the_trace_shows_who_waits_for_a_signal() -> None:
    (launch,) = pass_on_from(1).launches
    events = launch.trace.events
    waiting = events[events["reason"] == Stall.SIGNAL]
    assert len(waiting) == 1
    assert "load" in launch.trace.instructions[int(waiting["instruction"][0])].text
    (writer,) = launch.trace.writers.values()
    assert writer == int(launch.trace.waves["workgroup"][0]) + 1
    shown = f"waits for workgroup {writer}'s signal"
    assert shown in {slice_["name"] for slice_ in chrome_trace(launch.trace)["traceEvents"]}
    assert Trace.from_json(launch.trace.to_json()).writers == launch.trace.writers
    assert "30 workgroups wait for signals of others" in launch.trace.sampling, "all but the last, which finds its own"
    assert "waiting for signals of other workgroups" in advise(launch.trace).limit
    assert not launch.trace.is_compared, "most of it is no time that was compared with a GPU"


def test_waiting_for_what_nobody_does_has_an_unknown_error() -> None:
    (launch,) = pass_on_from(0).launches
    assert launch.trace.error_percent is None
    assert "32 workgroups wait for what no workgroup of the launch writes" in launch.trace.sampling


def test_more_signals_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "SIGNAL_ROOM", 8)
    (launch,) = pass_on_from(1).launches
    assert "waits for other workgroups end at once, as there are more than" in launch.trace.sampling
    assert launch.trace.error_percent is None


@flyc.kernel
def produce_kernel(data: fx.Tensor, flag: fx.Tensor, rounds: fx.Int32, producer: fx.Int32):
    """One block reads one word after the other; all others wait for it."""
    if fx.thread_idx.x == 0:
        if fx.block_idx.x == producer:
            at = fx.Int32(0)
            for _ in range(rounds):
                at = fx.Int32(data[at])
            fx.generic_store(fx.get_iter(flag), at + 1, memory_order="release", syncscope="agent")
        else:
            kernels.wait_until(fx.get_iter(flag), 1)


@flyc.jit
def produce(data: fx.Tensor, flag: fx.Tensor, rounds: fx.Int32, producer: fx.Int32):
    produce_kernel(data, flag, rounds, producer).launch(grid=64, block=64)


def produced(rounds: int, *, flag: int, producer: int = 0) -> TracedLaunch:
    with tracing() as traced:
        produce(zeros(64), torch.full((1,), flag, dtype=torch.int32), rounds, producer)
    return traced.launches[0]


def test_many_consumers_wait_for_one_producer() -> None:
    waiting, not_waiting = produced(200, flag=0), produced(200, flag=1)
    assert "63 workgroups wait" in waiting.trace.sampling
    assert "no workgroup waits" in not_waiting.trace.sampling, "the flag is set from the beginning"
    of_producer = not_waiting.time_us
    assert of_producer < waiting.time_us < of_producer + 2
    assert produced(20, flag=0).time_us < waiting.time_us / 3


def test_the_producer_may_be_on_a_die_that_is_not_replayed() -> None:
    times = [produced(1000, flag=0, producer=producer).time_us for producer in (0, 5, 63)]
    assert times == pytest.approx([times[0]] * 3, rel=0.1)


@flyc.kernel
def uneven_barrier_kernel(data: fx.Tensor, count: fx.Tensor, rounds: fx.Int32, late: fx.Int32):
    """A barrier of 64 blocks to which one comes late."""
    if fx.thread_idx.x == 0:
        at = fx.Int32(0)
        if fx.block_idx.x == late:
            for _ in range(rounds):
                at = fx.Int32(data[at])
        fx.atomic_add(fx.get_iter(count), at + 1)
        kernels.wait_until(fx.get_iter(count), 64)


@flyc.jit
def uneven_barrier(data: fx.Tensor, count: fx.Tensor, rounds: fx.Int32, late: fx.Int32):
    uneven_barrier_kernel(data, count, rounds, late).launch(grid=64, block=64)


@pytest.mark.parametrize("late", [0, 5])
def test_all_wait_for_the_last_one_at_a_barrier(late: int) -> None:
    def traced(rounds: int) -> TracedLaunch:
        with tracing() as found:
            uneven_barrier(zeros(64), zeros(1), rounds, late)
        return found.launches[0]

    even, uneven = traced(0), traced(1000)
    assert "63 workgroups wait" in uneven.trace.sampling
    assert uneven.time_us > even.time_us + 20, "1000 loads, one after the other"
    assert set(uneven.trace.writers.values()) <= {late}


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


@flyc.kernel
def tickets_kernel(data: fx.Tensor, count: fx.Tensor, tickets: fx.Int32):
    """Each block takes tickets until there are none."""
    if fx.thread_idx.x == 0:
        ticket = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))
        while ticket < tickets:
            data[ticket] = ticket
            ticket = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))


@flyc.jit
def take_tickets(data: fx.Tensor, count: fx.Tensor, tickets: fx.Int32, blocks: fx.Int32):
    tickets_kernel(data, count, tickets).launch(grid=blocks, block=64)


def of_tickets(tickets: int, blocks: int) -> TracedLaunch:
    count = zeros(1)
    with tracing() as traced:
        take_tickets(zeros(tickets), count, tickets, blocks)
    assert not count.any()
    (launch,) = traced.launches
    return launch


@pytest.mark.parametrize("blocks", [8, 304])
def test_workgroups_take_as_many_tickets_each(blocks: int) -> None:
    """All are at work at once."""
    together = of_tickets(5 * blocks, blocks)
    (atomic,) = [i for i, one in enumerate(together.trace.instructions) if "atomic_add" in one.text][1:]
    executions = np.bincount(together.trace.events["wave"][together.trace.events["instruction"] == atomic])
    assert (abs(executions - 5) <= 2).all()
    assert "take work from a counter in turns" in together.trace.sampling
    assert together.trace.error_percent is not None
    assert not together.trace.is_compared


def test_workgroups_that_share_tickets_take_as_long_as_one_with_its_share() -> None:
    together, alone = of_tickets(40, 8), of_tickets(5, 1)
    assert together.time_us == pytest.approx(alone.time_us, rel=0.1)
    assert "counter" not in alone.trace.sampling


@flyc.kernel
def tickets_after_flag_kernel(data: fx.Tensor, count: fx.Tensor, tickets: fx.Int32):
    """The first block lets the others take tickets."""
    if fx.thread_idx.x == 0:
        if fx.block_idx.x == 0:
            fx.generic_store(fx.get_iter(count) + 1, fx.Int32(1), memory_order="release", syncscope="agent")
        kernels.wait_until(fx.get_iter(count) + 1, 1)
        ticket = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))
        while ticket < tickets:
            data[ticket] = ticket
            ticket = fx.Int32(fx.atomic_add(fx.get_iter(count), fx.Int32(1)))


@flyc.jit
def take_tickets_after_flag(data: fx.Tensor, count: fx.Tensor, tickets: fx.Int32, blocks: fx.Int32):
    tickets_after_flag_kernel(data, count, tickets).launch(grid=blocks, block=64)


def test_who_takes_how_many_tickets_is_not_known_where_workgroups_wait_too() -> None:
    with tracing() as traced:
        take_tickets_after_flag(zeros(40), zeros(2), 40, 8)
    (launch,) = traced.launches
    assert "more than their share" in launch.trace.sampling
    assert launch.trace.error_percent is None
