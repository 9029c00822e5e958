"""Loads, stores and atomics of the currently executing waves, every access checked against its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from flydsl import env
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction
from flydsl.simulator.errors import Access, MemoryFault, MisalignedAccess
from flydsl.simulator.lockstep.lanes import NumpyLanes
from flydsl.simulator.memory.buffers import (
    DWORD_BYTES,
    NEAR_NULL_BYTES,
    PRIVATE_APERTURE,
    SHARED_APERTURE,
    SLOT_SHIFT,
    THROUGH_SWIZZLED_RESOURCE,
    Buffer,
    Memory,
)
from flydsl.simulator.memory.gaps import touches_gap
from flydsl.simulator.waves import Waves

_GAP_HINT = "the tensor is a part of a larger one, and this is one of the other parts"

_BEYOND_LDS_HINT = (
    "this access needs {needed} bytes: launch(..., smem={needed}) for dynamic shared memory, or a larger static "
    "allocation; with FLYDSL_SIMULATOR_LDS=hardware such reads give 0, and stores do nothing"
)

# Of CDNA, whose loads past the registers have one address in LDS.
_PAST_REGISTERS_HINT = (
    "a load into LDS takes the first lane's address there, and writes the lanes' data one after another from there on: "
)
_PAST_REGISTERS = ("buffer_load_", "global_load_lds_")

_LABELS = {"lds": "LDS", "scratch": "scratch"}


class _Intercepted(Exception):
    """An access is not to be made."""


@dataclass(frozen=True)
class Resolved:
    """A checked access: byte offsets into storage, one for each element of `lanes` (indices into waves x 64)."""

    storage: Array
    offsets: Array
    lanes: Array | None  # None: every lane, in order


class NumpyMemory(NumpyLanes):
    """Memory operations of the builder. Values are (waves, 64) or (waves, 1), as everywhere.

    lds_marks: bools of shape (2, bytes of LDS) that become true where LDS is read (0) and written (1); None, as at
    first: nobody wants to know.
    """

    def __init__(self, waves: Waves, memory: Memory) -> None:
        super().__init__(waves)
        self.memory = memory
        self.instruction: Instruction
        self.lds_marks: Array | None = None

    # --- the builder's operations

    def load(self, space: str, address: Array, dwords: int, where: Array | None = None) -> tuple[Array, ...]:
        accesses = self._resolve(space, address, 4 * dwords, where, is_write=False)
        shape = self._shape(address)
        results = [np.zeros(shape, np.uint32) if _partial(accesses) else None for _ in range(dwords)]
        for access in accesses:
            for i in range(dwords):
                results[i] = _merge(results[i], access, _gather_bytes(access.storage, access.offsets + 4 * i, 4), shape)
        return tuple(r for r in results if r is not None)

    def load_small(self, space: str, address: Array, bytes_: int, where: Array | None = None) -> Array:
        accesses = self._resolve(space, address, bytes_, where, is_write=False)
        shape = self._shape(address)
        result = np.zeros(shape, np.uint32) if _partial(accesses) else None
        for access in accesses:
            result = _merge(result, access, _gather_bytes(access.storage, access.offsets, bytes_), shape)
        assert result is not None
        return result

    def store(self, space: str, address: Array, values: Sequence[Array], where: Array | None = None) -> None:
        shape = self._shape(address)
        for access in self._resolve(space, address, 4 * len(values), where, is_write=True):
            active = [_active(value, access, shape) for value in values]
            if _overlap(access.offsets, 4 * len(values)):
                _scatter_bytes(access.storage, access.offsets, np.stack([v.reshape(-1) for v in active], axis=1))
                continue
            for i, value in enumerate(active):
                _scatter(access.storage, access.offsets + 4 * i, value, 4)

    def load_dwords(
        self, space: str, address: Array, dwords: int, whole: Array, dword: Callable[[int], tuple[Array, Array]]
    ) -> tuple[Array, ...]:
        """Load dwords one by one."""
        return tuple(self.load(space, at, 1, where)[0] for at, where in map(dword, range(dwords)))

    def store_dwords(
        self, space: str, addresses: Sequence[Array], values: Sequence[Array], where: Sequence[Array | None]
    ) -> None:
        """Store dwords at unrelated addresses: all are checked before the first is written."""
        shape = self._shape(addresses[0])
        resolved = [self._resolve(space, a, 4, w, is_write=True) for a, w in zip(addresses, where, strict=True)]
        for accesses, value in zip(resolved, values, strict=True):
            for access in accesses:
                _scatter(access.storage, access.offsets, _active(value, access, shape), 4)

    def store_small(self, space: str, address: Array, value: Array, bytes_: int, where: Array | None = None) -> None:
        shape = self._shape(address)
        for access in self._resolve(space, address, bytes_, where, is_write=True):
            _scatter(access.storage, access.offsets, _active(value, access, shape), bytes_)

    def atomic(
        self,
        space: str,
        address: Array,
        update: Callable[..., Array],
        operands: Sequence[Array],
        where: Array | None = None,
    ) -> Array:
        """Replace old by update(old, *operands) lane after lane and return old. The operands' type is memory's."""
        dtype, shape = operands[0].dtype, self._shape(address)
        result: Array = np.zeros(shape, dtype)
        for access in self._resolve(space, address, dtype.itemsize, where, is_write=True, aligned=True):
            values = [_active(v, access, shape) for v in operands]
            old = _atomic_rounds(access, dtype, update, values)
            if access.lanes is None:
                result = old.reshape(shape)
            else:
                result.reshape(-1)[access.lanes] = old
        return result

    def aperture(self, name: str) -> Array:
        value = SHARED_APERTURE if "shared" in name else PRIVATE_APERTURE
        if name.endswith("_limit"):
            value |= 0xFFFF_FFFF
        return np.full((1, 1), value, np.uint64)

    def intercept_access(self, execute: Callable[[], None]) -> tuple[int, int] | None:
        """(address, bytes) of the first lane of the first access that `execute` makes, which is given up there."""
        found: list[tuple[int, int]] = []

        def give_up(space: str, address: Array, size: int, where: Array | None, **kind: bool) -> NoReturn:
            request = self._request(address, size, where, is_write=kind["is_write"])
            if request is not None:
                found.append((int(request.address[0]), size))
            raise _Intercepted

        self.__dict__["_resolve"] = give_up
        try:
            execute()
        except _Intercepted:
            pass
        finally:
            del self.__dict__["_resolve"]
        return found[0] if found else None

    # --- which storage, and is it in bounds

    def _shape(self, address: Array) -> tuple[int, int]:
        return self.selected_count, address.shape[1]

    def _resolve(
        self, space: str, address: Array, size: int, where: Array | None, *, is_write: bool, aligned: bool = False
    ) -> list[Resolved]:
        """Check an access of `size` bytes and find the bytes that it touches. Raise MemoryFault before any effect."""
        request = self._request(address, size, where, is_write=is_write, is_atomic=aligned)
        if request is None:
            return []
        self._check(space, request, is_atomic=aligned)
        if space == "global":
            return self._resolve_global(request)
        if space == "flat":
            return self._resolve_flat(request)
        return self._resolve_local(space, request)

    def _request(
        self, address: Array, size: int, where: Array | None, *, is_write: bool, is_atomic: bool = False
    ) -> Request | None:
        """The request of the accessing lanes; None if there are none."""
        shape = self._shape(address)
        mask = self._active_lanes(shape, where)
        flat = np.broadcast_to(address, shape).reshape(-1)
        lanes = None if mask is None else np.flatnonzero(mask)
        if lanes is not None:
            flat = flat[lanes]
        return Request(flat, lanes, size, shape[1], is_write, is_atomic=is_atomic) if flat.size else None

    def _check(self, space: str, request: Request, *, is_atomic: bool) -> None:
        """Raise the errors of an access that do not depend on what lies at its addresses."""
        if is_atomic:
            self._check_alignment(space, request, request.size)

    def _active_lanes(self, shape: tuple[int, int], where: Array | None) -> Array | None:
        """A mask of the accessing lanes, or None for all. Scalar accesses ignore EXEC."""
        if shape[1] == 1:
            return None if where is None else np.broadcast_to(where, shape).reshape(-1)
        if self.exec_is_full() and where is None:
            return None
        mask = self.exec_mask() if where is None else self.exec_mask() & where
        return np.broadcast_to(mask, shape).reshape(-1)

    def _resolve_global(self, request: Request) -> list[Resolved]:
        buffer = self.memory.buffer_at(int(request.address[0]))
        if buffer is not None:
            first, limit = buffer.extent(whole_dwords=request.has_whole_dwords)
            inside = _in_bounds(request.address - np.uint64(first), limit, request.size)
            if inside and not (buffer.rows and _touches_gap(buffer, request).any()):
                self._check_writable(buffer, request)
                offsets = (request.address - np.uint64(buffer.storage_base)).view(np.int64)
                return [Resolved(buffer.storage, offsets, request.lanes)]
        places = self._places(request.address)
        distinct = np.unique(places)
        if distinct.size == 1:
            if self._discover(request, buffer):
                return self._resolve_global(request)
            self._fault_global(request, buffer)
        parts = [request.part(np.flatnonzero(places == place)) for place in distinct]
        return [access for part in parts for access in self._resolve_global(part)]

    def _places(self, address: Array) -> Array:
        """A number for each address: where it differs, addresses mean different buffers."""
        slots = (address >> np.uint64(SLOT_SHIFT)).astype(np.int64)
        bases = np.array([buffer.base for buffer in self.memory.in_place], np.uint64)
        in_slots = np.isin(slots, list(self.memory.in_slots))
        return np.where(in_slots, slots, -1 - np.searchsorted(bases, address, side="right"))

    def _discover(self, request: Request, buffer: Buffer | None) -> bool:
        """True if there is memory, not known before, at the first address that is outside of a buffer."""
        if buffer is None:
            return self.memory.discover(int(request.address[0]))
        first, limit = buffer.extent(whole_dwords=request.has_whole_dwords)
        outside = request.address - np.uint64(first) > np.uint64(limit)  # wraps below the first
        return bool(outside.any()) and self.memory.discover(int(request.address[outside.argmax()]))

    def _resolve_flat(self, request: Request) -> list[Resolved]:
        """The checked accesses of flat addresses: each address tells LDS, scratch and global memory apart."""
        upper = request.address & ~np.uint64(0xFFFF_FFFF)
        accesses = []
        in_lds, in_scratch = upper == np.uint64(SHARED_APERTURE), upper == np.uint64(PRIVATE_APERTURE)
        for space, chosen in (("lds", in_lds), ("scratch", in_scratch), ("global", ~(in_lds | in_scratch))):
            if chosen.any():
                part = request.part(np.flatnonzero(chosen))
                if space == "global":
                    accesses += self._resolve_global(part)
                else:
                    local = Request(part.address.astype(np.uint32), part.lanes, part.size, part.width, part.is_write)
                    accesses += self._resolve_local(space, local)
        return accesses

    def _resolve_local(self, space: str, request: Request) -> list[Resolved]:
        waves = self.waves
        is_lds = space == "lds"
        limit = waves.lds_bytes if is_lds else waves.scratch_bytes
        reach = limit + -limit % 4 if is_lds and request.size >= 4 else limit  # LDS does not end inside a dword
        if not _in_bounds(request.address, reach, request.size):
            if not is_lds or env.simulator_lds_is_strict():
                self._fault_local(space, request, limit, reach)
            inside = np.flatnonzero(request.address.astype(np.int64) + request.size <= reach)
            if not inside.size:
                return []
            request = request.part(inside)
        wave, lane = self._wave_and_lane(request)
        base = (
            waves.workgroup[wave] * waves.lds_stride if is_lds else (wave * waves.lanes + lane) * waves.scratch_stride
        )
        storage = waves.lds if is_lds else waves.scratch
        offsets = request.address.astype(np.int64) + base
        if is_lds and self.lds_marks is not None:
            self.lds_marks[int(request.is_write), offsets[:, None] + np.arange(request.size)] = True
        return [Resolved(storage, offsets, request.lanes)]

    def _fault_local(self, space: str, request: Request, limit: int, reach: int) -> NoReturn:
        beyond = (request.address.astype(np.int64) + request.size) > reach
        bad = int(np.flatnonzero(beyond)[0])
        whole = f"{_LABELS[space]} ({limit} bytes per {'workgroup' if space == 'lds' else 'thread'})"
        where = f"address {_offset(int(request.address[bad]))}"
        needed = int(request.address.max()) + request.size
        hint = _BEYOND_LDS_HINT.format(needed=needed) if space == "lds" else None
        if hint and self.instruction.listed.text.startswith(_PAST_REGISTERS):
            hint = _PAST_REGISTERS_HINT + hint
        self._fault(space, request, bad, None, f"outside of {whole}: {where}", hint=hint)

    def _wave_and_lane(self, request: Request) -> tuple[Array, Array]:
        """For every accessing lane, its wave in the batch and its lane number; 0 where the wave itself accesses."""
        if request.wave is not None:
            return np.full(request.address.size, request.wave), np.zeros(request.address.size, np.int64)
        element = np.arange(request.address.size) if request.lanes is None else request.lanes
        return self._selected_indices()[element // request.width], element % request.width

    def _check_writable(self, buffer: Buffer, request: Request) -> None:
        if request.is_write and not buffer.writable:
            where = f"{_elements_of(buffer, request, 0)}, address {int(request.address[0]):#x}"
            problem = f"in {buffer.name} ({buffer.label}), which is read-only: {where}"
            self._fault("global", request, 0, buffer, problem, hint="pass an array that may be written")

    def _fault_global(self, request: Request, buffer: Buffer | None) -> None:
        if buffer is None:
            first = int(request.address[0])
            if first >= THROUGH_SWIZZLED_RESOURCE:
                where = "through a buffer resource with SWIZZLE_ENABLE or ADD_TID_ENABLE, which is not simulated"
                self._fault("global", request, 0, None, where)
            hint = self.memory.null_hint if first < NEAR_NULL_BYTES else None
            self._fault("global", request, 0, None, f"at {first:#x}, which is in no buffer of this launch", hint=hint)
        assert buffer is not None
        first, limit = buffer.extent(whole_dwords=request.has_whole_dwords)
        offsets = request.address.view(np.int64) - first
        outside = (offsets < 0) | (offsets + request.size > limit)
        bad = int((outside | _touches_gap(buffer, request)).argmax())
        elements = f"{_elements_of(buffer, request, bad)}, address {int(request.address[bad]):#x}"
        if outside[bad]:
            where = f"outside of {buffer.name} ({buffer.label}, {buffer.size_bytes} bytes)"
            hint = self._guard_hint(request, bad, outside)
            self._fault("global", request, bad, buffer, f"{where}: {elements}", hint=hint)
        where = f"outside of {buffer.name} ({buffer.label}), in a gap between its elements"
        self._fault("global", request, bad, buffer, f"{where}: {elements}", hint=_GAP_HINT)

    def _guard_hint(self, request: Request, bad: int, outside: Array) -> str | None:
        """Advice where a condition has let only some lanes of a wave through; None where all are active.

        outside: the accesses of the request that are outside of the buffer.
        """
        if request.wave is not None or request.width == 1:
            return None
        waves, lanes = self._wave_and_lane(request)
        wave = waves[bad]
        first = int(wave) % self.waves.waves_per_workgroup * self.waves.lanes
        threads = min(math.prod(self.waves.block) - first, self.waves.lanes)
        mask = np.broadcast_to(self.exec_mask(), self._shape(self.exec_mask()))
        active = int(mask[self._selected_indices() == wave].sum())
        beyond = len(np.unique(lanes[outside & (waves == wave)]))
        if active >= threads:
            return None
        return (
            f"{active} of the wave's {threads} lanes are active here, and {beyond} of them outside: "
            "is a condition too wide (<= in place of <), or the index not the one that it tests?"
        )

    def _check_alignment(self, space: str, request: Request, alignment: int) -> None:
        """Check the alignment of addresses; alignment must be a power of two."""
        misaligned = request.address & request.address.dtype.type(alignment - 1)
        if not misaligned.any():
            return
        bad = int(np.flatnonzero(misaligned)[0])
        address = int(request.address[bad])
        buffer = self.memory.buffer_at(address) if space in ("global", "flat") else None
        inside = f" in {buffer.name} ({buffer.label}): element {buffer.element_index(address)}" if buffer else ""
        problem = f"at {address:#x}, which is not a multiple of {alignment}{inside}"
        self._fault(
            space, request, bad, buffer, problem, MisalignedAccess, "align the tensor or take narrower accesses"
        )

    def _fault(
        self,
        space: str,
        request: Request,
        bad: int,
        buffer: Buffer | None,
        problem: str,
        kind: type[MemoryFault] = MemoryFault,
        hint: str | None = None,
    ) -> NoReturn:
        access = self._describe(space, request, bad, buffer)
        instruction = self.instruction.listed
        if buffer and hint is None:
            hint = request.hint
        raise kind(problem, access, instruction.text, instruction.line, instruction.location, hint)

    def _describe(self, space: str, request: Request, which: int, buffer: Buffer | None) -> Access:
        """Element `which` of a request in the user's terms."""
        waves, lanes = self._wave_and_lane(request)
        wave, lane, address = int(waves[which]), int(lanes[which]), int(request.address[which])
        return Access(
            is_write=request.is_write,
            access_bytes=request.size,
            address=address,
            space=space,
            buffer=buffer.name if buffer else None,
            label=buffer.label if buffer else _LABELS.get(space, ""),
            element_index=buffer.element_index(address) if buffer else None,
            workgroup=self.waves.workgroup_ids[int(self.waves.workgroup[wave])],
            wave=wave % self.waves.waves_per_workgroup,
            lane=lane if request.wave is None else None,
            thread=self.waves.thread(wave, lane) if request.wave is None else None,
        )


