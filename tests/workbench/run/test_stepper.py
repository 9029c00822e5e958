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
    assert ".py:8" in text(stepper, read)
    assert "C[i] = A[i] + B[i] * scale" in read(stepper.static_html()).text
    control(stepper, "Line").value = "9000"
    control(stepper, "Run to line").click()
    assert "no instruction belongs to line 9000" in text(stepper, read)
    control(stepper, "Continue").click()
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
        ("bf16", ["1088", "2", "272", "-2", "272"]),
        ("ui8", ["1088", "0", "64", "136", "67"]),
        ("ui4", ["1088", "0", "0", "0", "4", "8", "8", "3", "4"]),
        ("f8E5M2", ["1088", "0", "2", "-0.0001221", "3.5"]),
        ("f64", ["1088", "2.22928e+17"]),
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


def test_going_back_and_forward(with_lds, read):
    stepper = workbench.explore(with_lds)
    assert control(stepper, "Back").disabled
    control(stepper, "Continue").click()
    assert with_lds.done
    slider = control(stepper, "Position")
    assert slider.value == slider.max == stepper.recording.last > 10
    control(stepper, "Back").click()
    assert slider.value < slider.max
    assert not control(stepper, "Step").disabled
    slider.value = 1
    assert stepper.recording.position == 1
    control(stepper, "Restart").click()
    assert (slider.value, control(stepper, "Restart").disabled) == (0, True)
    control(stepper, "Step").click()
    assert stepper.recording.position >= 1


def test_breakpoints_are_set_and_taken_away_by_a_click(read):
    simulation = reverse.simulate(torch.arange(512) + 0.5, torch.zeros(512))
    stepper = workbench.explore(simulation)
    code = stepper._code
    source, isa = code.panes
    row = next(row for row, line in enumerate(source["lines"]) if "barrier" in line)
    assert source["stops"][row]
    code._handle_custom_msg({"pane": "Source", "row": row}, [])
    assert code.at[0]["stops"] == {str(row): "●"}
    control(stepper, "Continue").click()
    assert "gpu.barrier" in stepper.recording.now.instruction.location.source_line
    assert code.at[0]["current"] == row
    assert code.at[0]["waves"] == {str(row): "0-7"}
    code._handle_custom_msg({"pane": "Source", "row": row}, [])
    assert simulation.breakpoints == ()
    last = next(row for row, line in enumerate(isa["lines"]) if "s_endpgm" in line)
    code._handle_custom_msg({"pane": "Machine code", "row": last}, [])
    control(stepper, "Continue").click()
    assert code.at[1]["current"] == last
    for wrong in ({"pane": "Source", "row": 10_000}, {"pane": "x", "row": 1}, {"row": -1}, {}):
        code._handle_custom_msg(wrong, [])


def test_a_line_without_code_is_no_breakpoint(simulation, read):
    stepper = workbench.explore(simulation)
    stepper._toggle("nowhere.py:1")
    assert "no instruction belongs to line" in text(stepper, read)


def test_lds_in_the_layout_of_its_view(with_lds, read):
    stepper = workbench.explore(with_lds)
    views = dict(control(stepper, "LDS as").options)
    assert list(views) == ["rows of bytes", "512:1 of f32, from byte 0"]
    control(stepper, "LDS as").value = views["512:1 of f32, from byte 0"]
    page = text(stepper, read)
    assert "rows 0 to 0 of 1, columns 0 to 31 of 512" in page
    assert "0.5" in page
    assert "31.5" in page
    control(stepper, "LDS layout").value = "(4,8):(8,1)"
    control(stepper, "Values as").value = "f32"
    control(stepper, "LDS from byte").value = 64
    page = text(stepper, read)
    assert "(4,8):(8,1) of f32, from byte 64; rows 0 to 3 of 4" in page
    assert "16.5" in page
    assert "47.5" in page
    assert "48.5" not in page
    control(stepper, "LDS layout").value = "(4,8):(800,1)"
    assert "goes beyond the 2048 bytes of LDS" in text(stepper, read)


def test_what_the_last_step_wrote_is_marked(read):
    simulation = reverse.simulate(torch.zeros(512), torch.zeros(512))
    stepper = workbench.explore(simulation)
    while not simulation.lds_touched[1].any():
        control(stepper, "Step").click()
    assert "The last step wrote what is underlined" in text(stepper, read)
    assert stepper._shown.value.count("<u>00000000</u>") == 256  # zeros over zeros
    control(stepper, "Step").click()
    assert "underlined" not in text(stepper, read)


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


def test_variables_of_the_source(with_lds, read):
    stepper = workbench.explore(with_lds)
    control(stepper, "Registers").value = "variables"
    page = text(stepper, read)
    assert "variables of wave 0" in page
    assert "ti32optimised out" in page  # by the barrier, its register holds an address
