"""Memory of all lanes: global memory by simulated address, a workgroup's LDS, each lane's registers, buffer resources.

An address counts bytes. Loads and stores move the same number of bytes in every lane of a mask; what other lanes get is
0. An access past the end of a tensor, or of LDS, is an error; through a buffer resource it reads 0 and writes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flydsl.dialect.location import trace_error
from flydsl.errors import SimulatorError, SourceLocation
from flydsl.interpreter.elements import Array
from flydsl.simulator import Memory
from flydsl.simulator.lockstep.checked.nans import NanHistory
from flydsl.simulator.memory.buffers import NEAR_NULL_BYTES, Buffer
from flydsl.system.interrupts import holding


@dataclass(frozen=True)
class Outside:
    """An access of a lane to memory that it must not access. problem: in words that follow "reads 4 bytes"."""

    is_write: bool
    size: int
    problem: str
    space: str
    address: int
    buffer: Buffer | None = None


Fault = Callable[[int, Outside], SimulatorError]
"""Makes the error of a lane's access."""


class Space(ABC):
    """A memory. `fault` makes the error for a lane."""

    name: str

    @abstractmethod
    def load(self, address: Array, size: int, mask: Array, fault: Fault) -> Array:
        """Bytes (lanes, size) at the address of each lane."""

    @abstractmethod
    def store(self, address: Array, data: Array, mask: Array, fault: Fault) -> None:
        """Write bytes (lanes, size) at the address of each lane of the mask; of lanes that meet, the last one wins."""


@dataclass(frozen=True)
class Pointer:
    """A pointer of each lane. address: in bytes, (lanes,) or (1,)."""

    space: Space
    address: Array

    def moved(self, offset: Any) -> Pointer:
        """The pointer some bytes further."""
        return replace(self, address=self.address + offset)

    def select(self, mask: Array, other: Pointer) -> Pointer:
        """This pointer where a mask holds, else another one of the same memory."""
        if self.space is not other.space:
            raise trace_error(
                "the interpreter has no pointer to two memories: a branch chooses between register tensors",
                "choose between what they hold",
            )
        return replace(self, address=np.where(mask, self.address, other.address))


def _lanes(address: Array, mask: Array) -> Array:
    """The addresses of the lanes of a mask."""
    return address[mask] if address.shape == mask.shape else np.broadcast_to(address, mask.shape)[mask]


@dataclass(frozen=True)
class Write:
    """A lane's write to memory. at: the place in the source."""

    lane: int
    thread: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    at: SourceLocation | None


@dataclass
class _Watch:
    """The bytes at a host address, and who has written them. describe: describes the write of a lane."""

    address: int
    size: int
    describe: Callable[[int], Write]
    writes: list[Write] = field(default_factory=list)


_watched: ContextVar[_Watch | None] = ContextVar("flydsl_watched", default=None)


@contextmanager
def watching(address: int, size: int, describe: Callable[[int], Write]) -> Iterator[list[Write]]:
    """Note who writes bytes at an address of the host in the `with` block. describe: describes the write of a lane."""
    watch = _Watch(address, size, describe)
    with holding(_watched, watch):
        yield watch.writes


