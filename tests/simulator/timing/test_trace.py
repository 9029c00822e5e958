"""A trace is plain data that survives a round trip, and refuses what does not fit together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit


def small_trace() -> Trace:
    instructions = (
        TracedInstruction(0, "v_add_f32_e32 v0, v1, v2", Unit.VALU, "kernel.py", 7),
        TracedInstruction(4, "s_endpgm", Unit.MESSAGE),
    )
    waves = np.array([(3, 1, 2, 5, 1, 0, 100, 140)], WAVE)
    events = np.array([(0, 0, 100, 8, 0, Stall.NONE), (0, 1, 108, 1, 7, Stall.DEPENDENCY)], EVENT)
    return Trace("k", "gfx942", 2100.0, "model", 4200, 20.0, "1 of 1 workgroups", instructions, waves, events)


def test_a_round_trip_keeps_everything() -> None:
    trace = small_trace()
    back = Trace.from_json(trace.to_json())
    assert back.to_json() == trace.to_json()
    assert back.instructions == trace.instructions
    assert np.array_equal(back.waves, trace.waves)
    assert np.array_equal(back.events, trace.events)
    assert back.time_us == 2.0


def test_the_text_says_time_error_and_sampling() -> None:
    assert "2 us +- 20 % (4200 cycles at 2100 MHz, model)" in repr(small_trace())
    assert "1 of 1 workgroups" in repr(small_trace())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"instructions": [[1]]}'])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a trace"):
        Trace.from_json(text)


def test_events_that_point_nowhere_are_refused() -> None:
    trace = small_trace()
    events = trace.events.copy()
    events["instruction"] = 2
    with pytest.raises(ArgumentError, match="instruction 2, but there are 2"):
        replace(trace, events=events)
    with pytest.raises(ArgumentError, match="have type"):
        replace(trace, events=trace.waves)
    with pytest.raises(ArgumentError, match="origin"):
        replace(trace, origin="guess")
