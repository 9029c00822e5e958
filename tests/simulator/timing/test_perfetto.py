"""What is written is the trace event format: events have what their kind needs, slices of a wave do not overlap."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Unit
from flydsl.simulator.timing.perfetto import chrome_trace, write_chrome_trace
from tests.simulator.timing.synthetic import synthetic

_NEEDED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid"},
    "M": {"name", "pid", "tid", "args"},
    "C": {"name", "ts", "pid", "args"},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict:
    path = write_chrome_trace(synthetic(waves=5, iterations=4), tmp_path_factory.mktemp("perfetto") / "trace.json")
    return json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_every_event_has_what_its_kind_needs(written: dict) -> None:
    assert set(written) == {"traceEvents", "displayTimeUnit", "otherData"}
    for event in written["traceEvents"]:
        assert event["ph"] in _NEEDED
        assert not _NEEDED[event["ph"]] - set(event), event
        assert all(isinstance(event[name], int) for name in ("pid", "tid") if name in event)
        assert all(event[name] >= 0 and math.isfinite(event[name]) for name in ("ts", "dur") if name in event)


def test_slices_of_a_wave_follow_each_other(written: dict) -> None:
    threads = defaultdict(list)
    for event in written["traceEvents"]:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(threads) == 5
    for slices in threads.values():
        slices.sort()
        assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(slices))


def test_every_instruction_and_stall_is_there_at_its_time() -> None:
    trace = synthetic(waves=2, iterations=3)
    slices = [event for event in chrome_trace(trace)["traceEvents"] if event["ph"] == "X"]
    instructions = [event for event in slices if event["cat"] != "stall"]
    assert len(instructions) == len(trace.events)
    assert len(slices) - len(instructions) == (trace.events["stall"] > 0).sum()
    first = int(trace.waves["start"].min())
    assert [event["ts"] for event in instructions] == pytest.approx((trace.events["issue"] - first) / 2100.0)
    assert instructions[3]["args"]["source"] == "/src/kernel.py:20"


def test_threads_and_units_have_names(written: dict) -> None:
    names = [event["args"]["name"] for event in written["traceEvents"] if event["ph"] == "M"]
    assert "synthetic: XCD 0 CU 1" in names
    assert "SIMD 1 slot 0: workgroup 0 wave 1" in names
    counters = {event["name"] for event in written["traceEvents"] if event["ph"] == "C"}
    assert f"{Unit.MATRIX.name.lower()} in use" in counters


def test_a_folder_that_is_missing_is_an_error(tmp_path) -> None:
    with pytest.raises(ArgumentError, match="no folder"):
        write_chrome_trace(synthetic(waves=1, iterations=1), tmp_path / "missing" / "trace.json")


def test_without_a_clock_a_cycle_is_a_nanosecond() -> None:
    trace = replace(synthetic(waves=1, iterations=1), clock_mhz=math.nan)
    found = chrome_trace(trace)
    assert found["otherData"]["clock_is_known"] is False
    last = max(event["ts"] + event["dur"] for event in found["traceEvents"] if event["ph"] == "X")
    assert last == pytest.approx(int(trace.waves["end"].max() - trace.waves["start"].min()) / 1000)
