"""Memory that other processes open: handles, whose they are, and that nothing of it has a name."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from flydsl.errors import DeviceError
from flydsl.runtime.device import device_memory
from flydsl.runtime.device_memory import DeviceMemory, hipDeviceMallocUncached
from flydsl.runtime.shared_memory import SharedMemory
from tests.shared_memory import needs_shared_memory

pytestmark = [pytest.mark.slow, needs_shared_memory]

SIZE = 1000
# Prints the handle of an allocation and of a tensor that begin with a text, then waits for the end of its input.
OWNER = """
import ctypes, sys, torch
from flydsl.runtime.device import device_memory
memory = device_memory("cpu")
address = memory.hipMalloc(1000)
ctypes.memmove(address, b"allocated", 9)
tensor = torch.full((5000,), 7, dtype=torch.uint8).share_memory_()
print(memory.hipIpcGetMemHandle(address).hex())
print(memory.hipIpcGetMemHandle(tensor.data_ptr() + 3000).hex(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def memory() -> DeviceMemory:
    return device_memory("cpu")


@pytest.fixture
def allocation(memory: DeviceMemory) -> Iterator[int]:
    address = memory.hipExtMallocWithFlags(SIZE, hipDeviceMallocUncached)
    yield address
    memory.hipFree(address)


@pytest.fixture(scope="module")
def handles() -> Iterator[list[bytes]]:
    """The handles of a process that is alive."""
    environment = os.environ | {"RANK": "5"}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as owner:
        assert owner.stdout is not None
        yield [bytes.fromhex(owner.stdout.readline()) for _ in range(2)]
        owner.kill()


def bytes_at(address: int, count: int) -> bytes:
    return ctypes.string_at(address, count)


def test_memory_is_zero_and_can_be_set_and_copied(memory: DeviceMemory, allocation: int) -> None:
    assert bytes_at(allocation, SIZE) == bytes(SIZE)
    memory.hipMemset(allocation + 1, 5, 3)
    tensor = torch.zeros(4, dtype=torch.uint8)
    memory.hipMemcpy(tensor.data_ptr(), allocation, 4)
    assert tensor.tolist() == [0, 5, 5, 5]


@pytest.mark.parametrize("offset", [-1, SIZE - 3])
def test_copies_have_bounds(memory: DeviceMemory, allocation: int, offset: int) -> None:
    tensor = torch.zeros(4, dtype=torch.uint8)
    with pytest.raises(DeviceError):
        memory.hipMemcpy(allocation + offset, tensor.data_ptr(), 4)


def test_the_range_of_an_address(memory: DeviceMemory, allocation: int) -> None:
    assert memory.hipMemGetAddressRange(allocation + 77) == (allocation, SIZE)


def test_another_process_opens_an_allocation(memory: DeviceMemory, handles: list[bytes]) -> None:
    address = memory.hipIpcOpenMemHandle(handles[0])
    assert bytes_at(address, 10) == b"allocated\0"
    assert memory.hipMemGetAddressRange(address + 5) == (address, SIZE)
    memory.hipIpcCloseMemHandle(address)


def test_another_process_opens_a_shared_tensor(memory: DeviceMemory, handles: list[bytes]) -> None:
    """The handle is of all of its memory."""
    address = memory.hipIpcOpenMemHandle(handles[1])
    assert bytes_at(address, 5000) == bytes([7]) * 5000
    memory.hipIpcCloseMemHandle(address)


def test_a_handle_of_this_process_opens_the_same_memory(memory: DeviceMemory, allocation: int) -> None:
    again = memory.hipIpcOpenMemHandle(memory.hipIpcGetMemHandle(allocation + 9))
    memory.hipMemset(again, 9, 2)
    assert bytes_at(allocation, 3) == b"\x09\x09\x00"
    memory.hipIpcCloseMemHandle(again)


def test_memory_of_this_process_alone_has_no_handle(memory: DeviceMemory) -> None:
    tensor = torch.zeros(1000)
    with pytest.raises(DeviceError) as caught:
        memory.hipIpcGetMemHandle(tensor.data_ptr())
    assert "share_memory_()" in str(caught.value)


@pytest.mark.parametrize("size", [0, -1, 1 << 62])
def test_impossible_sizes(memory: DeviceMemory, size: int) -> None:
    with pytest.raises(DeviceError):
        memory.hipMalloc(size)


def test_free_and_close_take_each_their_own_once(memory: DeviceMemory, handles: list[bytes]) -> None:
    owned, opened = memory.hipMalloc(1), memory.hipIpcOpenMemHandle(handles[0])
    for function, address in ((memory.hipFree, opened), (memory.hipIpcCloseMemHandle, owned)):
        with pytest.raises(DeviceError):
            function(address)
    for function, address in ((memory.hipFree, owned), (memory.hipIpcCloseMemHandle, opened)):
        function(address)
        with pytest.raises(DeviceError):
            function(address)


def test_what_is_no_handle_is_refused(memory: DeviceMemory, handles: list[bytes]) -> None:
    valid = handles[0]
    for handle in (b"", valid[:-1], valid + b"\0", bytes(64), os.urandom(64)):
        with pytest.raises(DeviceError):
            memory.hipIpcOpenMemHandle(handle)


@pytest.mark.parametrize("field", ["process", "descriptor", "device", "inode", "size", "started"])
def test_a_handle_that_was_changed_is_refused(memory: DeviceMemory, handles: list[bytes], field: str) -> None:
    place = {"process": 8, "descriptor": 16, "device": 24, "inode": 32, "size": 48, "started": 56}[field]
    changed = bytearray(handles[0])
    (number,) = struct.unpack_from("<I", changed, place)
    struct.pack_into("<I", changed, place, number ^ 0x0040_0000)
    with pytest.raises(DeviceError):
        memory.hipIpcOpenMemHandle(bytes(changed))


def test_a_process_that_has_ended_is_named(memory: DeviceMemory, handles: list[bytes]) -> None:
    ended = subprocess.Popen([sys.executable, "-V"], stdout=subprocess.DEVNULL)
    ended.wait()
    changed = bytearray(handles[0])
    struct.pack_into("<I", changed, 8, ended.pid)
    with pytest.raises(DeviceError, match=f"{ended.pid} of a handle has ended"):
        memory.hipIpcOpenMemHandle(bytes(changed))


def test_memory_has_no_name(memory: DeviceMemory, allocation: int) -> None:
    """So nothing of it is left when its processes are gone, however they end."""
    with open("/proc/self/maps") as maps:
        (line,) = [line for line in maps if line.startswith(f"{allocation:x}-")]
    assert line.split(maxsplit=5)[5].strip() == "/memfd:flydsl (deleted)"


def test_it_takes_linux(memory: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DeviceError, match="unsupported on darwin"):
        SharedMemory().hipMalloc(16)
