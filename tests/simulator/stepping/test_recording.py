"""Going back and forward: any moment shows what a simulation showed when it stood there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flydsl.arch import get_arch
from flydsl.errors import SimulatorError
from flydsl.simulator import Recording
from tests.simulator import mistaken_kernels as kernels
from tests.simulator.mistaken_kernels import operands


@pytest.fixture
def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return operands(blocks=2)


@pytest.fixture
def recording(tensors: tuple[torch.Tensor, torch.Tensor]) -> Recording:
    return Recording(kernels.reverse.simulate(*tensors))


def seen(at: Any) -> tuple[Any, ...]:
    """Everything that one sees of a workgroup."""
    registers = [(wave.sgpr.copy(), wave.vgpr.copy(), wave.exec, wave.vcc, wave.scc, wave.pc) for wave in at.waves]
    return at.current, at.instruction, at.lds.copy(), registers, at.where().replace(f", step {at.step_number}", "")


def assert_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert one[:2] == other[:2]
    assert one[4] == other[4]
    np.testing.assert_array_equal(one[2], other[2])
    for mine, theirs in zip(one[3], other[3], strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_every_moment_is_seen_again(recording: Recording) -> None:
    first = [seen(recording.simulation)]
    while not recording.simulation.done:
        recording.step()
        if not recording.simulation.done:
            first.append(seen(recording.simulation))
    for position in (*range(len(first)), *reversed(range(len(first)))):
        assert_same(seen(recording.go_to(position).now), first[position])
    assert recording.last == len(first)  # and the end


def test_it_leaves_what_a_launch_leaves(recording: Recording, tensors: Any) -> None:
    a, out = tensors
    recording.step(5).back(3).step(2).restart().run()
    assert recording.done
    assert torch.equal(out.view(-1, kernels.THREADS), a.view(-1, kernels.THREADS).flip(1))
    assert "everything has run" in recording.now.where()
    recording.back()
    assert "everything has run" not in recording.now.where()


def test_what_the_last_step_changed(recording: Recording) -> None:
    while "ds_write" not in (recording.now.instruction.listed.text if recording.now.instruction else ""):
        recording.step()
    assert not recording.now.lds_touched.any()
    recording.step()
    assert recording.now.lds_touched[1].sum() == 4 * 64 * len(recording.simulation.waves)
    assert not recording.now.lds_touched[0].any()
    recording.back().step()  # the same again, from the record
    assert recording.now.lds_touched[1].any()
    position = recording.position
    changed = [recording.go_to(at).now.changed for at in range(1, position)]
    assert any("v" in name for names in changed for found in names.values() for name in found)


def test_breakpoints_hold_in_what_is_recorded(recording: Recording) -> None:
    write = next(i for i in recording.now.listing if i.mnemonic.startswith("ds_write"))
    recording.run()
    recording.breakpoint(f"isa:{write.listed.line}")
    recording.restart().run()
    assert recording.now.instruction is write
    recording.restart().run(until="barrier")
    assert recording.now.instruction is write  # which comes first
    recording.run(until="barrier")
    assert recording.now.current == ()
    recording.run()
    assert recording.done


def test_one_wave(recording: Recording) -> None:
    recording.run(until="barrier")
    executed = recording.now.wave(1).executed
    recording.step(wave=1)
    assert recording.now.wave(1).executed == executed + 1
    recording.back(wave=1)
    assert recording.now.wave(1).executed == executed


def test_more_steps_than_are_kept(tensors: tuple[torch.Tensor, torch.Tensor]) -> None:
    recording = Recording(kernels.reverse.simulate(*tensors), most_steps=4)
    recording.run()
    assert recording.is_full
    assert recording.done
    assert recording.last == 5
    assert "everything has run" in recording.now.where()
    recording.go_to(4)
    assert recording.now.wave(0).executed == 4
    recording.step()
    assert recording.done


def test_the_step_tells_moments_at_one_line_apart(recording: Recording) -> None:
    texts = [recording.go_to(0).step(position).now.where() for position in range(5)]
    assert [f"step {position}," in text for position, text in enumerate(texts)] == [True] * 5


def test_moments_that_there_are_not(recording: Recording) -> None:
    with pytest.raises(SimulatorError, match="there is no moment 1"):
        recording.go_to(1)
    recording.back()
    assert recording.position == 0
    recording.run()
    with pytest.raises(SimulatorError, match="everything has run"):
        recording.step()


@pytest.mark.parametrize("arch", ["gfx1250", "gfx1201", "gfx950", "gfx90a"])
def test_on_every_generation(arch: str, tensors: tuple[torch.Tensor, torch.Tensor]) -> None:
    artifact = kernels.reverse.lower(*tensors, arch=arch).artifact
    recording = Recording(artifact.simulate(*tensors))
    assert recording.now.wave(0).active.size == get_arch(arch).wave_size
    recording.run()
    last = recording.last
    recording.restart()
    assert recording.now.wave(0).executed == 0
    recording.go_to(last - 1)
    assert recording.now.wave(0).executed > 5
