"""Single steps: where a simulation stands, what it shows, and that the tensors are in the end what a launch leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flydsl.errors import ArgumentError, LaunchError, SimulatorError
from flydsl.simulator import LdsRace, MemoryFault, Simulation, checking, limited
from flydsl.simulator.errors import InstructionLimit
from tests.simulator import mistaken_kernels as kernels
from tests.simulator.mistaken_kernels import line_of, operands


@pytest.fixture
def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return operands(blocks=3)


@pytest.fixture
def sim(tensors: tuple[torch.Tensor, torch.Tensor]) -> Simulation:
    return kernels.reverse.simulate(*tensors, workgroup=(1, 0, 0))


def blocks(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1, kernels.THREADS)


def test_it_stands_before_the_first_instruction_of_its_workgroup(sim: Simulation, tensors: Any) -> None:
    a, out = tensors
    assert (sim.workgroup, sim.wave_count, sim.current, sim.done) == ((1, 0, 0), 2, (0, 1), False)
    assert sim.instruction is sim.listing[0]
    assert [wave.executed for wave in sim.waves] == [0, 0]
    assert torch.equal(blocks(out)[0], blocks(a)[0].flip(0))  # the workgroup before this one has run
    assert not blocks(out)[1:].any()


def test_run_leaves_what_a_launch_leaves(sim: Simulation, tensors: Any) -> None:
    a, out = tensors
    sim.step(5).run()
    assert sim.done
    assert torch.equal(blocks(out), blocks(a).flip(1))


def test_single_steps_leave_what_a_launch_leaves(sim: Simulation, tensors: Any) -> None:
    a, out = tensors
    steps = 0
    while not sim.done:
        sim.step()
        steps += 1
    assert torch.equal(blocks(out), blocks(a).flip(1))
    assert steps == sum(1 for i in sim.listing if i.mnemonic != "s_nop")  # no loop, and nothing skipped


def test_a_step_is_one_instruction(sim: Simulation) -> None:
    for count in (1, 2, 5):
        before = [wave.executed for wave in sim.waves]
        sim.step(count)
        assert [wave.executed for wave in sim.waves] == [n + count for n in before]
    sim.step(wave=1)
    assert [wave.executed for wave in sim.waves] == [8, 9]
    assert sim.current == (0,)  # which is behind
    assert sim.wave(1).pc == sim.wave(0).pc + 1


def test_registers(sim: Simulation) -> None:
    wave = sim.wave(1)
    assert (wave.exec, wave.active.all(), wave.scc, wave.done, wave.at_barrier) == (
        2**64 - 1,
        True,
        False,
        False,
        False,
    )
    np.testing.assert_array_equal(wave.vgpr[0], 64 + np.arange(64))
    load = next(i for i in sim.listing if i.mnemonic == "global_load_dword")
    sim.run(until=f"isa:{load.listed.line}").step()
    register = load.results[0].atom.first
    np.testing.assert_array_equal(wave.vgpr.view("f4")[register], 128 + 1 + 64 + np.arange(64))
    assert sim.changed == {0: (f"v{register}",), 1: (f"v{register}",)}
    assert wave.vgpr.dtype == wave.sgpr.dtype == np.uint32
    assert (wave.sgpr.shape, wave.vgpr.shape[1], wave.agpr.shape) == ((102,), 64, (0, 64))


def test_writing_a_register_changes_what_happens(sim: Simulation, tensors: Any) -> None:
    store = next(i for i in sim.listing if i.mnemonic == "ds_write_b32")
    sim.run(until=f"isa:{store.listed.line}")
    sim.wave(0).vgpr.view("f4")[store.sources[1].atom.first, 5] = -1.0
    sim.run()
    assert blocks(tensors[1])[1, kernels.THREADS - 1 - 5] == -1.0


def test_run_until_a_source_line(sim: Simulation) -> None:
    line = line_of("reads what the other wave writes")
    sim.run(until=line)
    assert sim.instruction.location.line == line
    sim.run(until=f"mistaken_kernels.py:{line_of('writes')}")
    assert sim.instruction.location.line == line_of("writes")
    assert f"mistaken_kernels.py:{line_of('writes')}" in sim.where()
    assert "tile[t] = A[first + t]" in sim.where()
    assert f"-> {sim.instruction.listed.line:5d}  {sim.instruction.listed.text}" in repr(sim)


def test_run_until_the_barrier(sim: Simulation, tensors: Any) -> None:
    a, _ = tensors
    sim.run(until="barrier")
    assert (sim.current, sim.instruction, sim.done) == ((), None, False)
    assert all(wave.at_barrier for wave in sim.waves)
    assert "every wave waits at a barrier" in sim.where()
    np.testing.assert_array_equal(sim.lds.view("f4"), blocks(a)[1].numpy())
    sim.step()
    assert not any(wave.at_barrier for wave in sim.waves)
    sim.run(until="barrier")  # there is no other one
    assert sim.done


def test_one_wave_waits_for_the_other(sim: Simulation) -> None:
    while not sim.wave(0).at_barrier:
        sim.step(wave=0)
    assert (sim.current, sim.wave(1).executed) == ((1,), 0)
    with pytest.raises(SimulatorError, match=r"wave 0 cannot go on: it waits at a barrier"):
        sim.step(wave=0)
    while not sim.wave(1).at_barrier:
        sim.step(wave=1)
    assert sim.step(wave=0).current == (1,)
    while not sim.wave(0).done:
        sim.step(wave=0)
    with pytest.raises(SimulatorError, match="wave 0 cannot go on: it has ended"):
        sim.step(wave=0)


def test_breakpoints(sim: Simulation) -> None:
    first = sim.breakpoint(line_of("writes"))
    store = next(i for i in sim.listing if i.mnemonic == "ds_write_b32")
    second = sim.breakpoint(f"isa:{store.listed.line}")
    assert sim.breakpoints == (first, second)
    assert second.instructions == {store.index}
    sim.run()
    assert sim.instruction.index in first.instructions
    sim.clear(first)
    assert sim.run().instruction is store
    sim.clear()
    assert sim.breakpoints == ()
    assert sim.run().done


def test_the_instruction_behind_a_barrier_is_a_place(sim: Simulation) -> None:
    barrier = next(i for i in sim.listing if i.mnemonic == "s_barrier")
    behind = sim.listing[barrier.index + 1]
    sim.run(until=f"isa:{behind.listed.line}")
    assert sim.instruction is behind
    assert sim.current == (0, 1)


def test_trace(sim: Simulation) -> None:
    sim.step(2)
    assert sim.trace == []
    sim.recording = True
    sim.step(2)
    assert [(e.wave, e.instruction.index) for e in sim.trace] == [(0, 2), (1, 2), (0, 3), (1, 3)]
    sim.run()
    assert [e.instruction.mnemonic for e in sim.trace if e.wave == 1][-1] == "s_endpgm"
    assert str(sim.trace[0]) == f"wave 0  {sim.listing[2].listed.line:5d}  {sim.listing[2].listed.text}"


def test_places_that_do_not_exist(sim: Simulation) -> None:
    with pytest.raises(SimulatorError, match=r"line 1\b(.|\n)*lines with instructions: "):
        sim.run(until=1)
    with pytest.raises(SimulatorError, match=r"no instruction comes from a file other\.py"):
        sim.breakpoint("other.py:3")
    with pytest.raises(SimulatorError, match=r"ISA line 1\b(.|\n)*they are on lines"):
        sim.run(until="isa:1")
    with pytest.raises(SimulatorError, match="'somewhere' is not a place"):
        sim.run(until="somewhere")
    with pytest.raises(IndexError, match="waves 0 to 1, not 2"):
        sim.wave(2)
    assert sim.wave(0).executed == 0


def test_nothing_goes_on_after_the_end(sim: Simulation) -> None:
    sim.run()
    assert "everything has run" in repr(sim)
    assert all(wave.done for wave in sim.waves)
    for go_on in (sim.step, sim.run):
        with pytest.raises(SimulatorError, match="nothing is left to simulate"):
            go_on()


def test_two_kernels() -> None:
    a, out = operands()
    b = torch.zeros_like(a)
    sim = kernels.two_sums.simulate(a, b, out)
    first = sim.kernel
    sim.run(until="kernel")
    assert sim.kernel != first
    assert torch.equal(b, a + 1)
    assert sim.wave(0).executed == 0
    assert not out.any()
    sim.run()
    assert torch.equal(out, a + 3)
    by_steps = kernels.two_sums.simulate(a, b, out.zero_())
    by_steps.recording = True
    by_steps.run()
    assert torch.equal(out, a + 3)
    assert by_steps.kernel == sim.kernel


def test_a_workgroup_that_is_not_there(tensors: Any) -> None:
    with pytest.raises(LaunchError, match=r"no grid of this launch has workgroup \(3, 0, 0\)"):
        kernels.reverse.simulate(*tensors, workgroup=(3, 0, 0))


def test_an_artifact_simulates_too(tensors: Any) -> None:
    a, out = tensors
    artifact = kernels.reverse.lower(a, out).artifact
    artifact.simulate(a, out).run()
    assert torch.equal(blocks(out), blocks(a).flip(1))
    with pytest.raises(ArgumentError, match="compiled for"):
        artifact.simulate(a.int(), out)


def test_an_error_leaves_it_before_the_instruction() -> None:
    a, out = operands()
    sim = kernels.past_the_end.simulate(a, out)
    for _ in range(2):
        with pytest.raises(MemoryFault, match="outside of A"):
            sim.run()
        assert sim.current == (0, 1)
        assert sim.instruction.location.line == line_of("reads one element past A")
    address = sim.instruction.sources[0].atom.first
    sim.wave(1).vgpr[address, 63] -= 4
    assert sim.run().done
    assert torch.equal(out[:-1], a[1:])  # the last thread stored where the one before it did
    assert out[-1] == 0


def test_a_loop_that_never_ends_is_found_in_single_steps() -> None:
    with limited(instructions=500):
        sim = kernels.endless.simulate(*operands())
        sim.recording = True
    with pytest.raises(InstructionLimit, match="500 instructions"):
        sim.run()
    assert len(sim.trace) == 2 * 500


def test_checks_hold_in_single_steps() -> None:
    a, out = operands()
    with checking():
        sim = kernels.reverse.simulate(a, out, False)
        fine = kernels.reverse.simulate(a, out)
    assert sim.wave_count == 2
    sim.recording = True
    with pytest.raises(LdsRace, match=r"which wave 1, lane \d+ wrote"):
        sim.run()
    assert {e.wave for e in sim.trace} == {0, 1}
    while not fine.wave(0).at_barrier:
        fine.step(wave=0)
    fine.run()
    assert torch.equal(out, a.flip(0))


def test_interleavings_make_a_race_visible() -> None:
    """Without the barrier the result depends on who is first: side by side it is right, one by one it is not."""
    a, out = operands()
    kernels.reverse.simulate(a, out, False).run()
    assert torch.equal(out, a.flip(0))
    sim = kernels.reverse.simulate(a, out, False)
    while not sim.wave(0).done:
        sim.step(wave=0)
    sim.run()
    assert not out[:64].any()
    assert torch.equal(out[64:], a.flip(0)[64:])