class GlobalSpace(Space):
    """Global memory: the tensors of a call, and memory that programs know by its address."""

    name = "global memory"

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.nans: NanHistory | None = None  # where these are looked for

    def load(self, address: Array, size: int, mask: Array, fault: Fault) -> Array:
        data = np.zeros((len(mask), size), np.uint8)
        lanes = np.flatnonzero(mask)
        for buffer, chosen, offset in self._pieces(_lanes(address, mask), size, lanes, is_write=False, fault=fault):
            data[lanes[chosen]] = buffer.data[offset[:, None] + np.arange(size)]
        return data

    def store(self, address: Array, data: Array, mask: Array, fault: Fault) -> None:
        lanes, size = np.flatnonzero(mask), data.shape[1]
        rows = data[lanes] if len(data) == len(mask) else np.broadcast_to(data, (len(lanes), size))
        for buffer, chosen, offset in self._pieces(_lanes(address, mask), size, lanes, is_write=True, fault=fault):
            if not buffer.writable:
                first = int(buffer.base + offset[0])
                problem = (
                    f"in {buffer.name} ({buffer.label}), which is read-only: element {buffer.element_index(first)}"
                )
                raise fault(int(lanes[chosen][0]), Outside(True, size, problem, "global", first, buffer))
            buffer.data[offset[:, None] + np.arange(size)] = rows[chosen]
            if self.nans is not None:
                self.nans.note_store(buffer.storage, offset + buffer.base - buffer.storage_base, size)
            if (watch := _watched.get()) is not None:
                start = buffer.data.ctypes.data + offset
                for at in np.flatnonzero((start < watch.address + watch.size) & (start + size > watch.address)):
                    watch.writes.append(watch.describe(int(lanes[chosen[at]])))

    def _pieces(
        self, addresses: Array, size: int, lanes: Array, *, is_write: bool, fault: Fault
    ) -> Iterator[tuple[Buffer, Array, Array]]:
        """The buffers that lanes access, each with these lanes' places in `addresses`, and offsets into the buffer."""
        left = np.arange(len(addresses))
        while len(left):
            first = int(addresses[left[0]])
            buffer = self._buffer(first)
            if buffer is None:
                near = " near address 0" if abs(first) < NEAR_NULL_BYTES else ""
                problem = f"at {first:#x}{near}, which is in no buffer of this launch"
                raise fault(int(lanes[left[0]]), Outside(is_write, size, problem, "global", first))
            offset = addresses[left] - buffer.base
            inside = (offset >= 0) & (offset + size <= buffer.size_bytes)
            if not inside[0]:
                element = buffer.element_index(first)
                problem = f"outside of {buffer.name} ({buffer.label}, {buffer.size_bytes} bytes): element {element}"
                raise fault(int(lanes[left[0]]), Outside(is_write, size, problem, "global", first, buffer))
            chosen, offset = left[inside], offset[inside]
            yield buffer, chosen, offset
            if len(chosen) == len(left):
                return
            left = np.setdiff1d(left, chosen, assume_unique=True)

    def _buffer(self, address: int) -> Buffer | None:
        if address < 0:
            return None
        found = self.memory.buffer_at(address)
        if found is None or not 0 <= address - found.base < max(found.size_bytes, 1):
            self.memory.discover(address)
            found = self.memory.buffer_at(address)
        return found


