"""Accesses of a launch's waves to LDS and global memory, to find unordered ones (see `checks`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import SimulatorError
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.instruction_class import is_lds_atomic
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.isa.operations import operation_of
from flydsl.simulator.lockstep.checked.access_history import (
    ATOMIC,
    COMPARE,
    LOST,
    READ,
    WRITE,
    Accesses,
    AccessHistory,
    Conflict,
    Marks,
)
from flydsl.simulator.lockstep.checked.clocks import LIMITS, Clocks
from flydsl.simulator.lockstep.checked.lost_update import EVERY, Load, LostUpdates
from flydsl.simulator.memory.buffers import Memory, host_range, writable_groups


class Role(NamedTuple):
    """The way an instruction accesses memory. acquires: it learns what others did; releases: it tells them.

    is_arrival: at a barrier in LDS, which others read to see whether all have arrived.
    """

    kind: str
    acquires: bool = False
    releases: bool = False
    is_scalar: bool = False
    is_arrival: bool = False


class RaceHistory:
    """All accesses of a launch. Batches of its workgroups run one after the other, and race with each other.

    workgroup_count: of the launch.
    signals: of a place that waves write with an atomic or past the caches: the waves, the last one last, and by which
        instruction.
    carried: accesses that were under way when their wave arrived at a barrier: instruction, wave, and time after it,
        of copies 0; with the largest count that a wait before that barrier may have to let them go.
    """

    def __init__(self, dispatch: Dispatch) -> None:
        program, per_workgroup = dispatch.program, dispatch.waves_per_workgroup
        waves = dispatch.workgroup_count * per_workgroup
        for what, count in (("waves", waves), ("instructions", len(program.instructions))):
            if count > LIMITS[what]:
                raise SimulatorError(
                    f'checking("races") takes up to {LIMITS[what]} {what}, and the launch has {count}',
                    hint="launch a part of the grid, or choose other checks",
                )
        self._grid, self.waves_per_workgroup = dispatch.grid, per_workgroup
        self.workgroup_count = dispatch.workgroup_count
        self.clocks = Clocks(waves, per_workgroup)
        self.roles = [_role(instruction) for instruction in program.instructions]
        self.marks = _marks(program.instructions, self.roles)
        self._anyone_acquires = any(role.acquires for role in self.roles)
        self._updates = LostUpdates(program)
        self._flags: set[tuple[int, int]] = set()  # places of barriers in LDS: who reads one, learns of who arrived
        self.signals: dict[tuple[int, int], dict[int, int]] = {}
        self.carried: dict[tuple[int, int, int], int] = {}
        self._memories = _memories(dispatch.memory)
        self._histories: dict[int, AccessHistory] = {}

    def start_batch(self, workgroup_ids: Sequence[Dim3], lds: Array) -> Array:
        """Move on to other workgroups, whose LDS is (bytes,). Return the numbers of their waves in the launch."""
        self.clocks.forget()
        self._updates.forget()
        self.lds = AccessHistory(lds, self.clocks, self.waves_per_workgroup)
        width, height, _ = self._grid
        first = np.array(
            [(x + width * (y + height * z)) * self.waves_per_workgroup for x, y, z in workgroup_ids], np.int64
        )
        return np.asarray((first[:, None] + np.arange(self.waves_per_workgroup)).reshape(-1))

    def pass_barrier(self, waves: Array) -> None:
        for workgroup in np.unique(waves // self.waves_per_workgroup):
            self.clocks.pass_barrier(int(workgroup))

    def of_buffer(self, data: Array) -> tuple[int, AccessHistory] | None:
        """The offset of a buffer's bytes in their history, and that history; None if nothing can race."""
        found = self._memories.get(int(data.ctypes.data))
        if found is None:
            return None
        group, whole = found
        if group not in self._histories:
            self._histories[group] = AccessHistory(whole, self.clocks, self.waves_per_workgroup)
        return int(data.ctypes.data - whole.ctypes.data), self._histories[group]

    def kind(self, pc: int, is_write: bool) -> str:
        """The kind of an access: instructions that load and store at once do both."""
        role = self.roles[pc]
        return role.kind if role.kind in (ATOMIC, COMPARE) else WRITE if is_write else READ

    def workgroup_id(self, number: int) -> Dim3:
        width, height, _ = self._grid
        return number % width, number // width % height, number // (width * height)

    def access(self, history: AccessHistory, accesses: Accesses) -> Conflict | None:
        """Record an access; return the race, if any."""
        conflict = history.access(accesses, self.marks)
        if conflict is not None:
            return conflict
        is_message = bool(self.marks.stores[accesses.pc])
        role = self.roles[accesses.pc]
        self._synchronize(role._replace(releases=True) if is_message else role, history, accesses)
        if accesses.kind == READ:
            self._updates.note_load(accesses.pc, self._load(history, accesses))
        return self._lost_update(history, accesses) if accesses.kind == WRITE and history.shared is not None else None

    def _load(self, history: AccessHistory, accesses: Accesses) -> Load:
        times = self.clocks.time[accesses.waves]
        lanes = np.full_like(accesses.lanes, EVERY) if self.roles[accesses.pc].is_scalar else accesses.lanes
        return Load(history, accesses.offsets, accesses.size, accesses.waves, times, lanes)

    def _lost_update(self, history: AccessHistory, accesses: Accesses) -> Conflict | None:
        assert history.shared is not None
        found = self._updates.find(accesses.pc, self._load(history, accesses), history.shared)
        if found is None:
            return None
        first, second, pc, offset = found
        stamp = self.clocks.stamps(accesses.waves[[first]], accesses.lanes[[first]], pc)[0]
        return Conflict(second, LOST, int(stamp), offset, first)

    def tell(self, wave: int, history: AccessHistory, offset: int) -> None:
        """A wave arrives at a barrier in LDS: waves that read it learn what it did."""
        self._flags.add((history.number, offset))
        self.clocks.release(wave, (history.number, offset))
        self.clocks.end_release(np.array([wave]))

    def _learn(self, history: AccessHistory, accesses: Accesses) -> None:
        """Acquire by reading barriers in LDS."""
        for wave, offset in np.unique(np.stack([accesses.waves, accesses.offsets]), axis=1).T.tolist():
            if (history.number, offset) in self._flags:
                self.clocks.acquire(wave, (history.number, offset))

    def _synchronize(self, role: Role, history: AccessHistory, accesses: Accesses) -> None:
        """Acquire and release, wave by wave in the order of numbers. Lanes of a wave at one address count once."""
        if self._flags and accesses.kind == READ:
            self._learn(history, accesses)
        if not self._anyone_acquires or not (role.acquires or role.releases):
            return
        pairs = np.unique(np.stack([accesses.waves, accesses.offsets]), axis=1)
        for wave, offset in pairs.T.tolist():
            place = (history.number, offset)
            if role.acquires:
                self.clocks.acquire(wave, place)
            if role.releases:
                self.clocks.release(wave, place)
                signals = self.signals.setdefault(place, {})
                signals.pop(wave, None)
                signals[wave] = accesses.pc
            if role.is_arrival:
                self._flags.add(place)
        if role.releases:
            self.clocks.end_release(np.unique(accesses.waves))


