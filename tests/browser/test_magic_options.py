"""Every option of `%%flykernel` and `%flydiff`, by what it puts on the page."""

from __future__ import annotations

import pytest

from tests.stages import STAGE_COUNT

SETUP = """\
%load_ext workbench
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 128 + fx.thread_idx.x
    B[i] = A[i] + 1.0

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    add(A, B).launch(grid=n // 128, block=128)

A, B = torch.ones(256), torch.zeros(256)
q = launch.lower(A, B, 256, arch="gfx950").run()"""
LAUNCH = "launch(A, B, 256)"
CELLS = {
    "setup": SETUP,
    "help": "%flykernel --help",
    "diff help": "%flydiff --help",
    "show": f"%%flykernel --show run,layout --static\n{LAUNCH}",
    "two targets": f"%%flykernel --arch gfx942,gfx950 --show occupancy\n{LAUNCH}",
    "stage": f"%%flykernel --stage fly-layout-lowering --show occupancy\n{LAUNCH}",
    "step": f"%%flykernel --step fly-layout-lowering --name half\n{LAUNCH}",
    "name": f"%%flykernel --name p\n{LAUNCH}",
    "named": "print(half.position, p.finished)",
    "diff": "%flydiff p q --stage 3",
    "live diff": "%flydiff p q --live",
    "stage explored": "p[3].explore()",
    "kernel explored": "p.artifact.kernels[0].explore()",
    "steps": "launch.simulate(A, B, 256, workgroup=(1, 0, 0)).explore()",
    "wrong": f"%%flykernel --show pictures\n{LAUNCH}",
    "break a pass": """\
from flydsl.errors import CompileError
from flydsl.passes import fly_layout_lowering

def fail(module, arch):
    raise CompileError("it breaks", hint="mend it")

fly_layout_lowering.apply = fail""",
    "failed": f"%%flykernel --arch gfx950 --show pipeline\n{LAUNCH}",
    "failed live": f"%%flykernel --arch gfx950 --live --step --show pipeline\n{LAUNCH}",
}


@pytest.fixture(scope="module")
def output(lab, open_notebook):
    notebook = open_notebook(lab.write("options.ipynb", list(CELLS.values())))
    notebook.run_all(len(CELLS))
    return lambda name: notebook.output(list(CELLS).index(name))


def test_help(output):
    output("help").shows("usage: %%flykernel", "--arch", "--show", "--stage", "--step", "--name", "--live", "--static")
    output("diff help").shows("usage: %flydiff", "--stage", "--live", "--static")


def test_sections(output):
    output("show").shows("Layouts", "first elements now", "2, 2, 2")
    output("show").shows_no("stages done", "ISA of")


def test_two_targets_are_compared(output):
    output("two targets").shows("launch for gfx942 → launch for gfx950", "compiled only; the cell launched it for")


def test_one_stage(output):
    output("stage").shows("3 fly-layout-lowering", "operations", "+")


def test_stopping_before_a_stage(output):
    output("step").shows(f"2 of {STAGE_COUNT} stages done")
    output("named").shows("2 True")


def test_a_difference(output):
    output("diff").shows("after 3 fly-layout-lowering → after 3 fly-layout-lowering")
    live = output("live diff")
    live.choose("Stage", "ISA")
    live.shows("amdgcn-amd-amdhsa--gfx950")
    live.choose("Stage", "traced")
    live.shows("gpu.module @kernels")
    live.shows_no("amdgcn-amd-amdhsa--gfx950")


def test_a_stage(output):
    view = output("stage explored")
    view.shows("before → after: +")
    view.choose("To", "before")
    view.shows("before → before: no change")


def test_a_kernel(output):
    view = output("kernel explored")
    view.slide("VGPRs", 256)
    view.shows("2 of 8 waves per SIMD, limited by VGPR")


def test_waves_of_the_stepper(output):
    view = output("steps")
    view.shows("workgroup (1, 0, 0)")
    view.press("Step")
    view.shows("changed in wave 0")
    view.choose("Wave", "1")
    view.shows("wave 1")
    view.enter("Line", "nowhere")
    view.press("Run to line")
    view.shows("nowhere")
    view.press("Continue")
    view.shows("everything has run")


def test_a_wrong_option(output):
    output("wrong").shows("no section 'pictures'", "they are layout, pipeline")


def test_a_failed_stage_keeps_its_input_and_its_message(output):
    view = output("failed")
    view.shows(f"2 of {STAGE_COUNT} stages done", "fly-layout-lowering: it breaks", "mend it")
    view.unfold("The input of 3 fly-layout-lowering")
    view.shows("fly.make_view")
    live = output("failed live")
    live.press("Run all stages")
    live.shows(f"2 of {STAGE_COUNT} stages done", "fly-layout-lowering: it breaks")
    view.screenshot("failed")
