"""The memory of simulated GPUs that other processes open: files without a name, which end with the last process.

A handle names a file that a process has open: the process, when it started, the file's descriptor and identity.
Another process of the same user opens it through /proc. So there is no name in /dev/shm that a killed process could
leave behind, nothing listens, and nothing is unpickled. Torch's shared tensors (`tensor.share_memory_()`) are such
files, too.

Handles of other users, of processes that have ended, and of files that changed are refused.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import struct
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from flydsl import env
from flydsl.errors import DeviceError
from flydsl.runtime.device_memory import IPC_HANDLE_BYTES, DeviceMemory
from flydsl.runtime.host_tensors import host_tensor_memory
from flydsl.simulator.arrays import Array
from flydsl.simulator.memory.allocations import allocations
from flydsl.simulator.memory.buffers import Buffer
from flydsl.simulator.memory.peers import Peer

_GUARD_BYTES = 1 << 16
"""Follows each allocation in its file, so that an access beyond the end does not reach the next one."""
_MAGIC = b"flydsl-1"
# magic, process, rank, descriptor, device, inode, offset in the file, size in bytes, start of the process
_HANDLE = struct.Struct("<8sIiQQQQQQ")
assert _HANDLE.size == IPC_HANDLE_BYTES


@dataclass
class _Mapping:
    """A file, or a part, in this process's memory. peer: the process that allocated it, if it is another one."""

    content: Array
    descriptor: int
    peer: Peer | None = None

    @property
    def address(self) -> int:
        return int(self.content.ctypes.data)

    @property
    def size_bytes(self) -> int:
        return self.content.size

    def close(self) -> None:
        """Take the memory away from launches that begin after this; those that have begun keep it."""
        allocations.remove(self.address)
        os.close(self.descriptor)
        if self.peer is not None:
            self.peer.close()


_lock = threading.Lock()
_mappings: dict[int, _Mapping] = {}
"""By address."""


class SharedMemory(DeviceMemory):
    """The memory of a simulated GPU. It is that of the process, whatever the object."""

    def hipExtMallocWithFlags(self, size_bytes: int, flags: int) -> int:
        """The address of new memory, which is zero. flags: of caches, which are not simulated."""
        if size_bytes <= 0:
            raise DeviceError(f"an allocation of {size_bytes} bytes: at least 1")
        _require_linux()
        try:
            descriptor = os.memfd_create("flydsl", os.MFD_CLOEXEC)
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE + _GUARD_BYTES)
            mapping = _mapped(descriptor, 0, size_bytes)
        except (OSError, OverflowError) as error:
            raise DeviceError(f"an allocation of {size_bytes} bytes: {error}") from error
        return _add(mapping, f"an allocation of {size_bytes} bytes")

    def hipFree(self, address: int) -> None:
        _take(address, opened=False).close()

    def hipMemset(self, address: int, value: int, size_bytes: int) -> None:
        _require_memory(address, size_bytes)
        ctypes.memset(address, value, size_bytes)

    def hipMemcpyAsync(self, target: int, source: int, size_bytes: int, kind: int, stream: Any = None) -> None:
        """Copy bytes between allocations and tensors. It is complete when the call returns."""
        _require_memory(target, size_bytes)
        _require_memory(source, size_bytes)
        ctypes.memmove(target, source, size_bytes)

    def hipDeviceSynchronize(self) -> None:
        """Nothing: launches and copies are complete when the call returns."""

    def hipMemGetAddressRange(self, address: int) -> tuple[int, int]:
        return _range_at(address)

    def hipIpcGetMemHandle(self, address: int) -> bytes:
        """The handle of an allocation, or of a tensor in shared memory. Raises DeviceError for other memory."""
        _require_linux()
        mapping = _mapping_at(address)
        if mapping is not None and mapping.peer is None:
            start, size, descriptor, offset = mapping.address, mapping.size_bytes, mapping.descriptor, 0
        else:
            start, size = _range_at(address)
            descriptor, offset = _shared_file(start)
        status = os.fstat(descriptor)
        pid = os.getpid()
        identity = (status.st_dev, status.st_ino, offset, size, _started(pid))
        return _HANDLE.pack(_MAGIC, pid, _rank(), descriptor, *identity)

    def hipIpcOpenMemHandle(self, handle: bytes, flags: int = 1) -> int:
        if len(handle) != IPC_HANDLE_BYTES or not handle.startswith(_MAGIC):
            raise DeviceError(f"{bytes(handle)!r} is not a handle", hint="hipIpcGetMemHandle(address) gives one")
        _, pid, rank, number, device, inode, offset, size, started = _HANDLE.unpack(handle)
        peer = _peer(pid, rank, started)
        try:
            descriptor = _opened(pid, number, (device, inode), offset + size)
            mapping = _mapped(descriptor, offset, size)
        except OSError as error:
            peer.close()
            raise DeviceError(f"the memory of {peer} cannot be opened: {error}") from error
        mapping.peer = peer
        return _add(mapping, f"memory of {peer}")

    def hipIpcCloseMemHandle(self, address: int) -> None:
        _take(address, opened=True).close()


