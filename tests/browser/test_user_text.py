"""What a user wrote is shown as text, wherever it is shown: HTML and script in it do nothing."""

from __future__ import annotations

import pytest

ATTACK = "<img src=x onerror=attacked=1>"
CELLS = [
    f"""\
%load_ext workbench
import torch, workbench
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor, note: fx.Constexpr[str]):
    i = fx.block_idx.x * 64 + fx.thread_idx.x  # {ATTACK} in a comment
    B[i] = A[i] + (1.0 if note else "</pre></div>{ATTACK} in a string")

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, note: fx.Constexpr[str]):
    add(A, B, note).launch(grid=2, block=64)

A, B = torch.ones(128), torch.zeros(128)""",
    f'%%flykernel --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, "{ATTACK}")',
    f'%%flykernel --live --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, "{ATTACK}")',
    f"%flydiff 'str(1)' '\"{ATTACK} in a text\"'",
    "fx.make_layout((4, 8), (8, 1)).explore()",
    f'workbench.find(launch.lower(A, B, "x").run(), "{ATTACK}")',
]


@pytest.fixture(scope="module")
def notebook(lab, open_notebook):
    notebook = open_notebook(lab.write("user-text.ipynb", CELLS))
    notebook.run_all(len(CELLS))
    yield notebook
    assert notebook.page.evaluate("window.attacked") is None
    assert notebook.page.locator(".jp-OutputArea img[src='x']").count() == 0


def test_in_static_views(notebook):
    notebook.output(1).shows(f"{ATTACK}")
    notebook.output(3).shows(f"{ATTACK} in a text")
    notebook.output(5).shows(f"No operation is called {ATTACK}")


def test_in_the_source(notebook):
    tab = notebook.output(2).open_tab("Lines")
    tab.shows(f"{ATTACK} in a comment", f"</pre></div>{ATTACK} in a string")


def test_in_controls(notebook):
    view = notebook.output(2)
    tab = view.open_tab("Compare")
    tab.enter("Find operation", ATTACK)
    tab.shows(f"No operation is called {ATTACK}")
    tab = view.open_tab("Lines")
    tab.enter("Find operation", ATTACK)
    tab.shows(f"No operation is called {ATTACK}")
    view.open_tab("ISA").enter("Registers", ATTACK)
    visualizer = notebook.output(4)
    visualizer.enter("Shape", ATTACK)
    visualizer.shows(ATTACK)
