"""The time of the waves is divided among instructions and lines without rest."""

from __future__ import annotations

import numpy as np
import pytest

from flydsl.errors import SourceLocation
from flydsl.simulator.timing import Stall, Trace
from flydsl.simulator.timing.hot_spots import by_source_line, costs, hottest, issue_cycles, total
from tests.simulator.timing.synthetic import LOOP, PROLOGUE, SOURCE, synthetic


@pytest.mark.parametrize("seed", range(5))
def test_the_cycles_of_all_instructions_are_those_of_the_waves(seed: int) -> None:
    trace = synthetic(waves=6, iterations=5, seed=seed, jitter=9)
    assert total(costs(trace)).cycles == int((trace.waves["end"] - trace.waves["start"]).sum())
    assert total(costs(trace)).executions == len(trace.events)


def test_each_instruction_has_its_executions_and_stalls() -> None:
    trace = synthetic(waves=3, iterations=4, jitter=0)
    found = costs(trace)
    wait = len(PROLOGUE) + 2
    assert found[wait].executions == 12
    assert found[wait].stalls[Stall.WAIT_LDS] == found[wait].stall_cycles == 12 * LOOP[2].stall
    assert found[wait].main_reason is Stall.WAIT_LDS
    assert found[0].main_reason is Stall.NONE
    assert hottest(trace, 1) == [wait]


def test_lines_have_the_sum_of_their_instructions() -> None:
    trace = synthetic(waves=2, iterations=3, jitter=0)
    lines = by_source_line(trace)
    assert [place.line for place in lines] == [10, 19, 20, 21, 22, 23, 30]
    both = costs(trace)[len(PROLOGUE) + 3] + costs(trace)[len(PROLOGUE) + 4]
    assert lines[SourceLocation(SOURCE, 22)] == both


def test_the_last_instruction_lasts_until_the_wave_ends() -> None:
    trace = synthetic(waves=2, iterations=1)
    last = np.flatnonzero(np.diff(trace.events["wave"], append=99))
    assert (trace.events["issue"][last] + issue_cycles(trace)[last] == trace.waves["end"]).all()


def test_a_trace_without_events() -> None:
    trace = synthetic(waves=1)
    empty = Trace(*("k", "gfx942", 1.0, "model", 0, None, "nothing", (), trace.waves[:0], trace.events[:0]))
    assert costs(empty) == ()
    assert by_source_line(empty) == {}
    assert len(issue_cycles(empty)) == 0
