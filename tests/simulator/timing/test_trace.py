"""A trace is what it says it is, also from a file; what is not is one clear error."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import EVENT, Trace
from flydsl.simulator.timing.hot_spots import costs, issue_cycles, total
from tests.simulator.timing.synthetic import synthetic


def test_a_trace_survives_json() -> None:
    trace = synthetic(waves=3, iterations=2)
    again = Trace.from_json(trace.to_json())
    for field in fields(Trace):
        before, after = getattr(trace, field.name), getattr(again, field.name)
        assert (before == after).all() if isinstance(before, np.ndarray) else before == after
    unknown = replace(trace, clock_mhz=math.nan).to_json()
    assert "NaN" not in unknown
    assert math.isnan(Trace.from_json(unknown).time_us)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", 3),
        ("cycles", "many"),
        ("origin", "guess"),
        ("clock_mhz", "fast"),
        ("instructions", [[0, "s_nop 0", 99, None, None]]),
        ("instructions", [[0, 5, 1, None, None]]),
        ("instructions", [[0, "s_nop 0", 1, 7, None]]),
        ("instructions", [[0]]),
        ("waves", {}),
        ("waves", []),
        ("events", {name: [1, 2] for name in EVENT.names[:-1]}),
        ("events", {name: ["x"] for name in EVENT.names}),
        ("events", {name: [-1] for name in EVENT.names}),
        ("events", {name: [0 if name != "reason" else 200] for name in EVENT.names}),
        ("events", {name: [0 if name != "wave" else 1000] for name in EVENT.names}),
    ],
)
def test_what_is_no_trace_is_an_error(name: str, value: object) -> None:
    content = json.loads(synthetic(waves=1, iterations=1).to_json())
    with pytest.raises(ArgumentError):
        Trace.from_json(json.dumps(content | {name: value}))


@pytest.mark.parametrize("text", ["", "{}", "[]", "3", "[" * 100_000, '{"kernel": '])
def test_other_texts_are_an_error(text: str) -> None:
    with pytest.raises(ArgumentError, match="this is not a trace"):
        Trace.from_json(text)


def test_events_are_in_order_and_waves_end_after_they_start() -> None:
    trace = synthetic(waves=2, iterations=1)
    with pytest.raises(ArgumentError, match="not sorted"):
        replace(trace, events=trace.events[::-1])
    with pytest.raises(ArgumentError, match="not sorted"):
        replace(trace, events=trace.events[[1, 0]])
    waves = trace.waves.copy()
    waves["end"][0] = 0
    with pytest.raises(ArgumentError, match="ends before it starts"):
        replace(trace, waves=waves)


def test_a_trace_that_is_cut_off_does_not_give_its_rest_to_the_last_instruction() -> None:
    trace = synthetic(waves=1, iterations=9)
    cut = replace(trace, events=trace.events[:20])
    assert issue_cycles(cut)[-1] == 0
    assert total(costs(cut)).cycles < total(costs(trace)).cycles / 2
