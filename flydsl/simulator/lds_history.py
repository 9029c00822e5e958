"""Who accessed each byte of LDS since the last barrier, and whether anything ever wrote it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

NOBODY = -1
_CONFLICTS = {"read": ("write", "atomic"), "write": ("read", "write", "atomic"), "atomic": ("read", "write")}
"""With which earlier accesses of another wave an access is a race."""


class Conflict(NamedTuple):
    """Element `position` of an access conflicts with what `wave` did at instruction `pc`: "read", "write", "atomic"."""

    position: int
    kind: str
    wave: int
    pc: int


class _Accessors:
    """For each byte the first two different waves that accessed it in the current epoch, and where."""

    def __init__(self, bytes_: int) -> None:
        self._wave = np.full((2, bytes_), NOBODY, np.int32)
        self._pc = np.zeros((2, bytes_), np.int32)
        self._epoch = np.full(bytes_, NOBODY, np.int32)

    def others(self, places: Array, wave: int, epoch: int) -> tuple[Array, Array]:
        """A wave besides `wave` that accessed each byte in this epoch (or NOBODY), and its pc."""
        second = self._wave[0, places] == wave
        waves = np.where(second, self._wave[1, places], self._wave[0, places])
        pcs = np.where(second, self._pc[1, places], self._pc[0, places])
        return np.where(self._epoch[places] == epoch, waves, NOBODY), pcs

    def add(self, places: Array, wave: int, pc: int, epoch: int) -> None:
        outdated = places[self._epoch[places] != epoch]
        self._wave[:, outdated] = NOBODY
        self._epoch[outdated] = epoch
        first = places[self._wave[0, places] == NOBODY]
        self._wave[0, first], self._pc[0, first] = wave, pc
        second = places[(self._wave[0, places] != wave) & (self._wave[1, places] == NOBODY)]
        self._wave[1, second], self._pc[1, second] = wave, pc


class LdsHistory:
    """The bytes of all workgroups of a batch, one after the other. An epoch ends where a workgroup passes a barrier."""

    def __init__(self, bytes_: int, workgroups: int) -> None:
        self._written = np.zeros(bytes_, np.bool_)
        self._accessors = {kind: _Accessors(bytes_) for kind in _CONFLICTS}
        self._epoch = np.zeros(workgroups, np.int32)

    def pass_barrier(self, workgroups: Array) -> None:
        self._epoch[workgroups] += 1

    def unwritten(self, places: Array) -> tuple[int, int] | None:
        """The first of (elements, bytes) places that was never written: its element and byte."""
        missing = ~self._written[places]
        element = _first(np.asarray(missing.any(axis=1)))
        return None if element is None else (element, int(missing[element].argmax()))

    def mark_written(self, places: Array) -> None:
        self._written[places] = True

    def access(self, kind: str, places: Array, wave: int, workgroup: int, pc: int) -> Conflict | None:
        """Note what a wave does to (elements, bytes) places, unless it conflicts with what another wave did."""
        epoch = int(self._epoch[workgroup])
        for earlier in _CONFLICTS[kind]:
            waves, pcs = self._accessors[earlier].others(places, wave, epoch)
            bad = _first((waves != NOBODY).any(axis=1))
            if bad is not None:
                byte = int(np.argmax(waves[bad] != NOBODY))
                return Conflict(bad, earlier, int(waves[bad, byte]), int(pcs[bad, byte]))
        self._accessors[kind].add(np.unique(places), wave, pc, epoch)
        return None


def _first(flags: Array) -> int | None:
    return int(flags.argmax()) if flags.any() else None