def _touches_gap(buffer: Buffer, request: Request) -> Array:
    # A scalar load may be wider than what the program reads: the compiler loads whole dwords.
    offsets = request.address.view(np.int64) - buffer.base
    touching = touches_gap(offsets, request.size if request.width > 1 else 1, buffer.rows)
    if request.has_whole_dwords and request.size == DWORD_BYTES and touching.any():
        no_element = np.all([touches_gap(offsets + byte, 1, buffer.rows) for byte in range(DWORD_BYTES)], axis=0)
        touching = touching & no_element  # a dword that has an element is all the view's
    return touching


def _elements_of(buffer: Buffer, request: Request, which: int) -> str:
    """The elements of a buffer that an access touches, in words; more than one if its size spans them."""
    address = int(request.address[which])
    first, last = buffer.element_index(address), buffer.element_index(address + request.size - 1)
    return f"element {first}" if first == last else f"elements {first} to {last}"


def _offset(address: int) -> str:
    """A 32-bit address in LDS or scratch, in words: one just before the start looks like a large one."""
    before = (1 << 32) - address
    return f"{address:#x}" if before > 1 << 20 else f"{address:#x} ({before} bytes before the start)"


@dataclass(frozen=True)
class Request:
    """The accesses that lanes request: addresses, positions in (waves, width), and bytes per access.

    wave: the one that makes all accesses itself, instead of its lanes; then positions are numbers of the accesses.
    hint: what to do about an access outside of its buffer. is_atomic: reads what it writes.
    """

    address: Array
    lanes: Array | None
    size: int
    width: int
    is_write: bool
    wave: int | None = None
    hint: str = "do the grid and the block cover more elements than the tensor has?"
    is_atomic: bool = False

    @property
    def has_whole_dwords(self) -> bool:
        """True if it may reach the ends of dwords that lie only partly in a buffer."""
        return self.size >= DWORD_BYTES and (self.is_atomic or not self.is_write)

    def part(self, chosen: Array) -> Request:
        return replace(self, address=self.address[chosen], lanes=chosen if self.lanes is None else self.lanes[chosen])


