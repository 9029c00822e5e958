"""Utilisation and waits of a trace that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from flydsl.simulator.timing import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit
from flydsl.simulator.timing.summary import (
    Waits,
    hot_spots,
    stall_cycles,
    utilization,
    utilization_over_time,
    waits_by_instruction,
    waits_by_line,
)


def two_waves() -> Trace:
    """On two SIMDs, for 100 cycles each: the first multiplies for 64 of them, the second waits."""
    instructions = (
        TracedInstruction(0, "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]", Unit.MATRIX, "k.py", 3),
        TracedInstruction(8, "s_waitcnt vmcnt(0)", Unit.MESSAGE, "k.py", 4),
        TracedInstruction(16, "s_endpgm", Unit.MESSAGE),
    )
    waves = np.array([(0, 0, 0, 0, 0, 0, 0, 100), (0, 1, 0, 0, 1, 0, 0, 100)], WAVE)
    events = np.array(
        [
            (0, 0, 0, 32, 0, Stall.NONE),
            (0, 0, 50, 32, 46, Stall.MATRIX_BUSY),
            (0, 2, 96, 4, 42, Stall.DEPENDENCY),
            (1, 1, 90, 4, 90, Stall.WAIT_VECTOR_MEMORY),
            (1, 2, 94, 4, 0, Stall.NONE),
        ],
        EVENT,
    )
    return Trace("k", "gfx942", 2100.0, "model", 100, None, "all", instructions, waves, events)


def test_waits() -> None:
    trace = two_waves()
    assert waits_by_instruction(trace)[0] == Waits(2, {Stall.MATRIX_BUSY: 46})
    assert waits_by_line(trace)["k.py", 4] == Waits(1, {Stall.WAIT_VECTOR_MEMORY: 90})
    assert stall_cycles(trace) == {Stall.DEPENDENCY: 42, Stall.WAIT_VECTOR_MEMORY: 90, Stall.MATRIX_BUSY: 46}
    assert [index for index, _ in hot_spots(trace, 2)] == [1, 0]
    assert Waits(1, {Stall.BARRIER: 3}) + Waits(2, {Stall.BARRIER: 4}) == Waits(3, {Stall.BARRIER: 7})


def test_utilization_is_that_of_the_simds() -> None:
    assert utilization(two_waves())[Unit.MATRIX] == pytest.approx(0.32)
    starts, parts = utilization_over_time(two_waves(), 2)
    assert list(starts) == [0, 50]
    assert parts[Unit.MATRIX] == pytest.approx([0.32, 0.32])


def test_a_trace_without_waves() -> None:
    trace = Trace("k", "gfx942", 2100.0, "model", 1, None, "none", (), np.zeros(0, WAVE), np.zeros(0, EVENT))
    assert utilization(trace) == {}
    assert hot_spots(trace) == []
