"""The run view in a browser: the counters of a saved page, and live sorting, linked lines and stepping."""

from __future__ import annotations

import re

import pytest

CELLS = [
    """\
%load_ext workbench
import torch
import workbench
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def columns(A: fx.Tensor, Out: fx.Tensor):
    tile = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(128 * 32, 1))
    t = fx.thread_idx.x
    tile[t * 32] = A[t]  # <b>one bank</b>
    fx.gpu.barrier()
    Out[t] = tile[(127 - t) * 32] * 2.0 + A[t]

@flyc.jit
def launch(A: fx.Tensor, Out: fx.Tensor):
    columns(A, Out).launch(grid=1, block=128, smem=4 * 128 * 32)

A, Out = torch.arange(128.0), torch.zeros(128)""",
    "%%flykernel --show run\nlaunch(A, Out)",
    "%%flykernel --live --show run\nlaunch(A, Out)",
    "p = workbench.profile(launch, A, Out)\np.counters[0]",
    "workbench.roofline_figure(p.counters[0])",
    "workbench.export(p, 'run.html').name",
]


@pytest.fixture(scope="module")
def notebook(lab, open_notebook):
    notebook = open_notebook(lab.write("run.ipynb", CELLS))
    notebook.run_all(len(CELLS))
    return notebook


@pytest.fixture
def live(notebook):
    return notebook.output(2).shown_tab()


def test_the_static_view(notebook):
    view = notebook.output(1)
    view.shows("first elements now", "no estimate of the time", "bound by LDS", "◀ limits")
    view.shows("124 of them (96.9%) for bank conflicts", "<b>one bank</b>")
    picture = view.area.locator("img[alt*='bound by LDS']")
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
    view.unfold("Machine code, all")
    view.shows("ds_read_b32")
    view.screenshot("run")


def test_sorting_and_choosing_a_line(live):
    live.shows("Totals, estimated time, roofline", "columns_0: grid (1, 1, 1)")
    live.choose("Sort and compare by", "64-byte lines")
    live.shows("share: of all 64-byte lines")
    first = live.line("Right lines", "global_")
    first.wait_for()
    rows = live.area.get_by_role("listbox", name="Right lines").get_by_role("option").all_inner_texts()
    assert rows[0].startswith("64-byte lines of each line")
    assert all("global_" in row for row in rows[1:])
    live.line("Source lines", "tile[t * 32] = A[t]").click()
    live.shows("cell:11 at every level:")
    lit = live.lit_lines("Left lines")
    assert any("ds_write_b32" in row for row in lit)
    assert not any("ds_read_b32" in row for row in lit)


def test_stepping_to_the_line_that_was_chosen(notebook, live):
    live.line("Source lines", "tile[t * 32] = A[t]").click()
    live.press("Step through it")
    live.shows("workgroup (0, 0, 0)")
    assert live.area.get_by_label("Line", exact=True).input_value() == "cell:11"
    live.press("Run to line")
    live.shows("at cell:11")
    live.choose("Values as", "f32")
    live.choose("Registers", "VGPR")
    live.choose("Lanes", "8 to 15")
    live.shows("VGPRs of wave 0, lanes 8 to 15, as f32", "LDS, 16384 bytes, as f32")
    live.press("Run to barrier")
    live.enter("LDS from byte", "1024")
    live.shows("1024 bytes before")
    assert re.search(r"1024 +8 +0 +0", live.area.inner_text())  # A[8], 1024 bytes in
    live.screenshot("run live")
    live.choose("LDS as", "4096:1 of f32, from byte 0")
    live.shows("columns 0 to 31 of 4096")
    live.press("Continue")
    live.shows("everything has run")
    live.choose("LDS as", "rows of bytes")


def test_with_the_keyboard_alone(notebook, live):
    live.area.get_by_label("Sort and compare by", exact=True).focus()
    notebook.page.keyboard.press("Home")
    live.shows("share: of all instructions")
    lines = live.area.get_by_role("listbox", name="Left lines")
    live.line("Left lines", "s_endpgm").wait_for()
    lines.focus()
    notebook.page.keyboard.press("End")
    notebook.page.keyboard.press("Enter")
    live.shows("at every level:")
    assert any("s_endpgm" in row for row in live.lit_lines("Left lines"))
    summary = notebook.output(1).area.locator("summary", has_text="instructions with the most")
    summary.focus()
    notebook.page.keyboard.press("Enter")
    assert summary.locator("xpath=..").get_attribute("open") is not None


def test_counters_draw_themselves_and_the_figure(notebook):
    notebook.output(3).shows("columns_0: grid (1, 1, 1)", "Machine code, all")
    view = notebook.output(4)
    view.shows_picture_titled("bound by LDS")
    view.shows_in_picture("v_fma_f32: 81.72 TFLOP/s")
    view.shows_in_picture("this launch, an estimate")
    view.screenshot("roofline")


def test_the_exported_page(lab, notebook, page):
    page.goto((lab.notebooks / "run.html").as_uri())
    run = page.locator("h2", has_text=re.compile("^Run$"))
    run.wait_for()
    linked = page.locator("[data-linked='run-0-0']")
    linked.get_by_role("listbox", name="Source lines").get_by_role("option").filter(has_text="Out[t] =").click()
    lit = linked.get_by_role("listbox", name="Left lines").get_by_role("option", selected=True).all_inner_texts()
    assert any("ds_read_b32" in row for row in lit)
