"""What never ends is found out in seconds by the slow backend, too, and what ends is not mistaken for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.simulator import InstructionLimit, Memory, checking, counting
from flydsl.simulator.memory.buffers import SLOT_SHIFT

pytestmark = pytest.mark.slow

THREADS = 128


@flyc.kernel
def iterate_kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
    """Out = n times A, in n iterations with a barrier; for ever where n is negative."""
    t = fx.block_idx.x * THREADS + fx.thread_idx.x
    i = fx.Int32(0)
    while i != n:
        Out[t] = Out[t] + A[t]  # and so on
        fx.gpu.barrier()
        i = i + 1


@flyc.jit
def iterate(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
    iterate_kernel(A, Out, n).launch(grid=A.shape[0] // THREADS, block=THREADS)


@pytest.fixture
def lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", "lockstep")


@pytest.mark.parametrize("context", [nullcontext, checking, counting])
@pytest.mark.usefixtures("lockstep")
@pytest.mark.diagonal(2)
def test_an_endless_loop_is_reported_after_few_iterations(
    context: Callable[[], AbstractContextManager[object]],
) -> None:
    a, out = torch.ones(8 * THREADS), torch.zeros(8 * THREADS)
    with context(), pytest.raises(InstructionLimit) as caught:
        iterate(a, out, -1)
    assert "workgroup (0, 0, 0), wave 0" in str(caught.value)
    assert caught.value.at.file == __file__
    assert 0 < out.max() < 5000, "what native code did on its copy is not seen here"


@pytest.mark.usefixtures("lockstep")
def test_a_long_loop_that_ends_is_no_endless_one() -> None:
    a, out = torch.rand(2 * THREADS), torch.zeros(2 * THREADS)
    iterate(a, out, 700)
    expected = torch.zeros_like(a)
    for _ in range(700):
        expected += a
    assert torch.equal(out, expected)


def test_stepping_stops_where_it_began_to_look_ahead() -> None:
    a, out = torch.ones(THREADS), torch.zeros(THREADS)
    simulation = iterate.simulate(a, out, -1)
    for _ in range(2):  # it is as endless when one tries again
        with pytest.raises(InstructionLimit):
            simulation.run(until="kernel")
        assert simulation.wave(0).executed < 10_000
    simulation.step()
    assert not simulation.done


def test_copied_memory_overlaps_as_the_original_does() -> None:
    storage, other = np.arange(100, dtype=np.uint8), np.zeros(10, np.uint8)
    memory = Memory()
    views = {"all": storage, "middle": storage[20:60], "end": storage[50:], "other": other, "none": storage[:0]}
    addresses = {name: memory.map_array(view, name=name) for name, view in views.items()}
    copy = memory.with_copied_content()
    copied = {name: copy.buffers()[address >> SLOT_SHIFT] for name, address in addresses.items()}
    for name, buffer in copied.items():
        assert (buffer.base, buffer.name) == (addresses[name], name)
        np.testing.assert_array_equal(buffer.data, views[name])
        assert buffer.data.ctypes.data % 64 == views[name].ctypes.data % 64 or not buffer.size_bytes
    copied["middle"].data[35] = 200
    copied["other"].data[:] = 9
    assert copied["end"].data[5] == copied["all"].data[55] == 200
    assert storage[55] == 55
    assert not other.any()
