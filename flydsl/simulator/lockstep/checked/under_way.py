"""Copies that go on while their wave does, until it waits for them: what they read and write meanwhile.

A wave's tiles complete in the order in which they were issued. So do its asynchronous loads among themselves, and its
asynchronous stores, but loads and stores in any order (AMD Instinct CDNA5 Instruction Set Architecture, 10.8, 10.11.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.checked.access_history import READ, Accesses, AccessHistory

ASYNC, TENSOR = "async", "tensor"


@dataclass(frozen=True)
class Part:
    """One of the memories that a copy accesses: (n,) offsets, ascending, of so many bytes each."""

    history: AccessHistory
    offsets: Array
    size: int
    is_write: bool

    def shared(self, offsets: Array, size: int) -> Array:
        """True for those of (m,) accesses of `size` bytes that touch a byte of it."""
        before = np.searchsorted(self.offsets, offsets + size - 1, side="right") - 1
        return np.asarray((before >= 0) & (self.offsets[before] + self.size > offsets))


@dataclass
class Copy:
    """A copy that a wave has issued: by its number in the launch, and the instruction's index."""

    wave: int
    counter: str
    is_load: bool
    pc: int
    parts: list[Part] = field(default_factory=list)


class UnderWay:
    """The copies of all waves that have not been waited for, in the order in which they were issued."""

    def __init__(self) -> None:
        self._copies: list[Copy] = []
        self._issued: dict[int, Copy] = {}  # by wave: the last one

    def issue(self, waves: Iterable[int], counter: str, pc: int, *, is_load: bool) -> None:
        for wave in waves:
            self._issued[wave] = Copy(wave, counter, is_load, pc)
            self._copies.append(self._issued[wave])

    def add(self, wave: int, part: Part) -> None:
        """Add what a wave's last copy accesses."""
        self._issued[wave].parts.append(part)

    def wait(self, waves: Iterable[int], counter: str, most: int) -> list[Copy]:
        """Let all copies but the last `most` of each kind complete; return those that have."""
        ended: list[Copy] = []
        for wave in waves:
            own = [copy for copy in self._copies if copy.wave == wave and copy.counter == counter]
            kinds = [own] if counter == TENSOR else [[c for c in own if c.is_load == kind] for kind in (True, False)]
            ended += [copy for kind in kinds for copy in kind[: max(len(kind) - most, 0)]]
        self._copies = [copy for copy in self._copies if not any(copy is other for other in ended)]
        return ended

    def conflict(self, history: AccessHistory, accesses: Accesses, *, is_copy: bool) -> tuple[Copy, Part, int] | None:
        """A copy that an access races with, and the position of the access; None if there is none.

        is_copy: the accesses are those of each wave's last copy, which does not race with itself.
        """
        writes = accesses.kind != READ
        for copy in self._copies:
            for part in copy.parts:
                if part.history is not history or not (writes or part.is_write):
                    continue
                shared = part.shared(accesses.offsets, accesses.size)
                if is_copy and copy is self._issued[copy.wave]:
                    shared &= accesses.waves != copy.wave
                if writes and part.is_write and shared.any():
                    shared &= ~history.holds(accesses)
                if shared.any():
                    return copy, part, int(shared.argmax())
        return None

    def __bool__(self) -> bool:
        return bool(self._copies)
