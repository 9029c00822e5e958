"""The stepper view: where a simulation stands and what changed, and what its controls do."""

from __future__ import annotations

import re

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
import workbench
from tests.workbench.widgets import control, text
from workbench.run.stepper import register_text, simulation_html


@flyc.kernel
def reverse_kernel(A: fx.Tensor, Out: fx.Tensor):
    tile = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(512, 1))
    t = fx.thread_idx.x
    tile[t] = A[t]
    fx.gpu.barrier()
    Out[t] = tile[511 - t]


@flyc.kernel
def last_kernel(Out: fx.Tensor):
    Out[fx.thread_idx.x] = 7.0


@flyc.jit
def reverse(A: fx.Tensor, Out: fx.Tensor):
    reverse_kernel(A, Out).launch(grid=1, block=512, smem=4 * 512)
    last_kernel(Out).launch(grid=1, block=64)


@pytest.fixture
def with_lds():
    """A simulation of eight waves that have filled LDS with 0.5, 1.5, 2.5, ..., and wait for each other."""
    return reverse.simulate(torch.arange(512) + 0.5, torch.zeros(512)).run(until="barrier")


@pytest.fixture
def simulation(launcher, tensors):
    return launcher.simulate(*tensors, 128)


def test_where_it_stands_and_what_changed(simulation, read):
    assert "changed no register" in read(simulation_html(simulation)).text
    simulation.run(until="isa:" + str(next(i for i in simulation.listing if "v_add_f32" in i.listed.text).listed.line))
    simulation.step()
    (name,) = simulation.changed[0]
    page = read(simulation_html(simulation)).text
    assert f"{name}" + "40000000 " * 8 in page.replace(f"{name}\n", name)  # 1 + 1 in every lane
    assert register_text(simulation.wave(0), "exec") == "0xffffffffffffffff"


def test_the_controls(simulation, tensors, read):
    stepper = workbench.explore(simulation)
    control(stepper, "Step").click()
    assert simulation.wave(0).executed == 1
    control(stepper, "Line").value = "8"
    control(stepper, "Run to line").click()
    assert simulation.instruction.location.line == 8
    assert "C[i] = A[i] + B[i] * scale" in text(stepper, read)
    control(stepper, "Line").value = "9000"
    control(stepper, "Run to line").click()
    assert "no instruction belongs to line 9000" in text(stepper, read)
    control(stepper, "Run to the end").click()
    assert simulation.done
    assert tensors[2].eq(2).all()
    assert control(stepper, "Step").disabled
    assert "everything has run" in read(stepper.static_html()).text


def test_it_shows_itself(notebook, read):
    outcome = notebook.run("display(launch.simulate(A, B, C, 128))")
    assert outcome.error is None, outcome.text
    assert outcome.shown, outcome.text
    (shown,) = outcome.shown
    assert "workgroup (0, 0, 0)" in read(shown["text/html"]).text
    (shown,) = notebook.run("display(launch.simulate(A, B, C, 128).explore())").shown
    assert "application/vnd.jupyter.widget-view+json" in shown


# --- what a workgroup holds ------------------------------------------------------------------------------------------


def test_lds_is_shown(with_lds, read):
    page = read(simulation_html(with_lds)).text
    assert "LDS, 2048 bytes, as dwords" in page
    assert "    0  3f000000 3fc00000 40200000" in page
    assert "... 1024 more bytes" in page


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("f32", ["1088", "272.5", "273.5", "274.5"]),
        ("dwords", ["1088", "43884000", "4388c000"]),
        ("i32", ["1088", "1133002752"]),
        ("f16", ["1088", "2", "3.76562", "-2"]),
    ],
)
def test_lds_in_every_form_from_any_byte(with_lds, read, form, first):
    stepper = workbench.explore(with_lds)
    control(stepper, "Values as").value = form
    control(stepper, "LDS from byte").value = 1060  # in the row of 1056
    page = text(stepper, read)
    rows = [line.split() for line in page.splitlines()]
    assert first in [row[: len(first)] for row in rows]
    assert f"LDS, 2048 bytes, as {form} 1056  " in page
    assert "1056 bytes before" in page
    assert "more bytes" not in page


def test_what_other_waves_hold(with_lds, read):
    stepper = workbench.explore(with_lds)
    control(stepper, "Values as").value = "f32"
    control(stepper, "Registers").value = "VGPR"
    control(stepper, "Wave").value = 3
    control(stepper, "Lanes").value = 40
    page = text(stepper, read)
    assert "VGPRs of wave 3, lanes 40 to 47, as f32" in page
    loaded = [f"{3 * 64 + lane + 0.5:g}" for lane in range(40, 48)]
    assert loaded in [line.split()[1:] for line in page.splitlines()]
    assert len(re.findall(r"v\d+ +\d", page)) == len(with_lds.wave(3).vgpr)
    control(stepper, "Registers").value = "SGPR"
    assert "SGPRs of wave 3, as f32" in text(stepper, read)
    control(stepper, "Registers").value = "AGPR"
    assert "The kernel has none." in text(stepper, read)


def test_the_next_kernel_has_fewer_waves_and_no_lds(with_lds, read):
    stepper = workbench.explore(with_lds)
    control(stepper, "Wave").value = 7
    control(stepper, "LDS from byte").value = 2000
    with_lds.run(until="kernel")
    control(stepper, "Step").click()
    assert "last_kernel" in text(stepper, read)
    assert control(stepper, "Wave").value == 0
    assert len(control(stepper, "Wave").options) == 1
    assert "LDS, " not in text(stepper, read)
