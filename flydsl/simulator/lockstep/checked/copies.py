"""Memory that operations under way read and write past the registers: loads to LDS, asynchronous copies, tiles.

Until their wave has waited for them, an access to what they write, or a write of what they read, comes too early, also
by the same wave.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.checked.access_history import READ, Accesses, AccessHistory
from flydsl.simulator.lockstep.checked.cells import Cells, dwords
from flydsl.simulator.lockstep.checked.outstanding import Part, Started


class Copies:
    """The parts of all copies under way. lds: the history of the batch's LDS. numbers: of the batch's waves in
    the launch, which the waves of a `Part` are."""

    def __init__(self, lds: AccessHistory, lds_bytes: int, numbers: Array) -> None:
        self._lds, self._numbers = lds, numbers
        self._written, self._read = Cells(lds_bytes), Cells(lds_bytes)
        self._next = itertools.count(1)  # numbers are not given again: cells may still have them
        self._ids: dict[Started, int] = {}
        self._by_id: dict[int, Started] = {}
        self._elsewhere: list[tuple[Started, Part]] = []

    def add(self, started: Started, part: Part) -> None:
        """Add what a copy accesses in one memory."""
        started.parts.append(part)
        if part.history is not self._lds:
            self._elsewhere.append((started, part))
            return
        if started not in self._ids:
            self._ids[started] = next(self._next)
        number = self._ids[started]
        self._by_id[number] = started
        self._cells(part).mark(part.offsets, part.size, number)

    def end(self, started: Started, waves: Array) -> Iterator[Part]:
        """The parts of a copy that has completed for some waves."""
        numbers = self._numbers[waves]
        for part in started.parts:
            chosen = np.isin(part.waves, numbers)
            ended = replace(part, offsets=part.offsets[chosen], waves=part.waves[chosen])
            if ended.offsets.size and part.history is self._lds and started in self._ids:
                self._cells(part).clear(ended.offsets, part.size, self._ids[started])
            if ended.offsets.size:
                yield ended
        if not started.open.any():
            self._by_id.pop(self._ids.pop(started, 0), None)
            self._elsewhere = [(other, part) for other, part in self._elsewhere if other is not started]

    def conflict(
        self, history: AccessHistory, accesses: Accesses, now: Started | None
    ) -> tuple[Started, Part, int, int] | None:
        """A copy, and its part, that an access comes too early for: with the position of the access, and the wave of
        the copy. now: the copy that makes the access, which has no conflict with what its own wave does."""
        writes = accesses.kind != READ
        for started, part in self._candidates(history, accesses, writes=writes):
            if part.history is not history or not (writes or part.is_write):
                continue
            found = self._shared(started, part, accesses, excludes_own=started is now)
            if found is None:
                continue
            positions, waves = found
            if writes and part.is_write:
                differs = ~history.holds(accesses)[positions]
                positions, waves = positions[differs], waves[differs]
            if positions.size:
                return started, part, int(positions[0]), int(waves[0])
        return None

    def _cells(self, part: Part) -> Cells:
        return self._written if part.is_write else self._read

    def _candidates(
        self, history: AccessHistory, accesses: Accesses, *, writes: bool
    ) -> Iterator[tuple[Started, Part]]:
        if history is not self._lds:
            yield from self._elsewhere
            return
        for cells in (self._written, self._read) if writes else (self._written,):
            numbers = cells.find(accesses.offsets, accesses.size)
            for number in () if numbers is None else np.unique(numbers[numbers > 0]).tolist():
                started = self._by_id.get(number)
                yield from ((started, part) for part in started.parts) if started else ()

    def _shared(
        self, started: Started, part: Part, accesses: Accesses, *, excludes_own: bool
    ) -> tuple[Array, Array] | None:
        """Positions of accesses that touch a byte of a part that is under way, and the wave of the copy that it is."""
        is_open = np.isin(part.waves, self._numbers[started.waves[started.open]])
        offsets, waves = part.offsets[is_open], part.waves[is_open]
        order = np.argsort(offsets, kind="stable")
        offsets, waves = offsets[order], waves[order]
        if not offsets.size:
            return None
        before = np.searchsorted(offsets, accesses.offsets + accesses.size - 1, side="right") - 1
        shared = (before >= 0) & (offsets[before] + part.size > accesses.offsets)
        if excludes_own:
            shared &= waves[before] != accesses.waves
        positions = np.flatnonzero(shared)
        return (positions, waves[before[positions]]) if positions.size else None


def store_under_way(kept: Sequence[Started], reads: Accesses, numbers: Array) -> tuple[Started, int, int] | None:
    """A store to LDS under way that some reads of LDS by its own wave come too early for: with the position of the wave
    in it, and that of the read. numbers: of the batch's waves in the launch."""
    for started in kept:
        for part in started.parts if started.fact.kind == "LDS" else ():
            for own in np.flatnonzero(started.open) if part.is_write else ():
                wave = numbers[started.waves[own]]
                positions = np.flatnonzero(reads.waves == wave)
                stored = dwords(part.offsets[part.waves == wave], part.size)
                shared = np.isin(dwords(reads.offsets[positions], reads.size), stored).any(axis=1)
                if shared.any():
                    return started, int(own), int(positions[shared.argmax()])
    return None
