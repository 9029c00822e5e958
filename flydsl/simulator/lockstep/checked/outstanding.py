"""The operations of a batch's waves that are under way, as the counters of the hardware count them.

Every stream of a wave numbers its operations. A wait until at most n are under way lets those of a stream go that have
n younger ones; an operation that several streams count has completed when all of them have let it go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from flydsl.arch.wait_counters import Stream, WaitCounters
from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.checked.access_history import AccessHistory
from flydsl.simulator.waits.instructions import Facts


@dataclass(frozen=True)
class Part:
    """The accesses of an operation to one memory: (n,) offsets, the bytes at each, and the wave of each."""

    history: AccessHistory
    offsets: Array
    size: int
    waves: Array
    is_write: bool


@dataclass(eq=False)
class Started:
    """An operation that some waves started together. waves: (n,) their indices in the batch, ascending.

    numbers: by stream, the (n,) numbers of the operation there. open: (n,) the waves that it is under way for.
    lanes: (n, lanes) for which it has registers to write, and before: what these held, if anybody may need to know.
    wait: the last wait that did not let it go: its index, and the count that would have.
    """

    fact: Facts
    waves: Array
    numbers: Mapping[int, Array]
    open: Array
    lanes: Array | None = None
    before: Mapping[tuple[str, int], Array] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    wait: tuple[int, int] | None = None

    def open_for(self, waves: Array) -> Array:
        """The positions in `self.waves` of those of some waves that it is under way for."""
        return np.flatnonzero(self.open & np.isin(self.waves, waves, assume_unique=True))


Ended = tuple[Started, Array]
"""An operation, and the waves for which it has completed now."""


class Outstanding:
    """The counters of all waves of a batch, and the operations that are kept until they have completed."""

    def __init__(self, counters: WaitCounters, waves: int) -> None:
        self.streams = counters.all_streams
        self._number = {stream: i for i, stream in enumerate(self.streams)}
        self._sizes = [counters.sizes[stream.counter] for stream in self.streams]
        self._issued = np.zeros((len(self.streams), waves), np.int64)
        self._done = np.zeros((len(self.streams), waves), np.int64)
        self.kept: list[Started] = []

    def start(self, fact: Facts, waves: Array, *, is_kept: bool) -> tuple[Started | None, list[Ended]]:
        """Count an operation of some waves. Return it, if it is to be kept, and what had to complete to make room."""
        numbers: dict[int, Array] = {}
        has_to_end = False
        for stream in (*fact.streams, *((fact.besides,) if fact.besides else ())):
            number = self._number[stream]
            self._issued[number, waves] += 1
            if stream.in_order:
                oldest = self._issued[number, waves] - self._sizes[number]
                has_to_end |= bool((oldest > self._done[number, waves]).any())
                self._done[number, waves] = np.maximum(self._done[number, waves], oldest)
        ended = self._ended() if has_to_end else []
        if not is_kept:
            return None, ended
        for stream in fact.streams:
            number = self._number[stream]
            numbers[number] = self._issued[number, waves]
        self.kept.append(Started(fact, waves, numbers, np.ones(waves.size, np.bool_)))
        return self.kept[-1], ended

    def wait(self, fact: Facts, waves: Array) -> list[Ended]:
        """Let waves wait; return what has completed by that."""
        for counter, most in fact.limits.items():
            for number, stream in enumerate(self.streams):
                if counter in (stream.counter, "all") and (stream.in_order or most == 0):
                    done = self._issued[number, waves] - most
                    self._done[number, waves] = np.maximum(self._done[number, waves], done)
        ended = self._ended()
        for started in self.kept:
            number, stream = self.missing(started, int(started.open.argmax()))
            if stream.counter in fact.limits and started.open_for(waves).size:
                started.wait = fact.index, self.enough(started, int(started.open_for(waves)[0]))
        return ended

    def finish(self, kind: str, wave: int) -> list[Ended]:
        """Let all operations of a kind complete that a wave has started."""
        for number in {n for started in self.kept if started.fact.kind == kind for n in started.numbers}:
            self._done[number, wave] = self._issued[number, wave]
        return self._ended()

    def missing(self, started: Started, position: int) -> tuple[int, Stream]:
        """The first stream that has not let an operation go, for the wave at a position."""
        for number, numbers in started.numbers.items():
            if numbers[position] > self._done[number, started.waves[position]]:
                return number, self.streams[number]
        number = next(iter(started.numbers))
        return number, self.streams[number]

    def enough(self, started: Started, position: int) -> int:
        """The largest count that a wait now may have to let the operation go, for the wave at a position."""
        number, stream = self.missing(started, position)
        younger = self._issued[number, started.waves[position]] - started.numbers[number][position]
        return int(younger) if stream.in_order else 0

    def in_lds(self, started: Started, waves: Array) -> tuple[Array, list[int]]:
        """The positions of those of some waves for which an operation may still access LDS, and the counts that would
        do for each. The counter of LDS, the last one, is all that counts; a flat access to memory goes on without it.
        """
        number = self._number[started.fact.streams[-1]]
        mine = started.numbers[number]
        positions = started.open_for(waves)
        positions = positions[mine[positions] > self._done[number, started.waves[positions]]]
        younger = self._issued[number, started.waves[positions]] - mine[positions]
        return positions, (younger if started.fact.streams[-1].in_order else 0 * younger).tolist()

    def of(self, index: int) -> Iterator[Started]:
        """The operations of an instruction that are under way, the oldest first."""
        return (started for started in self.kept if started.fact.index == index)

    def _ended(self) -> list[Ended]:
        """The operations that have completed for waves for which they were under way; those for all are dropped."""
        found: list[Ended] = []
        for started in self.kept:
            still = np.zeros(started.waves.size, np.bool_)
            for number, numbers in started.numbers.items():
                still |= numbers > self._done[number, started.waves]
            still &= started.open
            ended = started.open & ~still
            if ended.any():
                started.open = still
                found.append((started, started.waves[ended]))
        if found:
            self.kept = [started for started in self.kept if started.open.any()]
        return found
