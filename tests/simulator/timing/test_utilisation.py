"""The share of the time in which units have work, against counting cycle by cycle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from flydsl.simulator.timing import Trace, Unit
from flydsl.simulator.timing.utilisation import OF_A_SIMD, UNITS, shares, span, utilisation
from tests.simulator.timing.synthetic import synthetic


def counted(trace: Trace, unit: Unit, edges: list[int]) -> list[float]:
    """The shares, one cycle after the other."""
    first, last = span(trace)
    names = ("xcd", "cu", "simd") if unit in OF_A_SIMD else ("xcd", "cu")
    groups = [tuple(int(wave[name]) for name in names) for wave in trace.waves]
    alive, busy = ({group: np.zeros(last - first + 10_000, bool) for group in groups} for _ in range(2))
    for group, wave in zip(groups, trace.waves, strict=True):
        alive[group][int(wave["start"]) - first : int(wave["end"]) - first] = True
    for event in trace.events:
        if trace.instructions[event["instruction"]].unit is unit:
            begin = int(event["issue"]) - first
            busy[groups[event["wave"]]][begin : begin + int(event["latency"])] = True
    found = []
    for begin, end in pairwise(edges):
        part = slice(begin - first, end - first)
        cycles = sum(int(alive[group][part].sum()) for group in alive)
        found.append(min(1.0, sum(int(busy[group][part].sum()) for group in busy) / cycles) if cycles else 0.0)
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_shares_are_those_of_counting_cycles(unit: Unit) -> None:
    trace = synthetic(waves=7, iterations=4, seed=3, jitter=20)
    first, last = span(trace)
    edges = [first, first + 17, (first + last) // 2, last - 5, last]
    assert shares(trace, unit, np.array(edges)) == pytest.approx(counted(trace, unit, edges))


def test_the_whole_trace() -> None:
    found = utilisation(synthetic(waves=8, iterations=20))
    assert found.waves_per_simd == pytest.approx(2, abs=0.1)
    assert Unit.TRANSCENDENTAL not in found.busy
    assert found.busiest is not None
    assert found.busiest[0] is Unit.MATRIX
    assert 0 < found.issuing < 1


def test_nothing_at_all() -> None:
    trace = synthetic(waves=1)
    empty = Trace("k", "gfx942", 1.0, "model", 0, None, "nothing", (), trace.waves[:0], trace.events[:0])
    assert utilisation(empty).busy == {}
    assert utilisation(empty).busiest is None
    assert span(empty) == (0, 0)