@dataclass
class SharedSpace(Space):
    """The LDS of a workgroup. dynamic_bytes: of the launch; None if its kernel says how many."""

    dynamic_bytes: int | None
    limit_bytes: int
    name: str = "LDS"
    data: Array = field(init=False)
    ends: int = 0
    _places: dict[Any, int] = field(default_factory=dict)
    dynamic_start: int = 1 << 20

    def __post_init__(self) -> None:
        self.data = np.zeros(self.dynamic_start + self.limit_bytes, np.uint8)

    def place(self, storage: Any, size: int, align: int) -> int:
        """The address of a storage, by what identifies it, which is allocated when first asked for."""
        if storage not in self._places:
            start = -(-self.ends // align) * align
            self._places[storage], self.ends = start, start + size
        return self._places[storage]

    def load(self, address: Array, size: int, mask: Array, fault: Fault) -> Array:
        self._check(address, size, mask, is_write=False, fault=fault)
        if address.shape == (1,):
            return self.data[None, int(address[0]) : int(address[0]) + size].copy()
        found = self.data[np.where(mask, address, 0)[:, None] + np.arange(size)]
        return np.where(mask[:, None], found, 0).astype(np.uint8)

    def store(self, address: Array, data: Array, mask: Array, fault: Fault) -> None:
        self._check(address, data.shape[1], mask, is_write=True, fault=fault)
        rows = data[mask] if len(data) == len(mask) else data
        self.data[_lanes(address, mask)[:, None] + np.arange(data.shape[1])] = rows

    def holds(self, start: int, end: int) -> bool:
        """True if all bytes from an address to another are in a storage, or all in the dynamic memory."""
        dynamic = self.limit_bytes if self.dynamic_bytes is None else self.dynamic_bytes
        return 0 <= start <= end <= self.ends or self.dynamic_start <= start <= end <= self.dynamic_start + dynamic

    def _check(self, address: Array, size: int, mask: Array, *, is_write: bool, fault: Fault) -> None:
        used = np.broadcast_to(address, mask.shape)
        dynamic = self.limit_bytes if self.dynamic_bytes is None else self.dynamic_bytes
        static = (used >= 0) & (used + size <= self.ends)
        end = self.dynamic_start + dynamic
        wrong = mask & ~static & ~((used >= self.dynamic_start) & (used + size <= end))
        if wrong.any():
            lane = int(np.flatnonzero(wrong)[0])
            at = int(used[lane])
            start, room = (self.dynamic_start, dynamic) if at >= self.dynamic_start - 65536 else (0, self.ends)
            problem = f"outside of LDS ({room} bytes per workgroup): address {at - start:#x}"
            raise fault(lane, Outside(is_write, size, problem, "lds", at - start))


class RegisterSpace(Space):
    """Registers of a lane that programs address: a register tensor, or an `alloca`."""

    name = "registers"

    def __init__(self, lanes: int, size_bytes: int) -> None:
        self.data = np.zeros((lanes, size_bytes), np.uint8)

    def load(self, address: Array, size: int, mask: Array, fault: Fault) -> Array:
        if address.shape == (1,):
            start = self._clamped(int(address[0]), size)
            return self.data[:, start : start + size].copy()
        places = self._places(address, size)
        return np.take_along_axis(self.data, places, axis=1)

    def store(self, address: Array, data: Array, mask: Array, fault: Fault) -> None:
        size = data.shape[1]
        if address.shape == (1,):
            start = self._clamped(int(address[0]), size)
            part = self.data[:, start : start + size]
            part[...] = data if mask.all() else np.where(mask[:, None], data, part)
            return
        places = self._places(address, size)
        before = np.take_along_axis(self.data, places, axis=1)
        np.put_along_axis(self.data, places, np.where(mask[:, None], data, before), axis=1)

    def _places(self, address: Array, size: int) -> Array:
        last = self.data.shape[1] - size
        start: Array = np.where((address < 0) | (address > last), last, address)
        return start[:, None] + np.arange(size)

    def _clamped(self, start: int, size: int) -> int:
        """An index past the last element, or a negative one, means the last: see `flydsl.expr.numbers.operators`."""
        last: int = self.data.shape[1] - size
        return start if 0 <= start <= last else last


class ResourceSpace(Space):
    """Memory through a buffer resource: a number of bytes at a pointer. Addresses are offsets from the pointer."""

    name = "a buffer resource"

    def __init__(self, base: Pointer, records: Array) -> None:
        self.base, self.records = base, records

    def load(self, address: Array, size: int, mask: Array, fault: Fault) -> Array:
        data = np.zeros((len(mask), size), np.uint8)
        step = min(size, 4)
        for start in range(0, size, step):
            inside = self._inside(address + start, step, mask)
            if inside.any():
                at = self._address(address + start)
                data[:, start : start + step] = self.base.space.load(at, step, inside, fault)
        return data

    def store(self, address: Array, data: Array, mask: Array, fault: Fault) -> None:
        size = data.shape[1]
        step = min(size, 4)
        for start in range(0, size, step):
            inside = self._inside(address + start, step, mask)
            if inside.any():
                part = data[:, start : start + step]
                self.base.space.store(self._address(address + start), part, inside, fault)

    def _inside(self, offset: Array, size: int, mask: Array) -> Array:
        """The lanes whose bytes are within the resource; an offset is 32 bits without a sign."""
        offset = offset & 0xFFFFFFFF
        return mask & (offset + size <= self.records)

    def _address(self, offset: Array) -> Array:
        return self.base.address + (offset & 0xFFFFFFFF)