def _in_bounds(offsets: Array, limit: int, size: int) -> bool:
    """True if all accesses are in bounds. Unsigned: an address below the start is beyond the end."""
    return limit >= size and int(offsets.max()) <= limit - size


def _partial(accesses: list[Resolved]) -> bool:
    return len(accesses) != 1 or accesses[0].lanes is not None


def _merge(result: Array | None, access: Resolved, loaded: Array, shape: tuple[int, int]) -> Array:
    if result is None:
        return loaded.reshape(shape)
    result.reshape(-1)[access.lanes] = loaded
    return result


def _active(value: Array, access: Resolved, shape: tuple[int, int]) -> Array:
    flat = np.broadcast_to(value, shape).reshape(-1)
    return flat if access.lanes is None else flat[access.lanes]


def _elements(storage: Array, offsets: Array, dtype: Any) -> tuple[Array, Array] | None:
    """Storage seen as elements of dtype, and the indices into it; None where some address is not aligned."""
    size = np.dtype(dtype).itemsize
    lead = -storage.ctypes.data % size  # bytes before the first aligned element
    if lead:
        storage, offsets = storage[lead:], offsets - lead
    if int(np.bitwise_or.reduce(offsets)) & (size - 1):
        return None
    return storage[: storage.size // size * size].view(dtype), offsets >> (size.bit_length() - 1)


def _gather_bytes(storage: Array, offsets: Array, size: int) -> Array:
    """1, 2 or 4 bytes at each offset, as u32."""
    elements = _elements(storage, offsets, f"u{size}")
    if elements:
        return elements[0].take(elements[1]).astype(np.uint32, copy=False)
    result = np.zeros(offsets.size, np.uint32)
    for i in range(size):
        result |= storage[offsets + i].astype(np.uint32) << np.uint32(8 * i)
    return result


def _overlap(offsets: Array, size: int) -> bool:
    """True if accesses of some lanes partly share bytes. Several lanes at the same address do not count."""
    distances = np.diff(offsets)
    if distances.size == 0 or distances.min() >= size:
        return False
    distances = np.diff(np.sort(offsets))
    return bool(((distances > 0) & (distances < size)).any())


def _scatter(storage: Array, offsets: Array, values: Array, size: int) -> None:
    elements = _elements(storage, offsets, f"u{size}")
    if elements:
        elements[0][elements[1]] = values.astype(f"u{size}", copy=False)
    else:
        _scatter_bytes(storage, offsets, values.astype(f"u{size}").reshape(-1, 1))


def _scatter_bytes(storage: Array, offsets: Array, values: Array) -> None:
    """Write (lanes, n) values, all of one lane before those of the next: of overlapping lanes the last one wins."""
    content = np.ascontiguousarray(values).view(np.uint8)
    storage[offsets[:, None] + np.arange(content.shape[1])] = content


def _atomic_rounds(access: Resolved, dtype: Any, update: Callable[..., Array], operands: list[Array]) -> Array:
    """The old values of an atomic. Round k updates with the k-th lane of every address, in the order of lanes."""
    order = np.argsort(access.offsets, kind="stable")
    ordered = access.offsets[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.empty(order.size, np.intp)
    turn[order] = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    old = np.empty(order.size, dtype)
    unsigned = f"u{np.dtype(dtype).itemsize}"
    elements = _elements(access.storage, access.offsets, unsigned)
    assert elements is not None, "atomics are checked to be aligned"
    memory, index = elements
    for k in range(int(turn.max()) + 1):
        now = np.flatnonzero(turn == k)
        at = index[now]
        old[now] = memory[at].view(dtype)
        new = update(old[now][:, None], *(v[now][:, None] for v in operands))
        memory[at] = new[:, 0].view(unsigned)
    return old
