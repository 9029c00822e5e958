"""The live views of layouts and threads in a browser: every control does what its label says."""

from __future__ import annotations

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright; make setup installs it")
expect = playwright.expect

CELLS = [
    """\
%load_ext workbench
import flydsl.expr as fx
tile, layout_tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
copy = fx.make_tiled_copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), layout_tv, tile)""",
    "fx.make_layout((16, 64), (64, 1)).explore()",
    "copy.explore()",
]


@pytest.fixture(scope="module")
def notebook(lab, open_notebook):
    notebook = open_notebook(lab.write("layouts.ipynb", CELLS))
    notebook.run_all(3)
    return notebook


@pytest.fixture
def visualizer(notebook):
    view = notebook.run(1)
    view.picture.wait_for()
    view.shows_picture_titled("(16,64):(64,1)")
    return view


@pytest.fixture
def threads(notebook):
    view = notebook.run(2)
    view.picture.wait_for()
    return view


def test_shape_stride_and_padding(visualizer):
    visualizer.enter("Shape", "(16,")
    visualizer.shows("The picture is that of the last layout that could be drawn.")
    visualizer.shows_picture_titled("(16,64):(64,1)")
    visualizer.enter("Shape", "(16,32)")
    visualizer.enter("Stride", "(32,1)")
    visualizer.shows_picture_titled("(16,32):(32,1)")
    visualizer.shows_no("The picture is that of")
    visualizer.slide("Padding (elements)", 8)
    visualizer.shows_picture_titled("(16,32):(40,1)")


def test_an_operation_and_its_steps(visualizer):
    visualizer.choose("Operation", "logical_divide")
    visualizer.shows("logical_divide takes an operand")
    visualizer.enter("Operand", "[4|8]")
    visualizer.shows("complement")
    visualizer.shows_picture_titled("((4,4),(8,8)):((64,256),(1,8))")


def test_a_swizzle_ends_conflicts(visualizer):
    visualizer.choose("Colour by", "bank")
    visualizer.choose("Element bits", "32")
    visualizer.shows("read_b128: 4 elements of 32 bits")
    visualizer.choose("Element bits", "16")
    visualizer.choose("LDS access", "read_b64")
    visualizer.shows("read_b64: 4 elements of 16 bits")
    visualizer.choose("LDS access", "read_b128")
    visualizer.shows("read_b128: 8 elements of 16 bits")
    visualizer.shows_no("gfx942\tnone")
    for label in ("Swizzle base", "Swizzle shift", "Swizzle bits"):
        visualizer.slide(label, 3)
    visualizer.shows_picture_titled("S<3,3,3>")
    visualizer.shows("gfx942\tnone")
    visualizer.screenshot("swizzle")
    with visualizer.redraws():
        visualizer.check("Light the slowest phase")


def test_how_lanes_go_and_whose_banks(visualizer):
    visualizer.shows_no("gfx942\tnone")
    visualizer.choose("Lanes go", "along the vectors")
    visualizer.shows("gfx942\tnone")
    visualizer.choose("Colour by", "bank")
    visualizer.shows_in_picture("32 banks of gfx942")
    visualizer.choose("Banks of", "gfx950")
    visualizer.shows_in_picture("64 banks of gfx950")


def test_what_a_cell_says(visualizer):
    visualizer.page.mouse.move(*visualizer.cell_of_picture(3, 5))
    visualizer.shows_in_picture("offset 197")
    visualizer.shows_in_picture("byte 394 (elements of 16 bits)")
    visualizer.shows_in_picture("LDS bank 2 of 32 (gfx942)")


def test_a_click_chooses_the_thread_that_holds_the_cell(threads):
    threads.shows("T0\tcoordinate\toffset")
    for thread in (3, 1):
        x, y = threads.cell_of_picture(thread, 0)
        threads.page.mouse.move(x, y)
        threads.shows_in_picture(f"thread {thread},")
        threads.page.mouse.click(x, y)
        threads.shows(f"T{thread}\tcoordinate\toffset")
        expect(threads.slider("Thread")).to_have_value(str(thread))
    threads.check("Light one thread", on=False)
    threads.page.mouse.click(*threads.cell_of_picture(2, 0))
    threads.shows("T2\tcoordinate\toffset")


def test_a_thread(threads):
    threads.shows("T0\tcoordinate\toffset")
    threads.slide("Thread", 2)
    threads.shows("T2\tcoordinate\toffset")
    threads.check("Light one thread", on=False)
    threads.shows_no("coordinate\toffset")
    threads.choose("Colour by", "value")
    threads.shows_in_picture("coloured by value")
    threads.choose("Colour by", "bank")
    threads.choose("Banks of", "gfx950")
    threads.shows_in_picture("64 banks of gfx950")
    threads.screenshot("threads")
