"""Global memory of the simulated device: host buffers at simulated addresses, far apart.

Every buffer has a slot of 64 GiB of the address space to itself and sits in its middle, so an address that is off by
up to 32 GiB still tells which buffer was meant, and never hits another one.

Memory that programs know by its address is where the host has it: allocations, and what other processes share
(`allocations`). Kernels find such addresses in numbers and in memory. They are looked up after the slots, whose
addresses no host gives.

Device allocations begin and end at a dword boundary, so reads and atomics of a dword or more may reach the start of
the first dword and the end of the last one, as 16-bit atomics by compare-and-swap do. On the host these up to three
bytes beside a buffer are on the same page; a compare-and-swap writes back the bytes that it has read. Stores may not.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.simulator.arrays import Array
from flydsl.simulator.memory.gaps import Rows

SLOT_SHIFT = 36
_SLOT_MIDDLE = 1 << (SLOT_SHIFT - 1)
_SLOT_COUNT = 1 << (47 - SLOT_SHIFT)  # user addresses have 47 bits
NEAR_NULL_BYTES = 1 << 16
THROUGH_SWIZZLED_RESOURCE = 1 << 62
"""The address of accesses through a swizzled buffer resource: far from every buffer, so that they fault."""
SHARED_APERTURE = 0x0001_0000_0000_0000
PRIVATE_APERTURE = 1 << 58
"""Flat addresses with these upper halves mean LDS and scratch. Any two values above the address space do; but gfx1250
tells scratch by the six highest bits, below which is the number of the lane."""
SCRATCH_RESOURCE = (0, 1 << 31, 0xFFFF_FFFF, 1 << 23)
"""The buffer resource of a wave's scratch, on CDNA 2: swizzled, adding the lane to the index, at no address."""
_LINE_BYTES = 128
"""The longest line of a cache. What a GPU allocates begins with one."""
_HOST_ALIGNMENT_BYTES = 16
"""The alignment of host memory: numpy's and malloc's begins anywhere in a line, differently in each process."""
_HOST_LINE_BYTES = 64
DWORD_BYTES = 4
_NEAR_BYTES = 1 << 16
"""An address so close to memory that stands where the host has it means that memory, for messages."""
_COPIED_AT_ONCE = 1 << 26


