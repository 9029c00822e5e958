"""The memory that the ranks of a node give each other: allocations, their addresses everywhere, arrays of these.

    node = NodeMemory(dist.group.WORLD, "cpu", world_size, rank)
    mine = node.allocate(1 << 20, hipDeviceMallocUncached)
    table = node.table(node.everywhere(mine))  # the address of an array of all ranks' addresses

Handles travel as bytes, through torch.distributed, and nothing is unpickled.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from flydsl.errors import DeviceError
from flydsl.runtime import ranks
from flydsl.runtime.device import device_memory
from flydsl.runtime.device_memory import IPC_HANDLE_BYTES, hipDeviceMallocDefault, hipMemcpyHostToDevice
from flydsl.runtime.host_tensors import remember
from kernels.custom_all_reduce_kernel import MOST_RANKS
from kernels.kernels_common import require

_TABLE_BYTES = 8 * MOST_RANKS
_TABLES = 4096
"""Arrays of pointers that a capture has at least."""
_PLACE = struct.Struct(f"<{IPC_HANDLE_BYTES}sQ")
"""A place in the memory of a rank: a handle, and the offset in its allocation."""


class NodeMemory:
    """The memory of one rank, and the addresses here of that of the others. group: of torch.distributed.

    memory: the device's. Methods that say so are collective calls: every rank makes them.
    """

    def __init__(self, group: Any, device: Any, world_size: int, rank: int) -> None:
        self.exchange = Exchange(group, world_size)
        self.memory, self.rank = device_memory(device), rank
        self._owned: list[int] = []
        self._opened: dict[bytes, int] = {}
        self._tables: list[int] = []

    def allocate(self, size_bytes: int, flags: int) -> int:
        """The address of memory that `close` frees. flags: hipDeviceMalloc..."""
        self._owned.append(self.memory.hipExtMallocWithFlags(size_bytes, flags))
        return self._owned[-1]

    def everywhere(self, address: int) -> list[int]:
        """The addresses here of what every rank has allocated, in the order of ranks. A collective call."""
        addresses = self.places([address])[0]
        self.meet()
        return addresses

    def meet(self) -> None:
        """Wait for all ranks: they have opened what this one has allocated, which may be freed from now on."""
        self.exchange(b"\0")

    def places(self, mine: Sequence[int]) -> list[list[int]]:
        """For each address of this rank, the addresses here of every rank's. A collective call."""
        of_ranks = self.exchange(b"".join(map(self._place, mine)))
        addresses = [
            list(mine) if rank == self.rank else [self._address(*place) for place in _PLACE.iter_unpack(content)]
            for rank, content in enumerate(of_ranks)
        ]
        return [list(of_place) for of_place in zip(*addresses, strict=True)]

    def _place(self, address: int) -> bytes:
        """The handle is that of the allocation's beginning: HIP opens another one where it points to, CUDA does not."""
        base = self.memory.hipMemGetAddressRange(address)[0]
        return _PLACE.pack(self.memory.hipIpcGetMemHandle(base), address - base)

    def _address(self, handle: bytes, offset: int) -> int:
        """The address here of a place in the memory of another rank, which is opened once."""
        if handle not in self._opened:
            self._opened[handle] = self.memory.hipIpcOpenMemHandle(handle)
        return self._opened[handle] + offset

    def rotated(self, entries: Sequence[int]) -> list[int]:
        """Entries in the order of ranks, from this rank on."""
        return [*entries[self.rank :], *entries[: self.rank]]

    def table(self, entries: Sequence[int]) -> int:
        """The address of an array of pointers."""
        table = self.new_table()
        self.write_table(table, entries)
        return table

    def new_table(self) -> int:
        """An array of pointers that is never used again: a captured graph may be replayed until `close`."""
        if not self._tables:
            self.reserve_tables()
        return self._tables.pop()

    def reserve_tables(self) -> None:
        """Have room for many arrays of pointers: nothing can be allocated while a graph is captured."""
        if len(self._tables) < _TABLES:
            first = self.allocate(2 * _TABLES * _TABLE_BYTES, hipDeviceMallocDefault)
            self._tables += range(first, first + 2 * _TABLES * _TABLE_BYTES, _TABLE_BYTES)

    def write_table(self, table: int, entries: Sequence[int]) -> None:
        """Fill an array of pointers; unused entries are the first one."""
        import torch

        filled = [*entries, *[entries[0]] * (MOST_RANKS - len(entries))]
        content = torch.tensor(filled, dtype=torch.int64)
        remember(content)
        self.memory.hipMemcpy(table, content.data_ptr(), _TABLE_BYTES, hipMemcpyHostToDevice)

    def close(self) -> None:
        """Give the memory back, when no rank uses it any more: HIP does not say what an access would do then."""
        for address in self._opened.values():
            self.memory.hipIpcCloseMemHandle(address)
        for address in self._owned:
            self.memory.hipFree(address)
        self._opened.clear()
        self._owned.clear()


class Exchange:
    """Gives every rank's bytes to all ranks: `exchange(mine)` is a list in the order of ranks.

    Bytes of all ranks are of one length. A group with another backend than gloo gets one for this.
    """

    def __init__(self, group: Any, world_size: int) -> None:
        import torch.distributed as dist

        if not dist.is_initialized():
            raise DeviceError(
                "torch.distributed is not initialized", hint="flydsl.runtime.ranks.init_process_group(), under torchrun"
            )
        require(dist.get_world_size(group) == world_size, f"a group of {dist.get_world_size(group)}",
                f"{world_size} ranks")  # fmt: skip
        if dist.get_backend(group) == "gloo":
            self._group = group
        else:
            self._group = ranks.new_gloo_group(dist.get_process_group_ranks(group))
        self._world_size = world_size

    def __call__(self, mine: bytes) -> list[bytes]:
        import torch
        import torch.distributed as dist

        sent = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        received = [torch.empty_like(sent) for _ in range(self._world_size)]
        dist.all_gather(received, sent, group=self._group)
        return [bytes(content.numpy()) for content in received]
