"""Memory that kernels know by its address: bounds, tensors, and waiting for what another process writes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LaunchError
from flydsl.simulator import MemoryFault, checking
from flydsl.simulator.memory import peers
from flydsl.simulator.memory.allocations import allocations
from flydsl.simulator.memory.buffers import Buffer
from flydsl.simulator.memory.peers import Peer, PeerLost, PeerTimeout
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow


@flyc.kernel
def copy_kernel(source: fx.Int64, target: fx.Int64, step: fx.Int64, first: fx.Int32):
    """Lane i's dword goes to target + i step."""
    word = fx.PointerType.get(fx.Int32, fx.AddressSpace.Global)
    i = fx.Int64(fx.thread_idx.x)
    value = fx.ptr_load(fx.inttoptr(word, source + (i + fx.Int64(first)) * 4))
    fx.ptr_store(value, fx.inttoptr(word, target + i * step))


@flyc.jit
def copy(source: fx.Int64, target: fx.Int64, step: fx.Int64, first: fx.Int32, threads: fx.Int32):
    copy_kernel(source, target, step, first).launch(grid=1, block=(threads, 1, 1))


@flyc.kernel
def wait_kernel(flag: fx.Int64):
    """The first wave waits, the other one at a barrier; then the flag's double is written behind it."""
    word = fx.PointerType.get(fx.Int32, fx.AddressSpace.Global)
    place = fx.inttoptr(word, flag)
    if fx.thread_idx.x < 64:
        seen = fx.generic_load(place, memory_order=fx.AtomicOrdering.Monotonic)
        while seen == 0:
            seen = fx.generic_load(place, memory_order=fx.AtomicOrdering.Monotonic)
    fx.gpu.barrier()
    if fx.thread_idx.x == 127:
        fx.ptr_store(fx.generic_load(place, memory_order=fx.AtomicOrdering.Monotonic) * 2, fx.inttoptr(word, flag + 4))


wait_for = launcher_of(wait_kernel, grid=3, block=128)


@pytest.fixture(params=["native", "lockstep"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", request.param)


@pytest.fixture
def words() -> Iterator[list[np.ndarray]]:
    """Two arrays of 64 dwords that kernels know as allocations."""
    arrays = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
    for name, array in zip(("first", "second"), arrays, strict=True):
        allocations.add(Buffer(array.ctypes.data, array.view(np.uint8), name, 1, "256 bytes"))
    yield arrays
    for array in arrays:
        allocations.remove(array.ctypes.data)


@pytest.mark.usefixtures("backend")
def test_an_allocation_is_reached_by_its_address(words: list[np.ndarray]) -> None:
    copy(words[0].ctypes.data, words[1].ctypes.data, 4, 0, 64)
    assert (words[1] == words[0]).all()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("first", [1, -1])
@pytest.mark.diagonal(2)
def test_it_has_bounds(words: list[np.ndarray], first: int) -> None:
    with pytest.raises(MemoryFault, match=r"reads 4 bytes outside of first \(256 bytes"):
        copy(words[0].ctypes.data, words[1].ctypes.data, 4, first, 64)


@pytest.mark.usefixtures("backend")
def test_lanes_may_mean_different_memory(words: list[np.ndarray]) -> None:
    """Lane 0 writes to an allocation, lane 1 to a tensor that only Python knows."""
    target = torch.zeros(64, dtype=torch.int32)
    first, last = words[1].ctypes.data, target.data_ptr()
    copy(words[0].ctypes.data, first, last - first, 5, 2)
    assert (words[1][0], target[0]) == (5, 6)


@pytest.mark.usefixtures("backend")
def test_a_tensor_is_found_by_its_address(words: list[np.ndarray]) -> None:
    source, target = torch.arange(64, dtype=torch.int32) * 3, torch.zeros(64, dtype=torch.int32)
    copy(source.data_ptr(), target.data_ptr(), 4, 0, 64)
    assert torch.equal(target, source)
    with pytest.raises(MemoryFault):
        copy(source.data_ptr(), target.data_ptr(), 4, 1, 64)


def test_freed_memory_is_nobodys(words: list[np.ndarray]) -> None:
    freed = np.zeros(64, np.int32)
    allocations.add(Buffer(freed.ctypes.data, freed.view(np.uint8), "freed", 1, "256 bytes"))
    allocations.remove(freed.ctypes.data)
    with pytest.raises(MemoryFault, match=r"in no buffer|outside of (?!freed)"):  # or of one that lies nearby
        copy(words[0].ctypes.data, freed.ctypes.data, 4, 0, 64)


class Shared:
    """A flag that another process shares, which does nothing."""

    def __init__(self) -> None:
        self.flag = np.zeros(64, np.int32)
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.peer = Peer(self.process.pid, 3)
        address = self.flag.ctypes.data
        allocations.add(Buffer(address, self.flag.view(np.uint8), "the flag", 1, "256 bytes"), self.peer)

    def close(self) -> None:
        allocations.remove(self.flag.ctypes.data)
        self.process.kill()
        self.process.communicate()
        self.peer.close()


@pytest.fixture
def shared() -> Iterator[Shared]:
    made = Shared()
    yield made
    made.close()


@pytest.mark.usefixtures("backend")
def test_a_kernel_waits_until_memory_changes(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []

    def pause(wait: peers.Wait) -> None:
        pauses.append(wait)
        if len(pauses) == 5:
            shared.flag[0] = 21

    monkeypatch.setattr(peers.Wait, "pause", pause)
    wait_for(shared.flag.ctypes.data)
    assert shared.flag[1] == 42
    assert len(pauses) >= 5


@pytest.mark.usefixtures("backend")
def test_a_process_that_ends_is_an_error_in_the_others(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_GRACE_S", 0.01)
    shared.process.kill()
    with pytest.raises(PeerLost, match=r"rank 3 \(process \d+\) has ended") as caught:
        wait_for(shared.flag.ctypes.data)
    assert caught.value.ranks == (3,)


def test_a_wait_without_end_is_an_error(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_PEER_PATIENCE_S", "0.2")
    with pytest.raises(PeerTimeout, match="alive: rank 3"):
        wait_for(shared.flag.ctypes.data)


def test_checks_that_repeat_a_workgroup_are_refused(shared: Shared) -> None:
    shared.flag[0] = 1
    with checking("races", "alignment"):
        wait_for(shared.flag.ctypes.data)
    with checking(), pytest.raises(LaunchError, match="shares memory with rank 3"):
        wait_for(shared.flag.ctypes.data)


def test_an_interrupt_ends_a_wait(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    pause, pauses = peers.Wait.pause, []

    def interrupted(wait: peers.Wait) -> None:
        pauses.append(wait)
        if len(pauses) == 3:
            signal.raise_signal(signal.SIGINT)
        pause(wait)

    monkeypatch.setenv("FLYDSL_SIMULATOR_THREADS", "1")
    monkeypatch.setattr(peers.Wait, "pause", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(shared.flag.ctypes.data)