@dataclass(frozen=True)
class Buffer:
    """A mapped buffer. `data` is its bytes; `label` describes it to the user ("f32[100]"); `rows` its gaps, if any.

    `storage` is its bytes, with those beside it that complete its first and last dword, from address `storage_base`.
    """

    base: int
    data: Array
    name: str
    element_bytes: int
    label: str
    writable: bool = True
    rows: tuple[Rows, ...] = ()

    @property
    def size_bytes(self) -> int:
        return self.data.size

    @cached_property
    def host_address(self) -> int:
        return address_of(self.data)

    @cached_property
    def storage(self) -> Array:
        start, stop = self.host_address, self.host_address + self.data.size
        if not self.data.size or not (start | stop) % DWORD_BYTES:
            return self.data
        first = start - start % DWORD_BYTES
        whole = (ctypes.c_uint8 * (-(-stop // DWORD_BYTES) * DWORD_BYTES - first)).from_address(first)
        return np.frombuffer(memoryview(whole), np.uint8)  # `data` keeps it alive

    @cached_property
    def storage_base(self) -> int:
        return self.base - (self.host_address - int(self.storage.ctypes.data))

    def extent(self, *, whole_dwords: bool) -> tuple[int, int]:
        """The first address that accesses may reach, and how many bytes from there."""
        return (self.storage_base, self.storage.size) if whole_dwords else (self.base, self.size_bytes)

    def element_index(self, address: int) -> int:
        return (address - self.base) // self.element_bytes


class Memory:
    """The buffers that one launch, or several, can reach.

    in_place: memory of the host at its own addresses. find: asked for the memory at any other address of the host;
    None if there is none. others: the processes that share some of the memory (`peers.Peers`), None without any.
    null_hint: a likely cause of an access near address 0, if known. owners: what the host's memory belongs to, where
    whoever maps it says so: it lives as long as this does. stream: the handle of the stream that the launch goes to.
    """

    def __init__(
        self, in_place: Iterable[Buffer] = (), find: Callable[[int], Buffer | None] | None = None, others: Any = None
    ) -> None:
        self._buffers: dict[int, Buffer] = {}  # by slot
        self._in_place = sorted(in_place, key=lambda buffer: buffer.base)
        self.find = find
        self.others = others
        self.null_hint: str | None = None
        self.owners: list[Any] = []
        self.stream = 0
        self._lock = threading.Lock()

    def map(
        self,
        host_pointer: int,
        size_bytes: int,
        *,
        name: str,
        element_bytes: int,
        label: str,
        writable: bool = True,
        rows: tuple[Rows, ...] = (),
        offset_bytes: int = 0,
    ) -> int:
        """Give host memory a simulated address, and return it.

        Its allocation begins with a line, as on a GPU, wherever it is on the host: accesses touch the same lines in
        every process. offset_bytes: from the beginning of the allocation. Memory that begins at no multiple of 16 is
        as little aligned here.

        rows says which of the bytes are the buffer's (`gaps`), by default all of them. The caller keeps the host memory
        alive. Raises SimulatorError for a buffer that no slot can hold, or too many of them.
        """
        base = self._next_base(name, size_bytes, _in_line(host_pointer, offset_bytes))
        buffer = _host_buffer(base, host_pointer, size_bytes, name, element_bytes, label, writable, rows)
        return self._put(buffer)

    def map_array(self, array: Array, *, name: str, label: str | None = None, writable: bool = True) -> int:
        """Map a C-contiguous numpy array and return its simulated address.

        >>> memory = Memory()
        >>> address = memory.map_array(np.zeros(100, np.float32), name="A")
        >>> memory.buffer_at(address + 400).label
        'float32[100]'
        """
        if not array.flags.c_contiguous:
            raise SimulatorError(
                f"{name} with strides {array.strides} is not contiguous", hint="pass np.ascontiguousarray(array)"
            )
        if array.dtype.hasobject or not array.dtype.isnative:
            raise SimulatorError(
                f"{name} of {array.dtype!r} cannot be mapped",
                hint="pass an array of numbers in the byte order of the host",
            )
        label = label or f"{array.dtype}{list(array.shape)}"
        data, address = array.reshape(-1).view(np.uint8), address_of(array)
        return self._add(data, address, _in_line(address, _offset(array)), name, array.itemsize, label, writable)

    def map_constant(self, content: bytes | bytearray, *, name: str, label: str) -> int:
        """Map bytes that kernels can only read, and return their address, where a page begins."""
        data = np.frombuffer(content, np.uint8)
        return self._add(data, address_of(data), 0, name, 1, label, writable=False)

    def with_buffers(self, buffers: Mapping[int, Buffer]) -> Memory:
        """The same buffers at the same addresses, and some more, by their slots. The original gets none of these."""
        copy = Memory(self._in_place, self.find, self.others)
        copy.null_hint = self.null_hint
        copy._buffers = {**self._buffers, **buffers}
        return copy

    def with_content(self, content: Callable[[Buffer], Array]) -> Memory:
        """The same buffers at the same addresses, with as many bytes of other content, aligned as before."""
        copy = Memory([replace(b, data=content(b)) for b in self._in_place])
        copy.null_hint = self.null_hint
        copy._buffers = {slot: replace(b, data=content(b)) for slot, b in self._buffers.items()}
        return copy

    def with_copied_content(self) -> Memory:
        """The same buffers at the same addresses with their own content; overlaps are preserved."""
        copies: dict[int, Buffer] = {}
        for group in overlapping(self.buffers()):
            start = min(host_range(buffer)[0] for _, buffer in group)
            stop = max(host_range(buffer)[1] for _, buffer in group)
            content = _copied(start, stop - start)
            for place, buffer in group:
                first = buffer.host_address - start
                copies[place] = replace(buffer, data=content[first : first + buffer.size_bytes])
        copy = Memory([buffer for place, buffer in copies.items() if place >= _SLOT_COUNT])
        copy.null_hint = self.null_hint
        copy._buffers.update({place: buffer for place, buffer in copies.items() if place < _SLOT_COUNT})
        return copy

    def with_in_place(self, in_place: Iterable[Buffer]) -> Memory:
        """The buffers in slots, with these alone of the host's memory."""
        copy = Memory(in_place)
        copy.null_hint = self.null_hint
        copy._buffers.update(self._buffers)
        return copy

    def in_place_around(self, address: int) -> Buffer | None:
        """The memory of the host that an address lies in, looked for where none is known."""
        self.discover(address)
        return next((b for b in self._in_place if b.base <= address < b.base + b.size_bytes), None)

    def buffers(self) -> dict[int, Buffer]:
        """All buffers, by their slot of the address space, or their address where that is the host's."""
        return self._buffers | {buffer.base: buffer for buffer in self._in_place}

    @property
    def slot_count(self) -> int:
        """The number of buffers with a slot of the address space."""
        return len(self._buffers)

    @property
    def in_slots(self) -> dict[int, Buffer]:
        """The buffers with a slot of the address space, by its number."""
        return dict(self._buffers)

    @property
    def in_place(self) -> tuple[Buffer, ...]:
        """Memory of the host at its own addresses, lowest first."""
        return tuple(self._in_place)

    def buffer_at(self, address: int) -> Buffer | None:
        """The buffer whose slot the address lies in, within the buffer or not; else memory there, or just beside it."""
        return self._buffers.get(address >> SLOT_SHIFT) or self._host_memory_at(address)

    def discover(self, address: int) -> bool:
        """True if the host has memory at an address, which is reachable from now on, or since another thread asked."""
        if self.find is None or address >> SLOT_SHIFT in self._buffers or not NEAR_NULL_BYTES <= address < 1 << 63:
            return False
        with self._lock:
            if any(known.base <= address < known.base + known.size_bytes for known in self._in_place):
                return True
            found = self.find(address)
            if found is None or any(found.base == known.base for known in self._in_place):
                return False
            self._in_place = sorted([*self._in_place, found], key=lambda buffer: buffer.base)
            return True

    def _host_memory_at(self, address: int) -> Buffer | None:
        known = self._in_place
        following = bisect_right(known, address, key=lambda buffer: buffer.base)
        around = known[max(following - 1, 0) : following + 1]
        near = {_distance(buffer, address): buffer for buffer in around}
        return near[min(near)] if near and min(near) < _NEAR_BYTES else None

    def _add(
        self,
        data: Array,
        host_address: int,
        in_line: int,
        name: str,
        element_bytes: int,
        label: str,
        writable: bool,
        rows: tuple[Rows, ...] = (),
    ) -> int:
        base = self._next_base(name, data.size, in_line)
        buffer = Buffer(base, data, name, element_bytes, label, writable, rows)
        vars(buffer)["host_address"] = host_address  # which is known: asking the array takes as long as all of this
        return self._put(buffer)

    def _put(self, buffer: Buffer) -> int:
        """Put a buffer into its slot, and return its address: every one that is mapped comes here."""
        self._buffers[buffer.base >> SLOT_SHIFT] = buffer
        return buffer.base

    def _next_base(self, name: str, size_bytes: int, in_line: int) -> int:
        """The address of the next buffer, in the slot after the last one's."""
        slot = len(self._buffers) + 1
        if slot >= _SLOT_COUNT:
            raise SimulatorError(f"more than {_SLOT_COUNT - 1} buffers are mapped")
        if size_bytes >= _SLOT_MIDDLE:
            most = f"the simulator maps buffers below {_SLOT_MIDDLE} bytes"
            raise SimulatorError(f"{name} has {size_bytes} bytes; {most}")
        return (slot << SLOT_SHIFT) + _SLOT_MIDDLE + in_line


@lru_cache(maxsize=256)
def _host_buffer(
    base: int,
    host_pointer: int,
    size_bytes: int,
    name: str,
    element_bytes: int,
    label: str,
    writable: bool,
    rows: tuple[Rows, ...],
) -> Buffer:
    """Memory of the host, which it does not keep alive. Launch after launch maps the same."""
    storage = (ctypes.c_uint8 * size_bytes).from_address(host_pointer)
    data = np.frombuffer(memoryview(storage), np.uint8) if size_bytes else np.zeros(0, np.uint8)
    buffer = Buffer(base, data, name, element_bytes, label, writable, rows)
    vars(buffer)["host_address"] = host_pointer  # which is known: asking the array takes as long as all of this
    return buffer


def _distance(buffer: Buffer, address: int) -> int:
    """Bytes from an address to a buffer, 0 within."""
    return max(buffer.storage_base - address, address - (buffer.storage_base + buffer.storage.size - 1), 0)


def host_range(buffer: Buffer) -> tuple[int, int]:
    """Start and end of a buffer in the host's memory, its first and last dword complete."""
    start = int(buffer.storage.ctypes.data)
    return start, start + buffer.storage.size


def _in_line(host_pointer: int, offset_bytes: int) -> int:
    """The place in a line where memory begins, so far from the beginning of its allocation."""
    return (offset_bytes + (host_pointer - offset_bytes) % _HOST_ALIGNMENT_BYTES) % _LINE_BYTES


def address_of(array: Array) -> int:
    """The address of an array on the host; `array.ctypes.data` takes twice as long."""
    address: int = array.__array_interface__["data"][0]
    return address


def _offset(array: Array) -> int:
    """The bytes from the beginning of the array whose view an array is, which is the array itself mostly."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return address_of(array) - address_of(owner) if owner is not array else 0


def overlapping(buffers: dict[int, Buffer]) -> list[list[tuple[int, Buffer]]]:
    """Buffers with their slots, in groups that share no byte of the host's memory with each other."""
    groups: list[list[tuple[int, Buffer]]] = []
    end = -1
    for slot, buffer in sorted(buffers.items(), key=lambda item: host_range(item[1])):
        start, stop = host_range(buffer)
        if start >= end:
            groups.append([])
        groups[-1].append((slot, buffer))
        end = max(end, stop)
    return groups


def copy_of(buffer: Buffer) -> Buffer:
    """The same buffer at the same address with content of its own."""
    return replace(buffer, data=_copied(buffer.host_address, buffer.size_bytes))


def writable_groups(memory: Memory) -> list[tuple[int, int, list[Buffer]]]:
    """The host's memory that a kernel can write: start, end, and buffers, of which those of other groups share no byte.

    Buffers that overlap with one that can be written are among them.
    """
    found = []
    for group in overlapping(memory.buffers()):
        buffers = [buffer for _, buffer in group if buffer.size_bytes]
        if any(buffer.writable for buffer in buffers):
            found.append((min(host_range(b)[0] for b in buffers), max(host_range(b)[1] for b in buffers), buffers))
    return found


def _copied(host_pointer: int, size_bytes: int) -> Array:
    """A copy of host memory with the same alignment as the original."""
    storage = np.empty(size_bytes + _HOST_LINE_BYTES, np.uint8)
    start = (host_pointer - storage.ctypes.data) % _HOST_LINE_BYTES
    content = storage[start : start + size_bytes]
    for first in range(0, size_bytes, _COPIED_AT_ONCE):  # Ctrl-C need not wait for all of it
        count = min(_COPIED_AT_ONCE, size_bytes - first)
        ctypes.memmove(content.ctypes.data + first, host_pointer + first, count)
    return content
