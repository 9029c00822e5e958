"""What a trace comes to: how busy the units are, and where waves wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.trace import Stall, Trace, Unit

_BUSY_CYCLES = 4
"""For which an instruction holds the issue port of its unit. Matrix instructions hold their core for longer."""


@dataclass(frozen=True)
class Waits:
    """executions: of an instruction or a line, by all waves. stalls: the cycles waited before, by reason."""

    executions: int
    stalls: Mapping[Stall, int] = field(default_factory=dict)

    @property
    def stall_cycles(self) -> int:
        """Cycles waited for all reasons."""
        return sum(self.stalls.values())

    def __add__(self, other: Waits) -> Waits:
        reasons = sorted(self.stalls.keys() | other.stalls.keys())
        stalls = {reason: self.stalls.get(reason, 0) + other.stalls.get(reason, 0) for reason in reasons}
        return Waits(self.executions + other.executions, stalls)


def waits_by_instruction(trace: Trace) -> dict[int, Waits]:
    """The waits before each instruction that was executed, by its index."""
    events, count = trace.events, len(trace.instructions)
    executions = np.bincount(events["instruction"], minlength=count)
    stalls = np.zeros((count, len(Stall)), np.int64)
    np.add.at(stalls, (events["instruction"], events["reason"]), events["stall"])
    return {int(i): Waits(int(executions[i]), _named(stalls[i])) for i in np.flatnonzero(executions)}


def waits_by_line(trace: Trace) -> dict[tuple[str, int], Waits]:
    """The waits before the instructions of each source line: by file and line."""
    found: dict[tuple[str, int], Waits] = {}
    for index, waits in waits_by_instruction(trace).items():
        instruction = trace.instructions[index]
        if instruction.file is not None and instruction.line is not None:
            at = instruction.file, instruction.line
            found[at] = found.get(at, Waits(0)) + waits
    return found


def stall_cycles(trace: Trace) -> dict[Stall, int]:
    """The cycles that all waves waited, by reason."""
    totals = np.bincount(trace.events["reason"], weights=trace.events["stall"], minlength=len(Stall))
    return _named(totals.astype(np.int64))


def hot_spots(trace: Trace, count: int = 10) -> list[tuple[int, Waits]]:
    """The instructions before which waves waited longest, by index, the worst first."""
    found = sorted(waits_by_instruction(trace).items(), key=lambda item: (-item[1].stall_cycles, item[0]))
    return [(index, waits) for index, waits in found[:count] if waits.stall_cycles]


def utilization(trace: Trace) -> dict[Unit, float]:
    """The part of the cycles in which each unit of the traced compute units is held, from 0 to 1.

    Of units that a SIMD has for itself (matrix core, vector and scalar ALU), the mean of the SIMDs that have waves.
    """
    return {unit: float(np.mean(parts)) for unit, parts in _held(trace)}


def utilization_over_time(trace: Trace, intervals: int) -> tuple[Array, dict[Unit, Array]]:
    """(the beginnings of equal intervals in cycles, the part of each in which a unit is held)."""
    first, last = _span(trace)
    edges = np.linspace(first, last, intervals + 1)
    simds = len(np.unique(trace.waves[["xcd", "cu", "simd"]])) or 1
    units = _units(trace)
    found = {}
    for unit in Unit:
        events = trace.events[units == unit]
        if len(events):
            found[unit] = _coverage(events["issue"], _held_cycles(events, unit), edges) / simds
    return edges[:-1], {unit: np.minimum(part, 1.0) for unit, part in found.items()}


def _named(cycles: Array) -> dict[Stall, int]:
    return {Stall(i): int(c) for i, c in enumerate(cycles) if c}


def _units(trace: Trace) -> Array:
    return np.array([int(i.unit) for i in trace.instructions], np.uint8)[trace.events["instruction"]]


def _span(trace: Trace) -> tuple[int, int]:
    if not len(trace.waves):
        return 0, 1
    return int(trace.waves["start"].min()), max(int(trace.waves["end"].max()), 1)


def _held_cycles(events: Array, unit: Unit) -> Array:
    """The cycles for which each event holds its unit."""
    if unit in (Unit.MATRIX, Unit.VALU, Unit.TRANSCENDENTAL):
        return events["latency"].astype(np.float64)
    return np.full(len(events), float(_BUSY_CYCLES))


def _held(trace: Trace) -> Iterator[tuple[Unit, list[float]]]:
    first, last = _span(trace)
    units, waves = _units(trace), trace.waves
    simd_of_wave = np.unique(waves[["xcd", "cu", "simd"]], return_inverse=True)[1].reshape(-1)
    for unit in Unit:
        chosen = units == unit
        if not chosen.any():
            continue
        held = _held_cycles(trace.events[chosen], unit)
        of_simd = np.bincount(
            simd_of_wave[trace.events["wave"][chosen]], weights=held, minlength=simd_of_wave.max() + 1
        )
        yield unit, list(np.minimum(of_simd / (last - first), 1.0))


def _coverage(starts: Array, lengths: Array, edges: Array) -> Array:
    """The part of each interval between edges that spans cover, all added up."""
    starts, ends = starts.astype(np.float64), starts.astype(np.float64) + lengths
    order = np.sort(starts), np.sort(ends)
    before = [_area(sorted_, edges) for sorted_ in order]
    covered = before[0] - before[1]
    return np.diff(covered) / np.diff(edges)


def _area(times: Array, edges: Array) -> Array:
    """The sum of max(0, edge - time) for each edge."""
    count = np.searchsorted(times, edges)
    sums = np.concatenate([[0.0], np.cumsum(times)])
    return count * edges - sums[count]
