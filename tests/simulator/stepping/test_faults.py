"""From the error of a launch into the debugger, and back to what wrote a value."""

from __future__ import annotations

import sys
from traceback import walk_tb

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import DeviceAssertion, MissingName, SimulatorError
from flydsl.simulator import MemoryFault, MissingWait, Recording, UninitializedLds, checking
from tests.launchers import launcher_of
from tests.simulator.mistaken_kernels import THREADS, neighbour


@flyc.kernel
def beyond_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        y[i] = x[i] + 1.0


_ASSEMBLY = "global_load_dword $0, $1, off"
beyond = launcher_of(beyond_kernel, grid=3, block=64)


def test_the_error_has_a_simulation_that_stands_before_the_instruction() -> None:
    x, y = torch.zeros(130), torch.zeros(192)
    with pytest.raises(MemoryFault) as caught:
        beyond(x, y, 150)
    error = caught.value
    if sys.version_info >= (3, 11):
        assert "error.simulation" in "".join(error.__notes__)
    before = y.clone()
    recording = error.simulation
    assert recording is error.simulation
    assert torch.equal(y, before)  # it works on copies
    now = recording.now
    assert now.instruction.listed.text == error.instruction
    assert now.wave(0).active.sum() == 150 - 128
    position = recording.position
    assert recording.back().position == position - 1


def test_back_to_what_wrote_a_register() -> None:
    with pytest.raises(MemoryFault) as caught:
        beyond(torch.zeros(130), torch.zeros(192), 150)
    recording = caught.value.simulation
    end = recording.position
    address = next(s.atom for s in recording.now.instruction.sources if getattr(s.atom, "file", "") == "v")
    name = f"v{address.first}"
    writer = recording.back_to_write(name, lane=0).now.instruction
    assert recording.position < end
    assert name in {f"v{r.atom.first + i}" for r in writer.results for i in range(r.atom.count)}
    with pytest.raises(SimulatorError, match="no recorded instruction before this has written v31 of wave 0"):
        recording.back_to_write("v31")


def test_checks_are_those_of_the_launch() -> None:
    from flydsl._mlir.dialects import llvm

    @flyc.kernel
    def impatient(x: fx.Tensor, y: fx.Tensor):
        address = fx.ptrtoint(fx.get_iter(x))
        value = fx.Int32(llvm.inline_asm(fx.T.i32, [address], _ASSEMBLY, "=v,v", has_side_effects=True))
        y[fx.thread_idx.x] = value + 1

    launch = launcher_of(impatient, grid=1, block=64)
    x = torch.zeros(64, dtype=torch.int32)
    with pytest.warns(UserWarning, match="a wait is missing"), checking("waits"), pytest.raises(MissingWait) as caught:
        launch(x, torch.zeros_like(x))
    assert caught.value.simulation.now.instruction.listed.text == caught.value.instruction


def test_an_error_of_no_call_has_no_simulation() -> None:
    with pytest.raises(MissingName, match="no simulation"):
        _ = SimulatorError("something").simulation


@flyc.kernel
def wrapping_kernel(y: fx.Tensor, n: fx.Int32):
    y[fx.thread_idx.x] = n * n


wrapping = launcher_of(wrapping_kernel, grid=1, block=64)


def test_an_assertion_says_where_its_values_are_instead() -> None:
    y = torch.zeros(64, dtype=torch.int32)
    with checking("overflow"), pytest.raises(DeviceAssertion) as caught:
        wrapping(y, 1 << 20)
    with pytest.raises(MissingName, match=r"no instruction that raises it[\s\S]*flydsl\.interpreting"):
        _ = caught.value.simulation
    with flydsl.interpreting(), checking("overflow"), pytest.raises(DeviceAssertion) as stopped:
        wrapping(y, 1 << 20)
    kernel = next(f for f, _ in walk_tb(stopped.value.__traceback__) if f.f_code.co_name == "wrapping_kernel")
    assert "1048576" in repr(kernel.f_locals["n"])


def test_what_does_not_come_again_is_said() -> None:
    @flyc.kernel
    def once(x: fx.Tensor, y: fx.Tensor):
        place = x[0]
        x[0] = fx.Int32(0)
        y[place] = fx.Int32(1)

    launch = launcher_of(once, grid=1, block=1)
    x = torch.tensor([1 << 20], dtype=torch.int32)
    with pytest.raises(MemoryFault) as caught:
        launch(x, torch.zeros(4, dtype=torch.int32))
    with pytest.raises(SimulatorError, match="does not happen again in workgroup"):
        _ = caught.value.simulation


def test_registers_have_the_type_of_the_instruction_that_wrote_them() -> None:
    recording = Recording(beyond.simulate(torch.arange(192.0), torch.zeros(192), 192))
    while not recording.now.instruction.mnemonic.startswith("v_add_f32"):
        recording.step()
    (result,) = (operand.atom for operand in recording.now.instruction.results)
    name = f"v{result.first}"
    assert recording.now.type_of(0, name) != "f32"  # a load's result, or an address
    recording.step()
    assert recording.now.type_of(0, name) == "f32"
    assert recording.now.type_of(0, "v31") == ""
    assert (recording.now.wave(0).vgpr[result.first].view("f4") == torch.arange(1.0, 65.0).numpy()).all()


def test_lds_that_nobody_wrote_was_not_written_by_the_launch() -> None:
    x = torch.zeros(THREADS)
    with checking("uninitialized"), pytest.raises(UninitializedLds) as caught:
        neighbour(x, x.clone())
    with pytest.raises(SimulatorError, match=r"has written LDS at 0x200\n[\s\S]*a launch writes nothing to LDS"):
        caught.value.simulation.back_to_write(4 * THREADS)
