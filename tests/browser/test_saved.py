"""Saved notebooks, opened without a kernel or turned into a page: every picture and diff is still there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary

from tests.notebooks import NOTEBOOKS
from tests.stages import STAGE_COUNT

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright; make setup installs it")

EVERY_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

CELLS = [
    """\
%load_ext workbench
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    B[i] = A[i] + 1.0

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    add(A, B).launch(grid=n // 64, block=64)

A, B = torch.ones(128), torch.zeros(128)
p, q = (launch.lower(A, B, 128, arch=arch).run() for arch in ("gfx942", "gfx950"))""",
    "%%flykernel --show layout,pipeline,isa,occupancy,run\nlaunch(A, B, 128)",
    "%%flykernel --live\nlaunch(A, B, 128)",
    "%flydiff p q",
    "p",
    "p[3]",
    "p.artifact.kernels[0]",
    "fx.make_layout((4, 8), (8, 1))",
    "fx.make_layout((4, 8), (8, 1)).explore()",
    "p.explore()",
    "%%flykernel --show trace\nlaunch(A, B, 128)",
]

# What a user would miss: outputs without text or picture, and pictures that are not there.
_MISSING = """(root) => [...root.querySelectorAll('.jp-OutputArea-output')].filter((output) => {
  if (output.querySelector('.main-svg')) return false;  // plotly has drawn; its images are others than ours
  const pictures = [...output.querySelectorAll('img')];
  if (pictures.some((image) => !image.complete || !image.naturalWidth)) return true;
  return !pictures.length && !output.innerText.trim();
}).map((output) => output.outerHTML.slice(0, 300))"""


def count_outputs(path: Path) -> int:
    """The number of outputs of a notebook; successive texts on one stream count as one, widgets not at all, nor what
    is left of a line that showed progress."""
    count = 0
    for cell in nbformat.read(path, as_version=4).cells:
        names = [
            output.get("name", number)
            for number, output in enumerate(cell.get("outputs", ()))
            if not is_widget(output) and output.get("data") != {}
        ]
        count += len(list(groupby(names)))
    return count


def is_widget(output: nbformat.NotebookNode) -> bool:
    """A widget and nothing else: the output before it stands in for it."""
    return list(output.get("data", ())) == ["application/vnd.jupyter.widget-view+json"]


def everything_is_there(root, path: Path) -> None:
    """root: the locator of what has the outputs in it."""
    outputs = root.locator(".jp-OutputArea-output")
    playwright.expect(outputs).to_have_count(count_outputs(path))
    with suppress(playwright.TimeoutError):  # what is missing says more
        root.page.wait_for_function(f"(root) => ({_MISSING})(root).length == 0", arg=root.element_handle())
    assert root.evaluate(_MISSING) == []
    shown = "".join(outputs.all_inner_texts())
    assert "model not found" not in shown
    assert "Error displaying widget" not in shown


def open_without_kernel(path: Path, lab, open_notebook):
    """A copy of a notebook that names no kernel: JupyterLab asks for one, and gets none. Nothing in it is trusted."""
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = {}  # of a language alone it would start the kernel without asking
    nbformat.write(notebook, lab.notebooks / f"reopened-{path.name}")
    opened = open_notebook(f"reopened-{path.name}")
    opened.page.get_by_role("dialog").get_by_role("button", name="No Kernel").click()
    return opened


@pytest.fixture(scope="module")
def saved(lab, open_notebook) -> Path:
    """A notebook that JupyterLab ran and saved."""
    path = lab.write("saved.ipynb", CELLS)
    notebook = open_notebook(path)
    notebook.run_all(len(CELLS))
    notebook.output(2).open_tab("Occupancy").shows("8 of 8 waves per SIMD")
    playwright.expect(notebook.panel.locator("style.fly-twin")).to_have_count(3)
    for twin in notebook.panel.locator(".jp-OutputArea-child", has=notebook.page.locator("style.fly-twin")).all():
        playwright.expect(twin).to_be_hidden()
    notebook.save()
    notebook.close()
    return lab.notebooks / path


@pytest.fixture
def offline_page(browser) -> Iterator:
    """A page that fetches nothing, for what nbconvert's template would fetch."""
    context = browser.new_context(offline=True)
    yield context.new_page()
    context.close()


@EVERY_NOTEBOOK
@pytest.mark.diagonal(3)
def test_the_tutorial_without_a_kernel(path, lab, open_notebook):
    notebook = open_without_kernel(path, lab, open_notebook)
    everything_is_there(notebook.panel, path)
    notebook.close()


@EVERY_NOTEBOOK
@pytest.mark.diagonal(3)
def test_the_tutorial_as_a_page(path, offline_page, tmp_path):
    show_as_page(path, offline_page, tmp_path)
    everything_is_there(offline_page.locator("body"), path)


def show_as_page(path: Path, page, folder: Path) -> None:
    """The page that `jupyter nbconvert --to html` makes of a notebook."""
    html, _ = HTMLExporter().from_filename(str(path))
    (folder / "page.html").write_text(html, "utf-8")
    page.goto((folder / "page.html").as_uri(), wait_until="load")


def test_looking_at_a_notebook_does_not_change_it(lab, open_notebook):
    path = NOTEBOOKS[0]
    copy = lab.notebooks / f"looked-at-{path.name}"
    copy.write_bytes(path.read_bytes())
    notebook = open_notebook(copy.name)
    notebook.wait_until_idle()
    notebook.save()
    notebook.close()
    assert copy.read_bytes() == path.read_bytes()


def test_a_notebook_saved_by_jupyterlab(saved, lab, open_notebook):
    notebook = open_without_kernel(saved, lab, open_notebook)
    everything_is_there(notebook.panel, saved)
    for index in (1, 2, 4):
        notebook.output(index).shows(f"{STAGE_COUNT} of {STAGE_COUNT} stages done", "fly-layout-lowering")
    notebook.output(3).shows("launch for gfx942 → launch for gfx950")
    notebook.output(5).shows("+      ")
    notebook.output(6).shows("8 of 8 waves per SIMD")


def test_a_trusted_notebook_without_its_kernel(saved, lab, open_notebook):
    """There JupyterLab tries to show the widgets, and there are none."""
    notebook = nbformat.read(saved, as_version=4)
    notebook.metadata = {}
    assert any(is_widget(output) for cell in notebook.cells for output in cell.outputs)
    NotebookNotary(data_dir=str(lab.notebooks.parent / "data")).sign(notebook)
    nbformat.write(notebook, lab.notebooks / "trusted.ipynb")
    opened = open_notebook("trusted.ipynb")
    opened.page.get_by_role("dialog").get_by_role("button", name="No Kernel").click()
    for index, text in (
        (2, f"{STAGE_COUNT} of {STAGE_COUNT} stages done"),
        (8, "(4,8):(8,1)"),
        (9, f"{STAGE_COUNT} of {STAGE_COUNT} stages done"),
    ):
        opened.output(index).shows(text, "Static, as it was when the cell ran")
        opened.output(index).shows_no("model not found", "Loading widget")
    assert opened.panel.locator("style.fly-twin").count() == 3  # it is trusted
    opened.close()


def test_as_a_page(saved, offline_page, tmp_path):
    show_as_page(saved, offline_page, tmp_path)
    everything_is_there(offline_page.locator("body"), saved)