_BEYOND_CACHES = frozenset(("sc0", "sc1", "glc", "scope:SCOPE_SE", "scope:SCOPE_DEV", "scope:SCOPE_SYS"))
"""Modifiers with which an access goes past caches: on CDNA 3 and 4, on CDNA 2, and past a compute unit on RDNA."""


def _role(instruction: Instruction) -> Role:
    """Read-modify-write atomics, and loads and stores that go past a cache: what LLVM makes of atomic ones."""
    name = instruction.mnemonic
    if "barrier_arrive" in name:
        return Role(COMPARE, acquires=True, releases=True, is_arrival=True)
    if "atomic" in name or name.startswith(_LDS_ATOMICS):
        kind = COMPARE if "cmp" in name else ATOMIC
        return Role(kind, acquires=bool(instruction.results), releases=True)
    words = instruction.listed.text.replace(",", " ").split()
    is_coherent = not _BEYOND_CACHES.isdisjoint(words)
    if name.startswith(("global_", "flat_", "buffer_")) and is_coherent and "_lds" not in name:
        return Role(ATOMIC, acquires=True) if "_load" in name else Role(ATOMIC, releases=True)
    return Role(READ, is_scalar=name.startswith("s_"))


def is_ordered_by_barriers_alone(program: Program) -> bool:
    """True if nothing but the barrier of its workgroup lets a wave learn what others did.

    Nothing accesses memory later than its instruction then, either, and all atomics are known as such.
    """
    return not any(
        role.acquires
        or operation_of(instruction.table_name) in _GOING_ON
        or (instruction.mnemonic.startswith("s_barrier_") and not instruction.table_name.endswith(_OF_WORKGROUP))
        or (role.kind == READ and _updates_lds(instruction.mnemonic))
        for instruction, role in ((i, _role(i)) for i in program.instructions)
    )


_GOING_ON = ("asynchronous load", "asynchronous store", "asynchronous arrival", "tile")
_OF_WORKGROUP = ("signal/-1", "wait/-1")


def _updates_lds(mnemonic: str) -> bool:
    return is_lds_atomic(mnemonic) or mnemonic in ("ds_append", "ds_consume")


def _marks(instructions: Sequence[Instruction], roles: Sequence[Role]) -> Marks:
    """The properties of instructions. CDNA 2 and RDNA 3 mark atomic loads, by glc, and not atomic stores."""
    pairs = list(zip(instructions, roles, strict=True))
    loads = np.array([role.acquires and "_load" in i.mnemonic and i.listed.text.endswith("glc") for i, role in pairs])
    is_store = [role.kind != ATOMIC and i.mnemonic in _STORES_OF_ONE_NUMBER for i, role in pairs]
    stores = np.array(is_store) if loads.any() else np.zeros_like(loads)
    return Marks(np.array([role.kind == COMPARE for role in roles]), loads, stores)


_SIZES = ("b8", "b16", "b32", "b64", "byte", "short", "dword", "dwordx2")
_STORES_OF_ONE_NUMBER = frozenset(f"{space}_store_{size}" for space in ("global", "flat", "buffer") for size in _SIZES)

_LDS_ATOMIC_NAMES = "add sub rsub inc dec min max and or xor mskor wrxchg cmpst condxchg pk_add wrap cond_sub"
_LDS_ATOMICS = tuple(f"ds_{name}" for name in _LDS_ATOMIC_NAMES.split())


def _memories(memory: Memory) -> dict[int, tuple[int, Array]]:
    """By the host address of a buffer: a number for the buffers it overlaps with, and all their bytes.

    Buffers that a kernel cannot write have no races and are left out."""
    found: dict[int, tuple[int, Array]] = {}
    for number, (start, stop, buffers) in enumerate(writable_groups(memory)):
        whole = np.frombuffer(memoryview((ctypes.c_uint8 * (stop - start)).from_address(start)), np.uint8)
        found.update((host_range(buffer)[0], (number, whole)) for buffer in buffers)
    return found
