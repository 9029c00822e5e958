"""The time for which workgroups wait for each other: of all workgroups, from the times of those that were replayed.

Each workgroup follows the course of a replayed one, if possible of one with the same signals. Where it waits, it goes
on when the words that it waits for have been written often enough, and the rest of its course is delayed by as much.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flydsl.simulator.timing.signals import Signal


@dataclass(frozen=True)
class Course:
    """The times of a replayed workgroup, in cycles: its start and end, and for each of its signals when the workgroup
    comes to it (asks), and when its write is visible (written)."""

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
    """of: by workgroup and index of the signal. end: of the last workgroup, own_end: of the last one on the replayed
    die, in cycles. endless: the number of workgroups whose waits nobody ends."""

    of: dict[int, dict[int, Awaited]] = field(default_factory=dict)
    end: int = 0
    own_end: int = 0
    endless: int = 0


@dataclass
class _Running:
    """A workgroup that has started. steps: the indices of its signals in the order of time; next: the number of steps
    that it has passed; late: the cycles by which waits have delayed it."""

    workgroup: int
    course: Course
    steps: list[int]
    start: int
    next: int = 0
    late: int = 0

    def at(self, cycle: int) -> int:
        """The cycle at which it does what the replayed workgroup did at `cycle`."""
        return self.start + cycle - self.course.start + self.late


class Grid:
    """The workgroups of a launch, which the dies take in turn.

    places: the workgroups that a die runs at once. between: cycles from the end of a workgroup to the start of the next
    one in its place. signals: by workgroup. courses: of the replayed workgroups. likeness: for each workgroup, the
    replayed one that stands for it.
    """

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
        self._count, self._dies, self._places, self._between = count, dies, places, between
        self._signals, self._courses, self._likeness = signals, courses, likeness
        self._by_form = dict[tuple[tuple[int, int], ...], int]()
        for workgroup in courses:
            self._by_form.setdefault(self._form(workgroup), workgroup)

    def waits(self) -> Waits:
        """Run all workgroups, event by event, and return their waits."""
        self._found, self._events = Waits(), list[tuple[int, int, bool, _Running]]()
        # By address: (cycle, workgroup) of each write, and (version, workgroup) of those that wait for one.
        self._written = defaultdict[int, list[tuple[int, int]]](list)
        self._waiting = defaultdict[int, list[tuple[int, _Running]]](list)
        self._order = 0  # of events, which decides between those of the same cycle
        self._next_of_die = [min(d + self._dies * self._places, self._count + d) for d in range(self._dies)]
        for workgroup in range(min(self._count, self._dies * self._places)):
            self._start(workgroup, self._courses[self._likeness[workgroup]].start)
        while self._events:
            self._step(*heapq.heappop(self._events))
        self._found.endless = sum(map(len, self._waiting.values()))
        return self._found

    def _form(self, workgroup: int) -> tuple[tuple[int, int], ...]:
        """The wave and the instruction of each signal: equal for workgroups that execute the same signals."""
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
        # By wave and index where times are equal, so that a wave's signals stay in order.
        steps = sorted(range(len(form)), key=lambda k: (course.asks[k], signals[k].wave, k))
        self._schedule_next(_Running(workgroup, course, steps, start))

    def _schedule_next(self, running: _Running) -> None:
        """Add the event of a workgroup's next signal, or of its end."""
        if running.next == len(running.steps):
            self._schedule(running.at(running.course.end), running, is_end=True)
        else:
            step = running.steps[running.next]
            signal = self._signals[running.workgroup][step]
            self._schedule(running.at((running.course.asks if signal.needs else running.course.written)[step]), running)

    def _schedule(self, time: int, running: _Running, *, is_end: bool = False) -> None:
        self._order += 1
        heapq.heappush(self._events, (time, self._order, is_end, running))

    def _step(self, time: int, _order: int, is_end: bool, running: _Running) -> None:
        """Carry out an event: a workgroup ends, or comes to a signal, at which it may have to wait."""
        if is_end:
            self._end(time, running)
            return
        step = running.steps[running.next]
        signal = self._signals[running.workgroup][step]
        asked = running.at(running.course.asks[step])
        if signal.needs and not self._is_there(signal, running, time):
            return
        if signal.needs and time > asked:
            last = max(self._written[address][version - 1] for address, version in signal.needs)
            self._found.of.setdefault(running.workgroup, {})[step] = Awaited(time - asked, last[1])
            running.late += time - asked
        running.next += 1
        if signal.gives:
            self._write(signal, running, max(time, running.at(running.course.written[step])))
        self._schedule_next(running)

    def _is_there(self, signal: Signal, running: _Running, time: int) -> bool:
        """True if all that a signal waits for has been written; else the workgroup gets an event when it may be."""
        for address, version in signal.needs:
            written = self._written[address]
            if len(written) < version:
                self._waiting[address].append((version, running))
                return False
            if written[version - 1][0] > time:
                self._schedule(written[version - 1][0], running)
                return False
        return True

    def _write(self, signal: Signal, running: _Running, time: int) -> None:
        """Write the words of a signal, and wake the workgroups that wait for them."""
        for address in signal.gives:
            written = self._written[address]
            written.append((max(time, written[-1][0] if written else 0), running.workgroup))
            ready = [other for version, other in self._waiting[address] if version <= len(written)]
            self._waiting[address] = [w for w in self._waiting[address] if w[0] > len(written)]
            for other in ready:
                self._schedule(written[-1][0], other)

    def _end(self, time: int, running: _Running) -> None:
        """End a workgroup, and start the die's next one in its place."""
        die = running.workgroup % self._dies
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
