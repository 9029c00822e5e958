"""The source's variables in machine code: their values, where they are optimised out, and that the code is the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.debugging.variables import variables_of
from flydsl.errors import OutOfRange, SimulatorError
from flydsl.simulator import Recording
from tests.kernels.examples import tiledMma


def doubled(value):
    twice = value * 2
    return twice + 1.0


@flyc.kernel
def running_sum_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    lane = fx.thread_idx.x
    total = fx.Float32(0.0)
    unused = lane * 3  # noqa: F841 - optimised out
    for i in range(n):
        loaded = x[i * 64 + lane]
        is_large = loaded > 4.0
        if is_large:
            total = total + doubled(loaded)
        y[i * 64 + lane] = total


@flyc.jit
def running_sum(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    running_sum_kernel(x, y, n).launch(grid=1, block=64)


def arguments() -> tuple[torch.Tensor, torch.Tensor, int]:
    return torch.arange(64.0) % 9, torch.zeros(64), 1


def stopped_at_store(sim: Any) -> Any:
    """Stopped before the first instruction that stores: a line begins earlier, with its addresses."""
    store = next(instruction.listed.line for instruction in sim.listing if "_store_" in instruction.mnemonic)
    return sim.run(until=f"isa:{store}")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1201"])
def test_values_in_each_lane(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    x, y, n = arguments()
    sim = running_sum.simulate(x, y, n)
    assert sim.variables()["total"].values is None
    stopped_at_store(sim)
    lanes = sim.wave(0).active.size
    total = np.where(x > 4, 2 * x + 1, 0)[:lanes]
    assert np.array_equal(sim.variable("total").values, total)
    assert np.array_equal(sim.variable("loaded").values, x[:lanes])
    assert sim.variable("total")[5] == 11.0
    for wave in range(1, sim.wave_count):  # which stands there, too
        assert np.array_equal(sim.variable("loaded", wave).values, x[wave * lanes : (wave + 1) * lanes])


@flyc.kernel
def given_kernel(x: fx.Tensor, y: fx.Tensor, factor: fx.Float32, sizes: tuple):
    y[fx.thread_idx.x, sizes[1]] = x[fx.thread_idx.x] * factor


@flyc.jit
def given(inputs: fx.Tensor, outputs: fx.Tensor, factor: fx.Float32, n: fx.Int32):
    given_kernel(inputs, outputs, factor, (n + 1, n)).launch(grid=1, block=64)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_parameters_have_what_the_launch_has_given(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    sim = given.simulate(torch.zeros(64), torch.zeros(64, 3), 2.5, 2)
    assert sim.variable("factor")[0] == 2.5
    assert [sim.variable(f"sizes[{i}]")[7] for i in range(2)] == [3, 2]
    assert re.search(r"^x +f32 +inputs, float32\[64\], at 0x\w+$", str(sim.variables()), re.M)
    assert re.search(r"^y +f32 +outputs, float32\[64, 3\], at 0x\w+$", str(sim.variables()), re.M)
    recording = Recording(sim)
    recording.run()
    recording.restart()
    assert recording.now.variable("factor")[0] == 2.5


def test_the_table_says_what_is_optimised_out() -> None:
    sim = stopped_at_store(running_sum.simulate(*arguments()))
    table = sim.variables()
    assert {"lane", "total", "loaded", "i"} <= {variable.name for variable in table}
    unused = table["unused"]
    assert unused.values is None
    assert re.search(r"^unused +i32 +optimised out$", str(table), re.M)
    with pytest.raises(SimulatorError, match="unused is optimised out here"):
        unused[0]
    with pytest.raises(OutOfRange, match=r"no variable 'accumulator'[\s\S]*it knows .*total.*sim\.lds has the bytes"):
        sim.variable("accumulator")


def test_variables_of_a_helper_have_its_name_and_end_with_its_call() -> None:
    sim = running_sum.simulate(*arguments())
    names = {variable.name for variable in sim.variables()}
    assert "doubled: twice" in names
    stopped_at_store(sim)
    assert sim.variable("doubled: twice").values is None


def test_fragments_are_where_matrix_instructions_keep_them() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(64, 8, generator=generator) for _ in range(2))
    c = torch.zeros(64, 64)
    sim = tiledMma.simulate(a, b, c)
    last = max(place.start for known in sim.described().variables if known.name == "frag_C" for place in known.places)
    sim.run(until=f"isa:{sim.listing[last].listed.line}")
    kept = np.concatenate([sim.variable("frag_C", wave).values.ravel() for wave in range(4)])
    sim.run()
    assert np.array_equal(np.sort(kept), np.sort(c.numpy().ravel()))


def test_a_recording_shows_the_values_of_then() -> None:
    x, y, n = arguments()
    sim = running_sum.simulate(x, y, n)
    recording = Recording(sim)
    stopped_at_store(recording.simulation)
    position = recording.last
    recording.run()
    recording.go_to(position)
    assert recording.now.variable("loaded")[7] == 7.0


@flyc.kernel
def swap_kernel(x: fx.Tensor, y: fx.Tensor):
    i = fx.thread_idx.x
    first = x[i]
    second = first * 3.0
    first, second = second, first
    x[i] = first
    y[i] = second


@flyc.jit
def swap(x: fx.Tensor, y: fx.Tensor):
    swap_kernel(x, y).launch(grid=1, block=64)


def test_values_that_change_places() -> None:
    x, y = torch.arange(64.0), torch.zeros(64)
    sim = swap.simulate(x, y)
    stopped_at_store(sim)
    assert sim.variable("first")[3] == 9.0
    assert sim.variable("second")[3] == 3.0


@pytest.mark.parametrize(("launcher", "given"), [(running_sum, arguments()), (swap, (torch.zeros(64), torch.ones(64)))])
def test_names_change_no_machine_code(launcher, given) -> None:
    """And no variable at all is found in code of another source."""
    code = launcher.lower(*given).artifact.code
    assert any(variable.places for variable in variables_of(lambda: launcher.lower(*given), code).variables)
    other = tiledMma.lower(torch.zeros(64, 8), torch.zeros(64, 8), torch.zeros(64, 64)).artifact.code
    assert not any(variable.places for variable in variables_of(lambda: launcher.lower(*given), other).variables)


def test_code_without_its_source_says_so() -> None:
    sim = running_sum.lower(*arguments()).artifact.simulate(*arguments())
    with pytest.raises(SimulatorError, match=r"came without its source[\s\S]*launcher\.simulate"):
        sim.variables()
