"""The last accesses to each byte of a memory, as far as a later access may race with them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.checked.clocks import NEVER, Clocks, pc_of, wave_of

READ, WRITE, ATOMIC, COMPARE = "read", "write", "atomic", "compare"
"""Kinds of access. COMPARE is an atomic compare-and-swap: it finds out itself whether what was read before still holds,
so it does not race with a plain read."""
LOST = "lost update"
"""The kind of conflict that `lost_update` finds."""


_numbers = itertools.count()


class Accesses(NamedTuple):
    """Accesses of lanes in one instruction: (n,) byte offsets, and the wave (in the launch) and lane of each.

    stored: the bytes that chosen ones of them store, (m, size) u8.
    """

    kind: str
    offsets: Array
    size: int
    waves: Array
    lanes: Array
    pc: int
    stored: Callable[[Array], Array]


class Conflict(NamedTuple):
    """Access `position` races with the one at `stamp`; both touch the byte `offset` of the memory.

    together: the position of the other access where both are of one instruction.
    """

    position: int
    kind: str
    stamp: int
    offset: int
    together: int | None = None


class Marks(NamedTuple):
    """Properties of instructions, each (instructions,): True where it holds.

    compares: a compare-and-swap. loads and stores: an atomic load, and a store that may be an atomic one, of GPUs that
    do not tell it from others: these two do not race with each other.
    """

    compares: Array
    loads: Array
    stores: Array


class AccessHistory:
    """The accesses to a memory, kept for cells of 4 bytes or, where accesses are smaller, of fewer.

    For each cell: the last write; two reads and two atomics of different waves that are not ordered with each other.
    With two of a kind, at least one is of another wave than the present one. Further ones are not kept.
    """

    def __init__(self, data: Array, clocks: Clocks, waves_per_workgroup: int) -> None:
        """data: the memory itself, (bytes,) u8."""
        self.number = next(_numbers)
        self._data, self._clocks, self._waves_per_workgroup = data, clocks, waves_per_workgroup
        self._shift = 2
        cells = -(-data.size >> self._shift) + 1
        # np.zeros takes no memory for what is not touched.
        self._write = np.zeros(cells, np.int64)
        self._reads = np.zeros((2, cells), np.int64)
        self._atomics = np.zeros((2, cells), np.int64)
        self._repeated = np.zeros(cells, np.uint16)  # the workgroup's waves that have written the same since
        self._owner = np.zeros(cells, np.int64)
        self._seen: set[str] = set()
        self.shared: Array | None = None  # positions in the last store whose bytes other lanes stored to as well

    def access(self, accesses: Accesses, marks: Marks) -> Conflict | None:
        """Record accesses of lanes; return a race, if any."""
        self._refine(accesses)
        count = accesses.size >> self._shift
        cells = (accesses.offsets >> self._shift)[:, None] + np.arange(count)
        waves = accesses.waves[:, None]
        if accesses.kind == WRITE:
            return self._store(accesses, cells, waves, marks)
        conflict = None
        if WRITE in self._seen:
            stamps = self._write[cells]
            before = self._clocks.are_before(stamps, waves)
            if not before.all():
                if marks.loads[accesses.pc]:
                    before |= marks.stores[pc_of(stamps)]
                conflict = self._first(
                    accesses, cells, stamps, ~before & ~self._has_repeated(cells, stamps, waves), WRITE
                )
        others = (self._reads, READ) if accesses.kind != READ else (self._atomics, ATOMIC)
        if conflict is None and accesses.kind != COMPARE:
            conflict = self._conflict_with(*others, accesses, cells, waves, marks.compares)
        if conflict is None:
            self._seen.add(READ if accesses.kind == READ else ATOMIC)
            self._note(self._reads if accesses.kind == READ else self._atomics, accesses, cells, waves)
        return conflict

    def _refine(self, accesses: Accesses) -> None:
        """Make the cells so small that every access covers whole ones."""
        while self._shift and ((accesses.size | int(np.bitwise_or.reduce(accesses.offsets))) & (1 << self._shift) - 1):
            self._shift -= 1
            for name in ("_write", "_reads", "_atomics", "_repeated", "_owner"):
                setattr(self, name, np.repeat(getattr(self, name), 2, axis=-1))

    def _conflict_with(
        self, slots: Array, kind: str, accesses: Accesses, cells: Array, waves: Array, compares: Array
    ) -> Conflict | None:
        if kind not in self._seen:
            return None
        for slot in slots:
            stamps = slot[cells]
            bad = ~self._clocks.are_before(stamps, waves)
            if accesses.kind == READ and bad.any():
                bad &= ~compares[pc_of(stamps)]
            conflict = self._first(accesses, cells, stamps, bad, kind)
            if conflict:
                return conflict
        return None

    def _note(self, slots: Array, accesses: Accesses, cells: Array, waves: Array) -> None:
        """Record an access in place of an earlier one that it is ordered after."""
        stamps = self._clocks.stamps(accesses.waves, accesses.lanes, accesses.pc)[:, None]
        if cells.shape[1] > 1:
            stamps = np.broadcast_to(stamps, cells.shape)
        free = self._clocks.are_before(slots[0][cells], waves)
        if free.all():
            slots[0][cells] = stamps
        else:
            slots[0][cells[free]] = stamps[free]
        left = wave_of(slots[0][cells]) != waves
        if left.any():
            rest, waves = cells[left], np.broadcast_to(waves, cells.shape)[left]
            free = self._clocks.are_before(slots[1][rest], waves)
            slots[1][rest[free]] = stamps[left][free]

    # --- stores

    def _store(self, accesses: Accesses, cells: Array, waves: Array, marks: Marks) -> Conflict | None:
        twice = self._twice(cells)
        self.shared = None
        if twice is not None:
            self.shared = np.unique(np.concatenate(twice) // cells.shape[1])
            conflict = self._of_one_instruction(accesses, cells, *twice)
            if conflict:
                return conflict
        written = self._write[cells]
        unordered = ~self._clocks.are_before(written, waves) if WRITE in self._seen else np.zeros(cells.shape, np.bool_)
        same = self._changes_nothing(accesses, cells) if unordered.any() or self._seen - {WRITE} else unordered
        conflict = self._first(accesses, cells, written, unordered & ~same, WRITE)
        for slots, kind in ((self._reads, READ), (self._atomics, ATOMIC)):
            for slot in slots if conflict is None and kind in self._seen else ():
                stamps = slot[cells]
                bad = ~self._clocks.are_before(stamps, waves)
                if kind == READ:
                    bad &= ~(same & (written != NEVER))
                elif marks.stores[accesses.pc]:
                    bad &= ~marks.loads[pc_of(stamps)]
                conflict = conflict or self._first(accesses, cells, stamps, bad, kind)
        if conflict is None:
            self._seen.add(WRITE)
            self._note_store(accesses, cells, waves, unordered, twice)
        return conflict

    def _note_store(
        self, accesses: Accesses, cells: Array, waves: Array, repeats: Array, twice: tuple[Array, Array] | None
    ) -> None:
        """Record a store. If it repeats what another wave wrote, that wave's write stays the one to be ordered with."""
        stamps = np.broadcast_to(self._clocks.stamps(accesses.waves, accesses.lanes, accesses.pc)[:, None], cells.shape)
        bits = np.broadcast_to(np.left_shift(1, waves % self._waves_per_workgroup), cells.shape).astype(np.uint16)
        if repeats.any():
            np.bitwise_or.at(self._repeated, cells[repeats], bits[repeats])
            new = cells[~repeats]
            self._write[new], self._repeated[new] = stamps[~repeats], 0
        else:
            self._write[cells], self._repeated[cells] = stamps, 0
        if twice is not None:
            first, second = (np.unravel_index(part, cells.shape) for part in twice)
            for part in (first, second):
                np.bitwise_or.at(self._repeated, cells[part], bits[part])

    def _has_repeated(self, cells: Array, stamps: Array, waves: Array) -> Array:
        """True where the wave itself has written the present value, as another wave of its workgroup had."""
        count = self._waves_per_workgroup
        bit = self._repeated[cells] >> (waves % count).astype(np.uint16) & 1
        return np.asarray((bit != 0) & (wave_of(stamps) // count == waves // count))

    def _twice(self, cells: Array) -> tuple[Array, Array] | None:
        """Pairs of flat positions that are the same cell: one for each position but the last of a cell."""
        flat, position = cells.reshape(-1), np.arange(cells.size)
        self._owner[flat] = position
        owner = self._owner[flat]
        shared = np.flatnonzero(owner != position)
        return (shared, owner[shared]) if shared.size else None

    def _of_one_instruction(self, accesses: Accesses, cells: Array, first: Array, second: Array) -> Conflict | None:
        """A conflict of two lanes that store different bytes to one cell, if any."""
        one, other = first // cells.shape[1], second // cells.shape[1]
        width = 1 << self._shift
        index = np.arange(width)
        x = accesses.stored(one)[np.arange(one.size)[:, None], (first % cells.shape[1] * width)[:, None] + index]
        y = accesses.stored(other)[np.arange(one.size)[:, None], (second % cells.shape[1] * width)[:, None] + index]
        different = np.flatnonzero((x != y).any(axis=1))
        if not different.size:
            return None
        at = int(different[0])
        position, together = int(one[at]), int(other[at])
        stamp = self._clocks.stamps(accesses.waves[[position]], accesses.lanes[[position]], accesses.pc)[0]
        return Conflict(together, WRITE, int(stamp), int(cells.reshape(-1)[first[at]]) << self._shift, position)

    def bytes_at(self, offset: int, size: int) -> Array:
        """The present bytes of the memory."""
        return self._data[offset : offset + size]

    def holds(self, accesses: Accesses) -> Array:
        """For each access: True if the memory already holds what it stores."""
        stored = accesses.stored(np.arange(accesses.offsets.size))
        there = self._data[accesses.offsets[:, None] + np.arange(accesses.size)]
        return np.asarray((stored == there).all(axis=1))

    def _changes_nothing(self, accesses: Accesses, cells: Array) -> Array:
        """For each cell: True if it already holds what is stored."""
        stored = accesses.stored(np.arange(accesses.offsets.size))
        there = self._data[accesses.offsets[:, None] + np.arange(accesses.size)]
        return np.asarray((stored == there).reshape(*cells.shape, -1).all(axis=2))

    def _first(self, accesses: Accesses, cells: Array, stamps: Array, bad: Array, kind: str) -> Conflict | None:
        if not bad.any():
            return None
        at = int(bad.argmax())
        position = at // cells.shape[1]
        return Conflict(position, kind, int(stamps.reshape(-1)[at]), int(cells.reshape(-1)[at]) << self._shift)
