"""Waits of a trace that wait for more than what is used next, and the cycles that weaker ones would save.

A wait until n operations are under way lets the oldest go and may stall for the youngest of them, though nothing uses
that one for long. With a count that is larger by k the wave would go on as soon as the others have come, and wait for
the last k before their first use. What that saves is bounded by the stall, and by the time until that first use. Only
loads into registers can be left for later: what a store, or a load to LDS, has to be waited for is not seen in a wave's
own instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from flydsl.arch import get_arch
from flydsl.errors import ArchError
from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.simulator.timing.trace import Stall, Trace
from flydsl.simulator.waits.instructions import Facts, facts_of

_COLUMNS = ("instruction", "issue", "stall", "reason")
_SOON_CYCLES = 32
_REASONS = (Stall.WAIT_VECTOR_MEMORY, Stall.WAIT_LDS)


@dataclass(frozen=True)
class StrongWait:
    """instruction: index into `Trace.instructions`. The wait is for `counter` to be at_most; `enough` would do.

    loads: the number of loads that could be waited for later. unused_cycles: from the wait to the first use of any of
    them, on average. stall_cycles, saved_cycles: of all traced waves together.
    """

    instruction: int
    counter: str
    at_most: int
    enough: int
    loads: int
    unused_cycles: float
    stall_cycles: int
    saved_cycles: int


@dataclass
class _Stalled:
    """One execution of a wait that stalled. let_go: rows of the operations it waited for, the oldest first."""

    row: int
    counter: str
    let_go: list[int]
    first_use: dict[int, int] = field(default_factory=dict)
    """By the row of each load that was let go, the cycle of the first instruction that needs its registers."""


def strong_waits(trace: Trace) -> tuple[StrongWait, ...]:
    """The waits that weaker ones would improve, the most costly first. Empty for traces that were measured: they do
    not say when a load has come."""
    if trace.origin != "model" or not len(trace.events):
        return ()
    try:
        arch = get_arch(trace.arch)
    except ArchError:  # a trace from a file may be of any GPU
        return ()
    listed = tuple(ListedInstruction(each.text, i + 1, None) for i, each in enumerate(trace.instructions))
    facts = facts_of(Listing(listed, {}), arch)
    savings: dict[tuple[int, str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for stalled in _stalls(trace, facts):
        for later, unused, saved in _savings(trace, facts, stalled):
            instruction = int(trace.events["instruction"][stalled.row])
            stall = int(trace.events["stall"][stalled.row])
            savings[instruction, stalled.counter, later].append((unused, stall, saved))
    best: dict[tuple[int, str], StrongWait] = {}
    for (instruction, counter, later), found in savings.items():
        at_most = facts[instruction].limits[counter]
        unused, stall, saved = (sum(column) for column in zip(*found, strict=True))
        wait = StrongWait(instruction, counter, at_most, at_most + later, later, unused / len(found), stall, saved)
        if (instruction, counter) not in best or saved > best[instruction, counter].saved_cycles:
            best[instruction, counter] = wait
    return tuple(sorted((wait for wait in best.values() if wait.saved_cycles), key=lambda wait: -wait.saved_cycles))


def _stalls(trace: Trace, facts: list[Facts]) -> Iterator[_Stalled]:
    """The executions of waits that stalled, one wave after the other."""
    events = trace.events
    bounds = [*np.flatnonzero(np.diff(events["wave"].astype(np.int64), prepend=-1)).tolist(), len(events)]
    for start, end in pairwise(bounds):
        yield from _stalls_of_wave(trace, facts, range(start, end))


def _stalls_of_wave(trace: Trace, facts: list[Facts], rows: range) -> list[_Stalled]:
    """Follow a wave: operations under way by counter, and the loads whose first use has not been met."""
    columns = [trace.events[name][rows.start : rows.stop].tolist() for name in _COLUMNS]
    queues: dict[str, list[int]] = defaultdict(list)
    unused: dict[int, tuple[int, list[_Stalled]]] = {}  # row of a load -> its registers, the waits that let it go
    registers, found = 0, list[_Stalled]()
    instructions: dict[int, int] = {}
    for row, instruction, issue, stall, reason in zip(rows, *columns, strict=True):
        fact = facts[instruction]
        if (fact.reads | fact.writes) & registers:
            for load in [load for load, (results, _) in unused.items() if (fact.reads | fact.writes) & results]:
                for stalled in unused.pop(load)[1]:
                    stalled.first_use[load] = issue
            registers = _union(unused)
        for counter, most in fact.limits.items():
            queue = queues[counter]
            let_go, queues[counter] = queue[: max(len(queue) - most, 0)], queue[max(len(queue) - most, 0) :]
            if (
                stall
                and reason in _REASONS
                and let_go
                and all(_comes_in_order(facts[instructions[other]], counter) for other in queue)
            ):
                found.append(_Stalled(row, counter, let_go))
                for load in let_go:
                    if load in unused:
                        unused[load][1].append(found[-1])
        if fact.streams:
            instructions[row] = instruction
            for stream in fact.streams:
                queues[stream.counter].append(row)
            if fact.results:
                unused[row] = (fact.results, [])
                registers |= fact.results
    return found


def _comes_in_order(fact: Facts, counter: str) -> bool:
    return all(stream.in_order for stream in fact.streams if stream.counter == counter)


def _union(unused: dict[int, tuple[int, list[_Stalled]]]) -> int:
    found = 0
    for results, _ in unused.values():
        found |= results
    return found


def _savings(trace: Trace, facts: list[Facts], stalled: _Stalled) -> Iterator[tuple[int, int, int]]:
    """For each number of the youngest loads left for later: cycles until one is used, and cycles that it saves."""
    events = trace.events
    issue = int(events["issue"][stalled.row])
    begin = issue - int(events["stall"][stalled.row])
    come = [int(events["issue"][row]) + int(events["latency"][row]) for row in stalled.let_go]
    first_use = 1 << 62
    for later, row in enumerate(reversed(stalled.let_go), start=1):
        if not facts[int(events["instruction"][row])].results:
            return  # a store, or a load to LDS
        first_use = min(first_use, stalled.first_use.get(row, int(trace.waves["end"][events["wave"][row]])))
        if first_use - issue < _SOON_CYCLES:
            return
        goes_on = max([begin, *come[: len(come) - later]])
        yield later, first_use - issue, max(min(issue - goes_on, first_use - issue), 0)
