"""Inspect one wave, and what changed in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from flydsl.hsaco.operands import EXEC, M0, SGPR_FILE_SIZE, VCC, Register, register_name
from flydsl.simulator.arrays import Array
from flydsl.simulator.waves import ENDED, WAITING, Waves

_GENERAL_SGPRS = 102


class WaveState:
    """The present state of a wave. Its registers are views: they follow the simulation, and writes to them take effect.

    >>> from flydsl.simulator.waves import Waves
    >>> waves = Waves([(0, 0, 0)], (64, 1, 1), vgprs=2, agprs=0, lds_bytes=0, scratch_bytes=0, entry=0, mode=0)
    >>> wave = WaveState(waves, 0)
    >>> wave.vgpr[1, :] = 0x3F800000
    >>> float(wave.vgpr.view("f4")[1, 63])  # the same bits as a float
    1.0
    """

    def __init__(self, waves: Any, index: int) -> None:
        """waves: `Waves`, or a copy of their state."""
        self._waves, self._index = waves, index

    @property
    def sgpr(self) -> Array:
        """The 102 general scalar registers: (102,) u32."""
        return self._waves.sgpr[self._index, :_GENERAL_SGPRS]

    @property
    def vgpr(self) -> Array:
        """The vector registers that the kernel has: (registers, lanes) u32."""
        return self._waves.vgpr[: self._waves.first_agpr, self._index]

    @property
    def agpr(self) -> Array:
        """The accumulation registers that the kernel has: (registers, lanes) u32."""
        return self._waves.vgpr[self._waves.first_agpr :, self._index]

    @property
    def exec(self) -> int:
        """The active lanes, lane 0 in the lowest bit."""
        return self._lanes(EXEC)

    @property
    def active(self) -> Array:
        """The active lanes: (lanes,) bool."""
        return np.array([(self.exec >> lane) & 1 for lane in range(self._waves.lanes)], np.bool_)

    @property
    def vcc(self) -> int:
        """The lane mask, lane 0 in the lowest bit."""
        return self._lanes(VCC)

    @property
    def scc(self) -> bool:
        return bool(self._waves.scc[self._index, 0])

    @property
    def m0(self) -> int:
        return int(self._waves.sgpr[self._index, M0])

    @property
    def pc(self) -> int:
        """The index of the next instruction in the program."""
        return int(self._waves.pc[self._index])

    @property
    def executed(self) -> int:
        """The number of instructions that it has executed."""
        return int(self._waves.executed[self._index])

    @property
    def done(self) -> bool:
        return bool(self._waves.status[self._index] == ENDED)

    @property
    def at_barrier(self) -> bool:
        """True if it waits for the other waves of its workgroup, or for the other workgroups of its cluster."""
        return int(self._waves.status[self._index]) in WAITING

    def _lanes(self, first: int) -> int:
        """The bits of a lane mask, which takes as many scalar registers as it has bits."""
        parts = self._waves.sgpr[self._index, first : first + self._waves.lanes // 32]
        return sum(int(part) << 32 * i for i, part in enumerate(parts))

    def __repr__(self) -> str:
        doing = "ended" if self.done else "waits at a barrier" if self.at_barrier else f"before instruction {self.pc}"
        return f"<wave {self._index}: {doing}, exec {self.exec:#018x}, vcc {self.vcc:#x}, scc {int(self.scc)}>"


class Snapshot:
    """The registers of the first waves of a batch at one moment."""

    def __init__(self, waves: Waves, count: int) -> None:
        self._vgpr, self._sgpr, self._scc = _registers(waves, count)

    def changed(self, waves: Waves) -> dict[int, tuple[str, ...]]:
        """The registers that differ now, by wave: "s4", "v2", "a0", "vcc", "exec", "m0", "scc"."""
        count = len(self._sgpr)
        vgpr, sgpr, scc = _registers(waves, count)
        names: dict[int, list[str]] = {wave: [] for wave in range(count)}
        for wave, number in np.argwhere(sgpr != self._sgpr):
            names[int(wave)].append(_scalar_name(int(number)))
        for row, wave in np.argwhere((vgpr != self._vgpr).any(axis=2)):
            names[int(wave)].append(_vector_name(int(row), waves.first_agpr))
        for wave in np.flatnonzero(scc != self._scc):
            names[int(wave)].append("scc")
        return {wave: tuple(dict.fromkeys(found)) for wave, found in names.items() if found}


def register_names(changes: Mapping[str, Any], first_agpr: int) -> Iterator[tuple[int, str]]:
    """The wave and the name of each register that a step changed; see `recording.Step`."""
    if "sgpr" in changes:
        for wave, number in zip(*changes["sgpr"].where, strict=True):
            yield int(wave), _scalar_name(int(number))
    if "vgpr" in changes:
        for row, wave in zip(*changes["vgpr"].where, strict=True):
            yield int(wave), _vector_name(int(row), first_agpr)
    if "scc" in changes:
        for wave in changes["scc"].where[0]:
            yield int(wave), "scc"


def _vector_name(row: int, first_agpr: int) -> str:
    return f"a{row - first_agpr}" if row >= first_agpr else f"v{row}"


def _registers(waves: Waves, count: int) -> tuple[Array, Array, Array]:
    return waves.vgpr[:, :count].copy(), waves.sgpr[:count].copy(), waves.scc[:count, 0].copy()


def _scalar_name(number: int) -> str:
    assert number < SGPR_FILE_SIZE
    if number in (EXEC, EXEC + 1, VCC, VCC + 1):
        return register_name(Register("s", number & ~1, 2))  # the pair is what people look at
    return register_name(Register("s", number, 1))
