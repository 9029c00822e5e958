"""Every view can be read in JupyterLab's light and in its dark theme: all of its text, by its contrast (WCAG 2, AA)."""

from __future__ import annotations

import pytest

CELLS = [
    """\
%load_ext workbench
import torch
import workbench
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x  # a comment
    B[i] = A[i] + 1.0

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    add(A, B).launch(grid=n // 64, block=64)

A, B = torch.ones(128), torch.zeros(128)
p, q = (launch.lower(A, B, 128, arch=arch).run() for arch in ("gfx942", "gfx950"))
tile, layout_tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
copy = fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), layout_tv, tile)""",
    "%%flykernel --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, 128)",
    "%%flykernel --live --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, 128)",
    "%flydiff p q",
    "p[3]",
    'workbench.find(p, "fly.ptr.load")',
    "launch.lower(A, B, 128)",
    "fx.make_layout((4, 8), (8, 1))",
    "fx.make_layout((16, 64), (64, 1)).explore()",
    "copy.explore()",
    "launch.simulate(A[:64], B[:64], 64).explore()",
    "workbench.occupancy_figure(p.artifact.kernels[0])",
]
LIVE, VISUALIZER, THREADS, STEPPER = 2, 8, 9, 10


@pytest.fixture(scope="module")
def opened(lab, open_notebook):
    notebook = open_notebook(lab.write("readable.ipynb", CELLS))
    notebook.run_all(len(CELLS))
    return notebook


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"])
def notebook(request, opened):
    opened.set_theme(request.param)
    yield opened
    opened.set_theme("JupyterLab Light")


def test_everything_shown_at_once(notebook):
    for index in range(1, len(CELLS)):
        for summary in notebook.output(index).area.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        assert notebook.output(index).hard_to_read() == [], CELLS[index]


def test_every_tab(notebook):
    view = notebook.output(LIVE)
    for title in ("Layouts", "Pipeline", "Lines", "Compare", "ISA", "Occupancy", "Run"):
        tab = view.open_tab(title)
        if title == "Lines":
            tab.line("Source lines", "B[i] = A[i]").click()
            tab.shows("at every level:")
        if title == "ISA":
            tab.enter("Registers", "v0 s0")
        assert tab.hard_to_read() == [], title
        view.screenshot(f"{title}-{notebook.theme}".lower())


def test_messages(notebook):
    visualizer = notebook.output(VISUALIZER)
    visualizer.enter("Shape", "(16,")
    visualizer.shows("The picture is that of the last layout that could be drawn.")
    assert visualizer.hard_to_read() == []
    visualizer.enter("Shape", "(16,64)")
    visualizer.choose("Operation", "coalesce")
    visualizer.shows("result")
    assert visualizer.hard_to_read() == []
    visualizer.choose("Operation", "none")
