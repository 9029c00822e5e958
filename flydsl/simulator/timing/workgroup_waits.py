"""The time for which workgroups wait for each other: all of them, by when the replayed ones come to their signals.

A workgroup does as the one does that was replayed in its place, one of the same signals where there is one, but that
it waits until the words that it awaits were written often enough. What it does later is as much later.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flydsl.simulator.timing.signals import Signal


@dataclass(frozen=True)
class Course:
    """When a replayed workgroup starts and ends, and for each of its signals when it asks and when it is written."""

    start: int
    end: int
    asks: Sequence[int]
    written: Sequence[int]


@dataclass(frozen=True)
class Awaited:
    """The wait of a signal, in cycles, and the workgroup whose write ended it."""

    cycles: int
    workgroup: int


@dataclass
class Waits:
    """of: by workgroup, the waits of its signals, by their index. end: of the last workgroup, own_end: of the last one
    on the replayed die. endless: workgroups whose waits nobody ends."""

    of: dict[int, dict[int, Awaited]] = field(default_factory=dict)
    end: int = 0
    own_end: int = 0
    endless: int = 0


@dataclass
class _Going:
    """A workgroup on its way. steps: the indices of its signals by time, `next` the one to come; late: by how much."""

    workgroup: int
    course: Course
    steps: list[int]
    start: int
    next: int = 0
    late: int = 0

    def at(self, cycle: int) -> int:
        """When it does what the replayed one does at a cycle."""
        return self.start + cycle - self.course.start + self.late


class Grid:
    """The workgroups of a launch. dies: take them in turn. places: of a die. between: cycles from a workgroup's end
    until the next one starts in its place."""

    def __init__(
        self,
        count: int,
        dies: int,
        places: int,
        between: int,
        signals: Mapping[int, list[Signal]],
        courses: Mapping[int, Course],
        likeness: Sequence[int],
    ) -> None:
        """courses: of the replayed workgroups. likeness: for each workgroup the replayed one in its place."""
        self._count, self._dies, self._places, self._between = count, dies, places, between
        self._signals, self._courses, self._likeness = signals, courses, likeness
        self._by_form = dict[tuple[tuple[int, int], ...], int]()
        for workgroup in courses:
            self._by_form.setdefault(self._form(workgroup), workgroup)

    def waits(self) -> Waits:
        """Let all workgroups run."""
        self._found, self._todo = Waits(), list[tuple[int, int, int, _Going]]()
        self._written = defaultdict[int, list[tuple[int, int]]](list)
        self._waiting = defaultdict[int, list[tuple[int, _Going]]](list)
        self._order = 0
        self._next_of_die = [min(d + self._dies * self._places, self._count + d) for d in range(self._dies)]
        for workgroup in range(min(self._count, self._dies * self._places)):
            self._start(workgroup, self._courses[self._likeness[workgroup]].start)
        while self._todo:
            self._step(*heapq.heappop(self._todo))
        self._found.endless = sum(map(len, self._waiting.values()))
        return self._found

    def _form(self, workgroup: int) -> tuple[tuple[int, int], ...]:
        return tuple((s.wave, s.instruction) for s in self._signals.get(workgroup, ()))

    def _start(self, workgroup: int, start: int) -> None:
        like = self._likeness[workgroup]
        form = self._form(workgroup)
        if form != self._form(like):
            like = self._by_form.get(form, like)
        course = self._courses[like]
        if len(course.asks) != len(form):
            course = _spread(course, len(form))
        signals = self._signals.get(workgroup, [])
        # A wave's signals are in order, whatever rounding made of their times.
        steps = sorted(range(len(form)), key=lambda k: (course.asks[k], signals[k].wave, k))
        self._go_on(_Going(workgroup, course, steps, start))

    def _go_on(self, going: _Going) -> None:
        """Look at a workgroup again when it asks or writes next, or ends."""
        if going.next == len(going.steps):
            time, kind = going.at(going.course.end), 1
        else:
            step = going.steps[going.next]
            signal = self._signals[going.workgroup][step]
            time, kind = going.at((going.course.asks if signal.needs else going.course.written)[step]), 0
        self._push(time, kind, going)

    def _push(self, time: int, kind: int, going: _Going) -> None:
        self._order += 1
        heapq.heappush(self._todo, (time, self._order, kind, going))

    def _step(self, time: int, _order: int, kind: int, going: _Going) -> None:
        if kind:
            self._end(time, going)
            return
        step = going.steps[going.next]
        signal = self._signals[going.workgroup][step]
        asked = going.at(going.course.asks[step])
        if signal.needs and not self._is_there(signal, going, time):
            return
        if signal.needs and time > asked:
            last = max(self._written[address][version - 1] for address, version in signal.needs)
            self._found.of.setdefault(going.workgroup, {})[step] = Awaited(time - asked, last[1])
            going.late += time - asked
        going.next += 1
        if signal.gives:
            self._write(signal, going, max(time, going.at(going.course.written[step])))
        self._go_on(going)

    def _is_there(self, signal: Signal, going: _Going, time: int) -> bool:
        """True if a signal need not wait now; else it is looked at again as soon as that may be so."""
        for address, version in signal.needs:
            written = self._written[address]
            if len(written) < version:
                self._waiting[address].append((version, going))
                return False
            if written[version - 1][0] > time:
                self._push(written[version - 1][0], 0, going)
                return False
        return True

    def _write(self, signal: Signal, going: _Going, time: int) -> None:
        for address in signal.gives:
            written = self._written[address]
            written.append((max(time, written[-1][0] if written else 0), going.workgroup))
            ready = [other for version, other in self._waiting[address] if version <= len(written)]
            self._waiting[address] = [w for w in self._waiting[address] if w[0] > len(written)]
            for other in ready:
                self._push(written[-1][0], 0, other)

    def _end(self, time: int, going: _Going) -> None:
        die = going.workgroup % self._dies
        self._found.end = max(self._found.end, time)
        if not die:
            self._found.own_end = max(self._found.own_end, time)
        following = self._next_of_die[die]
        if following < self._count:
            self._next_of_die[die] += self._dies
            self._start(following, time + self._between)


def _spread(course: Course, count: int) -> Course:
    """A course with another number of signals, evenly over the same time."""
    times = [course.start + (course.end - course.start) * (k + 1) // (count + 1) for k in range(count)]
    return Course(course.start, course.end, times, times)