# --- mappings --------------------------------------------------------------------------------------------------------


def _mapped(descriptor: int, offset: int, size_bytes: int) -> _Mapping:
    """A part of a file in memory, and what follows in the file. Owns the descriptor."""
    skipped = offset % mmap.ALLOCATIONGRANULARITY
    file = mmap.mmap(descriptor, os.fstat(descriptor).st_size - (offset - skipped), offset=offset - skipped)
    return _Mapping(np.frombuffer(file, np.uint8)[skipped : skipped + size_bytes], descriptor)


def _add(mapping: _Mapping, name: str) -> int:
    with _lock:
        _mappings[mapping.address] = mapping
    buffer = Buffer(mapping.address, mapping.content, name, 1, f"{mapping.size_bytes} bytes")
    allocations.add(buffer, mapping.peer)
    return mapping.address


def _take(address: int, *, opened: bool) -> _Mapping:
    """Remove a mapping from the table. Raises DeviceError if there is none, or one of the other kind."""
    function = "hipIpcCloseMemHandle" if opened else "hipFree"
    with _lock:
        mapping = _mappings.get(address)
        if mapping is None or (mapping.peer is not None) != opened:
            wanted = "hipIpcOpenMemHandle" if opened else "hipMalloc"
            raise DeviceError(f"{function}({address:#x})", hint=f"pass an address that {wanted} gave, once")
        return _mappings.pop(address)


def _mapping_at(address: int) -> _Mapping | None:
    with _lock:
        return next((m for m in _mappings.values() if m.address <= address < m.address + m.size_bytes), None)


def _range_at(address: int) -> tuple[int, int]:
    mapping = _mapping_at(address)
    if mapping is not None:
        return mapping.address, mapping.size_bytes
    memory = host_tensor_memory(address)
    if memory is None:
        raise DeviceError(
            f"there is no memory at {address:#x}",
            hint="pass an address from hipMalloc, or of a CPU tensor that is alive",
        )
    return memory.base, memory.size_bytes


def _require_memory(address: int, size_bytes: int) -> None:
    """Raise DeviceError unless all of the bytes lie in one allocation or tensor."""
    if size_bytes == 0:
        return
    start, size = _range_at(address)
    if size_bytes < 0 or address + size_bytes > start + size:
        raise DeviceError(
            f"{size_bytes} bytes at {address:#x}: the memory there has {size} bytes and begins at {start:#x}"
        )


# --- files and processes ---------------------------------------------------------------------------------------------


def _require_linux() -> None:
    if sys.platform != "linux":
        raise DeviceError(
            f"memory shared by simulated GPUs is unsupported on {sys.platform}", hint="run the program on Linux"
        )


def _shared_file(address: int) -> tuple[int, int]:
    """The open file of the shared memory at an address, and the offset there. Raises DeviceError for other memory."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, access, offset, device, inode, *_ = line.split()
            first, last = (int(end, 16) for end in span.split("-"))
            if first <= address < last and access.endswith("s"):
                major, minor = (int(number, 16) for number in device.split(":"))
                identity = os.makedev(major, minor), int(inode)
                return _descriptor_of(identity, address), int(offset, 16) + address - first
    raise DeviceError(
        f"the memory at {address:#x} is this process's own",
        hint="tensor.share_memory_() moves a CPU tensor to memory that other processes can open",
    )


def _descriptor_of(identity: tuple[int, int], address: int) -> int:
    """The open descriptor of a file, by its device and inode. Raises DeviceError if there is none."""
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:  # the listing's own descriptor, closed by now
            continue
        if (status.st_dev, status.st_ino) == identity:
            return int(name)
    raise DeviceError(
        f"the file of the shared memory at {address:#x} is not open",
        hint='torch.multiprocessing.set_sharing_strategy("file_descriptor"), then tensor.share_memory_()',
    )


def _started(pid: int) -> int:
    """The start time of a process, in clock ticks. Raises OSError if there is none."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def _peer(pid: int, rank: int, started: int) -> Peer:
    """The process that made a handle. Raises DeviceError if it has ended."""
    try:
        peer = Peer(pid, rank)
    except (OSError, OverflowError) as error:
        raise DeviceError(
            f"the process {pid} of a handle has ended", hint="a process must not end while others use its memory"
        ) from error
    try:
        if _started(pid) == started:
            return peer
    except OSError:
        pass
    peer.close()
    raise DeviceError(
        f"the process {pid} of a handle has ended", hint="a process must not end while others use its memory"
    )


def _opened(pid: int, number: int, identity: tuple[int, int], end: int) -> int:
    """A descriptor of our own for a file that another process has open. Raises OSError if it is not the one meant."""
    descriptor = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    is_meant = (status.st_dev, status.st_ino) == identity and stat.S_ISREG(status.st_mode)
    if not is_meant or status.st_uid != os.geteuid() or status.st_size < end:
        os.close(descriptor)
        raise OSError("it is no longer there")
    return descriptor


def _rank() -> int:
    """This process's number in torch.distributed; before that is initialized, by torchrun's variable; or -1."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = env.text("RANK")
    return int(rank) if rank.isdigit() else -1
