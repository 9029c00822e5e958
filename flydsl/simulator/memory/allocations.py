"""Memory that programs know by its address: allocations of the simulated device, and what other processes share.

A kernel gets such addresses as numbers, or loads them from memory. Accesses are checked against the allocation's ends,
as those of tensors are. `Memory` takes all of them at the start of a launch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from flydsl.errors import DeviceError
from flydsl.simulator.memory.buffers import Buffer, Memory
from flydsl.simulator.memory.peers import Peer, Peers


@dataclass(frozen=True)
class Allocation:
    """Memory at its address on the host. owner: the other process that allocated it; None: this one did."""

    buffer: Buffer
    owner: Peer | None = None


class Allocations:
    """The allocations of this process. find: asked for the memory at an address that is in none of them."""

    def __init__(self) -> None:
        self._by_address: dict[int, Allocation] = {}
        self._lock = threading.Lock()
        self.find: Callable[[int], Buffer | None] | None = None

    def add(self, buffer: Buffer, owner: Peer | None = None) -> None:
        """Let kernels access memory at its address on the host."""
        with self._lock:
            self._by_address[buffer.base] = Allocation(buffer, owner)

    def remove(self, address: int) -> None:
        """Take memory away from launches that begin after this. Raises DeviceError if none begins at the address."""
        with self._lock:
            if self._by_address.pop(address, None) is None:
                raise DeviceError(f"no allocation begins at {address:#x}")

    def memory(self) -> Memory:
        """The address space of a launch: the allocations and, with those of other processes, these processes."""
        with self._lock:
            known = list(self._by_address.values())
        owners = {a.owner.pid: a.owner for a in known if a.owner is not None}
        return Memory([a.buffer for a in known], self.find, Peers(owners.values()) if owners else None)


allocations = Allocations()
"""The allocations of this process."""
