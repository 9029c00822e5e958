"""The loops of a program as the trace shows them: where a wave goes back to an instruction before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flydsl.simulator.timing.hot_spots import Cost, costs, total
from flydsl.simulator.timing.trace import Trace

_INNER_SHARE = 0.8  # of the time of a loop, for the loop inside it to be the one to look at
_LEAST_SHARE = 0.2  # of the whole time, for a loop to be worth looking at


@dataclass(frozen=True)
class Region:
    """Instructions first to last, which are a loop or the whole program. runs: of its first instruction, by all waves.

    cost: of its instructions together.
    """

    first: int
    last: int
    runs: int
    cost: Cost
    is_loop: bool

    @property
    def cycles_per_run(self) -> float:
        """Cycles that a wave needs to go through it once, as a mean."""
        return self.cost.cycles / max(self.runs, 1)

    def __contains__(self, instruction: int) -> bool:
        return self.first <= instruction <= self.last


def loops(trace: Trace) -> list[Region]:
    """Every loop that a wave repeated, outer ones before those inside them."""
    events = trace.events
    same_wave = events["wave"][1:] == events["wave"][:-1]
    before, after = events["instruction"][:-1], events["instruction"][1:]
    goes_back = same_wave & (after <= before)
    ends: dict[int, int] = {}
    for head, tail in np.unique(np.stack([after[goes_back], before[goes_back]], axis=1), axis=0).tolist():
        ends[head] = max(ends.get(head, 0), tail)
    parts = costs(trace)
    return [_region(parts, head, tail, is_loop=True) for head, tail in sorted(ends.items())]


def hot_region(trace: Trace) -> Region:
    """The innermost loop in which most of the time goes; the whole program where no loop takes a fifth of it."""
    whole = _region(costs(trace), 0, len(trace.instructions) - 1, is_loop=False)
    found = whole
    for loop in sorted(loops(trace), key=lambda loop: loop.first - loop.last):
        is_inside = loop.first in found and loop.last in found
        least = _INNER_SHARE * found.cost.cycles if found.is_loop else _LEAST_SHARE * whole.cost.cycles
        if (is_inside and loop.cost.cycles >= least) or (found.is_loop and loop.cost.cycles > found.cost.cycles):
            found = loop
    return found


def _region(parts: tuple[Cost, ...], first: int, last: int, *, is_loop: bool) -> Region:
    runs = parts[first].executions if parts else 0
    return Region(first, last, runs, total(parts[first : last + 1]), is_loop)
