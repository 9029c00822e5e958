"""Launches of a benchmark that wait until their results are read, and operators of torch that do (`put_off`).

A benchmark wants the time of a launch, which follows from some of its workgroups, and mostly throws the results away.
So its launches wait, in their order, and are carried out before anything else can read or write their memory: an
operator of torch, a copy, another launch, the program by address. They are forgotten when nothing but themselves holds
any of their memory.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from flydsl.gpu.devices import tensors_in
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.tensor import GpuTensor
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.memory.buffers import Memory, host_range
from flydsl.simulator.timing.left_out import LeftOut

_ALLOCATIONS = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "new_zeros", "new_ones",
                 "new_full", "zeros_like", "ones_like", "full_like")
)  # fmt: skip
"""Operators that ask their operand for no more than its size."""
_MOST_BYTES = 4 << 30
"""Of memory that only launches which wait may hold."""


class _Launch(NamedTuple):
    """run: carries it out. storages: the keys of what it works on. written: of what it may write."""

    run: Callable[[], Any]
    storages: frozenset[int]
    written: frozenset[int]


class _Key(NamedTuple):
    """The owner of memory of a launch that waits: its storage's key. A tensor would be held by its own launch."""

    storage: int


class Waiting:
    """The launches that wait. storages: what they work on, by key."""

    def __init__(self) -> None:
        self._launches: list[_Launch] = []
        self.storages: dict[int, torch.UntypedStorage] = {}
        self._lock = threading.RLock()
        self.left_out = Depends()

    def __bool__(self) -> bool:
        return bool(self._launches)

    def add(self, memory: Memory, run: Callable[[], Any]) -> None:
        """Let a launch wait. Its memory must be that of tensors (`is_of_tensors`)."""
        storages = _storages(memory)
        memory.owners[:] = [_Key(storage._cdata) for storage in storages]
        self.add_work(storages, storages, run)

    def add_work(
        self, reads: Iterable[torch.UntypedStorage], writes: Iterable[torch.UntypedStorage], run: Callable[[], Any]
    ) -> None:
        """Let something wait that reads and writes some storages, and knows tensors in them by their keys."""
        with self._lock:
            written = {storage._cdata: storage for storage in writes}
            storages = {storage._cdata: storage for storage in reads} | written
            self.storages.update(storages)
            self._launches.append(_Launch(run, frozenset(storages), frozenset(written)))
            MEMORY.waiting = self
            if sum(storage.nbytes() for storage in self.storages.values()) > _MOST_BYTES:
                self.carry_out()

    def before_operator(self, operator: Any, operands: Iterable[Any]) -> None:
        """Carry the launches out if an operator of torch reads or writes what they work on."""
        if uses_content(operator):
            self.before_access(operands)

    def before_access(self, operands: Iterable[Any]) -> None:
        """Carry the launches out if they work on the memory of a tensor among some operands."""
        with torch._C.DisableTorchFunctionSubclass():
            strided = [tensor for tensor in tensors_in(operands) if tensor.layout is torch.strided]
            if any(tensor.untyped_storage()._cdata in self.storages for tensor in strided):
                self.carry_out()

    def before_address(self) -> None:
        """Carry the launches out if the program asks for an address, other than for a launch of a benchmark."""
        if not MEMORY.is_benchmark:
            self.carry_out()

    def forget(self) -> None:
        """Drop the launches whose results cannot be read any more."""
        with self._lock:
            asked = {key for key in self.storages if _is_held(self.storages, key)}
            kept: set[int] = set()
            while asked != kept:
                kept = asked
                asked = kept.union(*(one.storages for one in self._launches if one.written & kept))
            self._launches = [one for one in self._launches if one.written & kept]
            self._keep(kept)

    def carry_out(self) -> None:
        """Carry out all launches, in their order. Raises what the first of them raises that fails."""
        with self._lock:
            self.forget()
            launches, self._launches = self._launches, []
            try:
                for launch in launches:  # not counted, traced or checked by the contexts around the access
                    contextvars.Context().run(launch.run)
                    MEMORY.changes += 1
            finally:
                self._keep(set())

    def discard_after(self, count: int) -> None:
        """Drop all launches but the first ones: of a trial, whose results count for nothing."""
        with self._lock:
            del self._launches[count:]
            self._keep(set().union(*(launch.storages for launch in self._launches)))

    def __len__(self) -> int:
        return len(self._launches)

    def _keep(self, kept: set[int]) -> None:
        self.storages = {key: storage for key, storage in self.storages.items() if key in kept}
        if not self._launches:
            self.left_out, MEMORY.waiting = Depends(), ()


class Depends(LeftOut):
    """The memory that waiting launches store to. buffer: one that decides what the last launch executes, or None."""

    buffer: str | None = None

    def decides(self, dispatch: Dispatch, streams: Any, *, is_known: bool = False) -> str | None:
        """Note the buffer, and say nothing of it: the launch is timed again after those that it depends on."""
        self.buffer = super().decides(dispatch, streams, is_known=is_known)
        return None


def uses_content(operator: Any) -> bool:
    """True if an operator of torch reads or writes the memory of its operands."""
    return not operator.is_view and operator._schema.name not in _ALLOCATIONS


def is_of_tensors(memory: Memory) -> bool:
    """True if all memory that a launch can write is known, and of tensors of a GPU, whose use is seen."""
    if memory.in_place or not all(
        isinstance(owner, GpuTensor) or (isinstance(owner, _Key) and owner.storage in WAITING.storages)
        for owner in memory.owners
    ):
        return False
    places = [(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in _storages(memory)]
    buffers = [host_range(buffer) for buffer in memory.buffers().values() if buffer.writable and buffer.size_bytes]
    return all(any(first <= start and stop <= last for first, last in places) for start, stop in buffers)


def _storages(memory: Memory) -> list[torch.UntypedStorage]:
    with torch._C.DisableTorchFunctionSubclass():
        return [
            WAITING.storages[owner.storage] if isinstance(owner, _Key) else owner.untyped_storage()
            for owner in memory.owners
        ]


def _is_held(storages: dict[int, torch.UntypedStorage], key: int) -> bool:
    """True if a tensor holds a storage, or the program does, besides the dictionary and the Python object itself."""
    return torch._C._storage_Use_Count(key) > 1 or sys.getrefcount(storages[key]) > 2


WAITING = Waiting()
