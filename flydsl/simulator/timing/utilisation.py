"""The share of the time that each unit has something to do.

A unit is busy while an instruction of it is in flight: issued, and neither ended nor its result there. Several that
overlap count once. Vector and matrix units are those of a SIMD, the others those of a compute unit; what is given is
the mean over those that had a wave, of the cycles in which they had one.

For memory this says whether a request is under way, not how much of the bandwidth is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.hot_spots import issue_cycles
from flydsl.simulator.timing.trace import Trace, Unit

OF_A_SIMD = frozenset({Unit.VALU, Unit.TRANSCENDENTAL, Unit.MATRIX})
UNITS = tuple(unit for unit in Unit if unit is not Unit.MESSAGE)
"""The units; waits and barriers occupy none."""


@dataclass(frozen=True)
class Utilisation:
    """Shares of the cycles, from 0 to 1.

    busy: of each unit that is used. issuing: of a SIMD's cycles, those in which a wave of it is not stalled.
    waves_per_simd: the mean number of waves that a SIMD has while it has one.
    """

    busy: dict[Unit, float]
    issuing: float
    waves_per_simd: float

    @property
    def busiest(self) -> tuple[Unit, float] | None:
        """The vector, matrix or scalar unit that is busy most of the time; None without instructions of any."""
        found = [(unit, share) for unit, share in self.busy.items() if unit in OF_A_SIMD | {Unit.SCALAR}]
        return max(found, key=lambda pair: pair[1], default=None)


def utilisation(trace: Trace, first: int | None = None, last: int | None = None) -> Utilisation:
    """The shares between two cycles, by default of the whole trace."""
    first, last = _window(trace, first, last)
    busy = {
        unit: float(shares(trace, unit, np.array([first, last]))[0])
        for unit in UNITS
        if any(i.unit == unit for i in trace.instructions)
    }
    alive = _length(trace, _wave_groups(trace, by_simd=True), first, last)
    lifetimes = np.clip(trace.waves["end"], first, last) - np.clip(trace.waves["start"], first, last)
    mean_waves = float(lifetimes.sum()) / alive if alive else 0.0
    return Utilisation({u: share for u, share in busy.items() if share}, _issuing(trace, first, last), mean_waves)


def shares(trace: Trace, unit: Unit, edges: Array) -> Array:
    """The share of a unit in each of the spans between successive cycles of `edges`."""
    by_simd = unit in OF_A_SIMD
    used = np.array([i.unit == unit for i in trace.instructions], bool)
    events = trace.events[used[trace.events["instruction"]]] if len(used) else trace.events
    starts = events["issue"].astype(np.int64)
    groups = _wave_groups(trace, by_simd=by_simd)
    busy = covered(groups[events["wave"]], starts, starts + events["latency"], edges)
    return _share(busy, _alive(trace, groups, edges))


def _issuing(trace: Trace, first: int, last: int) -> float:
    edges = np.array([first, last])
    groups = _wave_groups(trace, by_simd=True)
    starts = trace.events["issue"].astype(np.int64)
    busy = covered(groups[trace.events["wave"]], starts, starts + issue_cycles(trace), edges)
    return float(_share(busy, _alive(trace, groups, edges))[0])


def _share(busy: Array, alive: Array) -> Array:
    return np.minimum(np.divide(busy, alive, out=np.zeros(len(busy)), where=alive > 0), 1.0)


def _window(trace: Trace, first: int | None, last: int | None) -> tuple[int, int]:
    begin, end = span(trace)
    return begin if first is None else first, end if last is None else last


def span(trace: Trace) -> tuple[int, int]:
    """The cycle in which the first wave starts, and that in which the last one ends; 0 and 0 without waves."""
    if not len(trace.waves):
        return 0, 0
    return int(trace.waves["start"].min()), int(trace.waves["end"].max())


def _wave_groups(trace: Trace, *, by_simd: bool) -> Array:
    """A number for the SIMD or the compute unit of each wave."""
    waves = trace.waves
    cu = waves["xcd"].astype(np.int64) << 16 | waves["cu"]
    return cu << 8 | waves["simd"] if by_simd else cu


def _alive(trace: Trace, groups: Array, edges: Array) -> Array:
    """In each span, the cycles in which a group had a wave, summed over groups."""
    return covered(groups, trace.waves["start"].astype(np.int64), trace.waves["end"].astype(np.int64), edges)


def _length(trace: Trace, groups: Array, first: int, last: int) -> int:
    return int(_alive(trace, groups, np.array([first, last]))[0])


def covered(groups: Array, starts: Array, ends: Array, edges: Array) -> Array:
    """In each span between edges, the cycles that intervals cover, overlaps of a group once, summed over groups."""
    found = np.zeros(len(edges) - 1)
    for first, last in _merged(groups, starts, ends):
        lengths = np.append(0, np.cumsum(last - first))
        position = np.searchsorted(first, edges, side="right")
        inside = np.where(position > 0, np.minimum(edges, last[position - 1]) - first[position - 1], 0)
        before = lengths[np.maximum(position - 1, 0)]
        found += np.diff(before + inside)
    return found


def _merged(groups: Array, starts: Array, ends: Array) -> Iterator[tuple[Array, Array]]:
    """The beginnings and ends of what each group's intervals cover together, in order."""
    order = np.lexsort((starts, groups))
    groups, starts, ends = groups[order], starts[order], ends[order]
    limits = np.flatnonzero(np.diff(groups)) + 1
    for first, last in zip(np.append(0, limits), np.append(limits, len(groups)), strict=True):
        if first == last:
            continue
        begin, end = starts[first:last], np.maximum.accumulate(ends[first:last])
        is_new = np.append(True, begin[1:] > end[:-1])
        yield begin[is_new], end[np.append(is_new[1:], True)]
