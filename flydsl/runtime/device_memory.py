"""Memory of a device by its address, under HIP's names: allocations, and handles that other processes open.

    memory = flydsl.runtime.device.device_memory("cpu")  # or "cuda:0"
    address = memory.hipExtMallocWithFlags(1 << 20, hipDeviceMallocUncached)
    handle = memory.hipIpcGetMemHandle(address)  # 64 bytes, for another process
    theirs = memory.hipIpcOpenMemHandle(handle)  # there

For HIP devices these are HIP's functions. For CPU tensors, which run on the simulator, they share memory of the host
(`shared_memory`). Errors are DeviceError.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

hipDeviceMallocDefault, hipDeviceMallocFinegrained, hipDeviceMallocUncached = 0, 1, 3
hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost = 0, 1, 2
hipMemcpyDeviceToDevice, hipMemcpyDefault = 3, 4
hipIpcMemLazyEnablePeerAccess = 1
IPC_HANDLE_BYTES = 64


class DeviceMemory(ABC):
    """The memory of one device. Addresses are ints, as `tensor.data_ptr()` gives them."""

    def hipMalloc(self, size_bytes: int) -> int:
        """The address of new memory."""
        return self.hipExtMallocWithFlags(size_bytes, hipDeviceMallocDefault)

    @abstractmethod
    def hipExtMallocWithFlags(self, size_bytes: int, flags: int) -> int:
        """The address of new memory. flags: hipDeviceMallocUncached for memory that other GPUs poll."""

    @abstractmethod
    def hipFree(self, address: int) -> None:
        """Free memory that this process allocated."""

    @abstractmethod
    def hipMemset(self, address: int, value: int, size_bytes: int) -> None:
        """Set bytes."""

    @abstractmethod
    def hipMemcpyAsync(self, target: int, source: int, size_bytes: int, kind: int, stream: Any = None) -> None:
        """Copy bytes, in the order of a stream (None: the default one). kind: hipMemcpy..."""

    def hipMemcpy(self, target: int, source: int, size_bytes: int, kind: int = hipMemcpyDefault) -> None:
        """Copy bytes, and wait for it."""
        self.hipMemcpyAsync(target, source, size_bytes, kind)
        self.hipDeviceSynchronize()

    @abstractmethod
    def hipDeviceSynchronize(self) -> None:
        """Wait for all work of the device."""

    @abstractmethod
    def hipMemGetAddressRange(self, address: int) -> tuple[int, int]:
        """Start and size in bytes of the allocation that contains an address."""

    @abstractmethod
    def hipIpcGetMemHandle(self, address: int) -> bytes:
        """The handle, 64 bytes, by which another process opens the allocation that contains an address.

        Give the allocation's beginning: for others, what is opened is the address on some systems, and the beginning on
        others. The process itself cannot open it on HIP.
        """

    @abstractmethod
    def hipIpcOpenMemHandle(self, handle: bytes, flags: int = hipIpcMemLazyEnablePeerAccess) -> int:
        """The address here of another process's allocation."""

    @abstractmethod
    def hipIpcCloseMemHandle(self, address: int) -> None:
        """Give back what hipIpcOpenMemHandle gave."""
