"""Hot spots of the traced waves: cycles of each instruction and of each line of the source.

The time of a wave is divided without rest: an instruction has the cycles that the wave stalled before it, and those
from its issue until the wave tries to issue the next one. So the shares of all instructions add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flydsl.errors import SourceLocation
from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.trace import Stall, Trace

_NO_STALLS = (0,) * len(Stall)


@dataclass(frozen=True)
class Cost:
    """Cycles, summed over waves and executions. `+` adds two of them.

    issue_cycles: from the issue until the wave tries the next instruction. stalls: cycles before the issue, by Stall.
    latency_cycles: from the issue until the result is there; the wave itself may go on meanwhile.
    """

    executions: int = 0
    issue_cycles: int = 0
    stalls: tuple[int, ...] = _NO_STALLS
    latency_cycles: int = 0

    @property
    def stall_cycles(self) -> int:
        """Cycles before the issue, for all reasons."""
        return sum(self.stalls)

    @property
    def cycles(self) -> int:
        """All cycles of the waves that this accounts for."""
        return self.issue_cycles + self.stall_cycles

    @property
    def main_reason(self) -> Stall:
        """The reason of most of the stalls; NONE where there is no stall."""
        return Stall(max(range(len(Stall)), key=lambda reason: self.stalls[reason]) if self.stall_cycles else 0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.executions + other.executions,
            self.issue_cycles + other.issue_cycles,
            tuple(a + b for a, b in zip(self.stalls, other.stalls, strict=True)),
            self.latency_cycles + other.latency_cycles,
        )


def issue_cycles(trace: Trace) -> Array:
    """For each event, the cycles from its issue until its wave tries the next instruction, or ends.

    Where the trace of a wave is cut off before its end, the cycles of the last one are unknown: it gets none.
    """
    events = trace.events
    issue = events["issue"].astype(np.int64)
    until = np.append((issue - events["stall"])[1:], 0)
    is_last = np.append(events["wave"][1:] != events["wave"][:-1], True)[: len(events)]
    until = until[: len(events)]
    until[is_last] = trace.waves["end"][events["wave"][is_last]]
    ends = np.array([instruction.text.startswith("s_endpgm") for instruction in trace.instructions], bool)
    is_cut = is_last & ~ends[events["instruction"]] if len(ends) else is_last
    return np.where(is_cut, 0, np.maximum(until - issue, 0))


def costs(trace: Trace) -> tuple[Cost, ...]:
    """The cost of each instruction of `Trace.instructions`, those without an execution included."""
    events, count = trace.events, len(trace.instructions)
    which = events["instruction"].astype(np.int64)
    executions = np.bincount(which, minlength=count)
    issue = _sums(which, issue_cycles(trace), count)
    latency = _sums(which, events["latency"], count)
    cells = which * len(Stall) + events["reason"]
    stalls = _sums(cells, events["stall"], count * len(Stall)).reshape(count, len(Stall))
    return tuple(
        Cost(int(executions[i]), int(issue[i]), tuple(map(int, stalls[i])), int(latency[i])) for i in range(count)
    )


def _sums(cells: Array, amounts: Array, count: int) -> Array:
    """The sum of the amounts of each cell. Exact below 2**53."""
    return np.bincount(cells, weights=amounts, minlength=count).astype(np.int64)


def total(parts: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    found = Cost()
    for part in parts:
        found += part
    return found


def by_source_line(trace: Trace) -> dict[SourceLocation, Cost]:
    """The cost of each line of the source, in order. Instructions without a line are left out."""
    found: dict[SourceLocation, Cost] = {}
    for instruction, cost in zip(trace.instructions, costs(trace), strict=True):
        if instruction.file is not None and instruction.line is not None and cost.executions:
            place = SourceLocation(instruction.file, instruction.line, is_claimed=True)
            found[place] = found.get(place, Cost()) + cost
    return dict(sorted(found.items(), key=lambda item: (item[0].file, item[0].line)))


def hottest(trace: Trace, count: int | None = None) -> list[int]:
    """The instructions with the most cycles first, by index; those that were not executed are left out."""
    found = costs(trace)
    executed = [i for i, cost in enumerate(found) if cost.executions]
    return sorted(executed, key=lambda i: -found[i].cycles)[:count]
