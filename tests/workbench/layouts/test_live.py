"""The live layout views, driven from Python: every control does what it says, and bad input is explained."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import ipywidgets as widgets
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flydsl.expr as fx
import flydsl.layout
import workbench
from flydsl.arch import COMPARED, get_arch
from flydsl.errors import ArgumentError, LayoutError
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.layout import Layout, explain, parse
from tests.workbench.layouts.outlined import outlined
from workbench.layouts import SHOWN, explore_layout, explore_threads
from workbench.layouts.lds import LdsAccess
from workbench.layouts.visualizer import OPERATIONS
from workbench.live_views import EXPLORERS, add_methods


@pytest.fixture
def visualizer() -> Any:
    return explore_layout(parse("(16,64):(64,1)"))


@pytest.fixture
def copy() -> fx.TiledCopy:
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    return fx.make_tiled_copy_tv(atom, fx.make_layout((4, 2), (2, 1)), fx.make_layout((1, 2), (1, 1)))


def messages(visualizer: Any) -> list[str]:
    notes = [child for child in descendants(visualizer) if hasattr(child, "message")]
    return [note.message for note in notes if note.message]


def descendants(widget: Any) -> list[Any]:
    return [widget, *(below for child in getattr(widget, "children", ()) for below in descendants(child))]


def shows(visualizer: Any, layout: Any) -> bool:
    """True if the figure shows this layout."""
    cells = visualizer.figure.data[0]
    height, width = np.shape(cells.z)
    offsets = [[layout(r + height * c) for c in range(width)] for r in range(height)]
    return visualizer.current == layout and cells.customdata[..., 0].tolist() == offsets


# --- the visualizer --------------------------------------------------------------------------------------------------


def test_shape_and_stride_make_the_layout(visualizer: Any) -> None:
    visualizer.access.value = "read_b32"
    assert shows(visualizer, parse("(16,64):(64,1)"))
    visualizer.stride.text.value = ""
    assert shows(visualizer, parse("(16,64):(1,16)"))
    visualizer.shape.text.value = "(4,(2,8))"
    assert shows(visualizer, parse("(4,(2,8)):(1,(4,8))"))
    assert not messages(visualizer)


def test_sliders_pad_and_swizzle(visualizer: Any) -> None:
    visualizer.padding.value = 8
    assert shows(visualizer, parse("(16,64):(72,1)"))
    visualizer.padding.value = 0
    visualizer.swizzle_bits.value = 3
    assert shows(visualizer, parse("S<3,3,3> o 0 o (16,64):(64,1)"))
    visualizer.swizzle_base.value = 4
    visualizer.swizzle_shift.value = -4
    assert shows(visualizer, parse("S<3,4,-4> o 0 o (16,64):(64,1)"))


def test_conflicts_follow_the_sliders(visualizer: Any, read: Callable[[str], Any]) -> None:
    for bits, base, padding in [(0, 3, 0), (1, 3, 0), (3, 3, 0), (2, 4, 0), (0, 3, 8), (2, 3, 16)]:
        visualizer.swizzle_bits.value, visualizer.swizzle_base.value, visualizer.padding.value = bits, base, padding
        access = LdsAccess(visualizer.current, "read_b128", 16)
        text = read(visualizer.conflicts.value).text
        for arch in COMPARED:
            tally = access.tally(arch)
            verdict = tally.unknown or ("none" if tally.ways == 1 else f"{tally.ways}-way")
            assert f"{arch.name}{verdict}" in text
    assert not messages(visualizer)


@pytest.mark.parametrize(
    ("operation", "operand"),
    [("zipped_divide", "[4|8]"), ("logical_product", "2"), ("composition", "(4,4):(1,8)"), ("right_inverse", "")],
)
def test_an_operation_is_applied_and_explained(
    visualizer: Any, read: Callable[[str], Any], operation: str, operand: str
) -> None:
    visualizer.operand.text.value = operand
    visualizer.operation.value = operation
    expected = explain(operation, parse("(16,64):(64,1)"), *([parse(operand)] if operand else []))
    assert visualizer.current == expected.result
    assert [line for line in str(expected).splitlines() if line not in read(visualizer.steps.value).text] == []


def test_every_operation_that_explains_itself_is_offered() -> None:
    with pytest.raises(LayoutError) as raised:
        explain("none")
    assert set(str(raised.value.hint).removeprefix("these have: ").split(", ")) == set(OPERATIONS)
    assert all(hasattr(flydsl.layout, name) for name in OPERATIONS)


@pytest.mark.parametrize(
    ("control", "value", "message"),
    [
        ("shape", "(16,", "expected a number"),
        ("shape", "<script>", "unexpected character"),
        ("shape", "4:2", "cannot be a leaf"),
        ("shape", "", "expected a number"),
        ("shape", "(16,0)", "must be positive"),
        ("shape", "(?,64)", "run time"),
        ("shape", "(1024,1024)", "1048576 cells"),
        ("stride", "(1,2,3)", "not congruent"),
        ("stride", "(1E0,1E1)", "plain offsets"),
        ("stride", "(1,*)", "must have one stride"),
    ],
)
def test_bad_input_is_explained_under_its_field(visualizer: Any, control: str, value: str, message: str) -> None:
    field = getattr(visualizer, control)
    good = field.text.value
    field.text.value = value
    (said,) = messages(visualizer)
    assert message in said
    assert said == (field.note.message or visualizer.shape.note.message)
    assert "<script" not in field.note.value
    assert shows(visualizer, parse("(16,64):(64,1)"))
    field.text.value = good
    assert not messages(visualizer)


@pytest.mark.parametrize(
    ("operation", "operand", "message"),
    [
        ("zipped_divide", "", "takes an operand"),
        ("zipped_divide", "[4|8|2]", "has 3 modes"),
        ("right_inverse", "4", "takes no operand"),
        ("composition", "4:", "expected a number"),
    ],
)
def test_a_bad_operand_is_explained_under_it(visualizer: Any, operation: str, operand: str, message: str) -> None:
    visualizer.operation.value = operation
    visualizer.operand.text.value = operand
    assert message in visualizer.operand.note.message
    visualizer.operation.value = "none"
    assert not messages(visualizer)


SHAPES = st.sampled_from(["(16,64)", "(4,(2,8))", "8", "(4,8,2)", "(1,1)", "()", "(?,4)", "((4))", "(4,", "*"])
STRIDES = st.sampled_from(["", "(64,1)", "(-1,4)", "(1E0,1E1)", "(1,(4,8))", "1", "(4611686018427387904,1)", "[2|2]"])
OPERANDS = st.sampled_from(["", "4", "[2|4]", "4:2", "*", "?", "S<2,0,3>", "S<1,0,2> o 0 o 8:1", "(1,0)", "-1", "()"])


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(SHAPES, STRIDES, st.sampled_from(("none", *OPERATIONS)), OPERANDS, st.integers(0, 5), st.integers(0, 8))
def test_no_input_ends_in_a_traceback(
    visualizer: Any, shape: str, stride: str, operation: str, operand: str, bits: int, padding: int
) -> None:
    visualizer.shape.text.value, visualizer.stride.text.value = shape, stride
    visualizer.operation.value, visualizer.operand.text.value = operation, operand
    visualizer.swizzle_bits.value, visualizer.padding.value = bits, padding
    assert messages(visualizer) or shows(visualizer, visualizer.current)


def test_swizzle_and_padding_that_lead_nowhere_are_explained(visualizer: Any) -> None:
    visualizer.swizzle_bits.value, visualizer.swizzle_shift.value = 4, 0
    assert "XORed with itself" in visualizer.swizzle_note.message
    visualizer.swizzle_bits.value = 0
    visualizer.padding.value = 4
    assert "no multiple of its 16 bytes" in visualizer.access_note.message
    assert visualizer.conflicts.value == ""
    assert shows(visualizer, parse("(16,64):(68,1)"))


def test_colours_and_light(visualizer: Any) -> None:
    visualizer.color_by.value = "bank"
    visualizer.element_bits.value = 32
    visualizer.access.value = "read_b32"
    assert visualizer.figure.data[0].z[0].tolist() == [i % 32 for i in range(64)]
    visualizer.lights_phase.value = True
    lit = outlined(visualizer.figure.data[4], (16, 64))
    cells = LdsAccess(visualizer.current, "read_b32", 32).slowest_phase(get_arch("gfx942"))
    assert sorted(zip(*np.nonzero(lit), strict=True)) == sorted(cells)
    visualizer.lights_phase.value = False
    assert not visualizer.figure.data[4].x


def test_numbers_on_all_cells_and_the_picture_to_download(visualizer: Any) -> None:
    visualizer.color_by.value = "bank"
    assert visualizer.figure.data[0].text is None  # cells are too small for them
    visualizer.has_numbers.value = True
    assert visualizer.figure.data[0].text[1][2:4] == ["1", "1"]  # two elements of 16 bits in a bank
    picture = ElementTree.fromstring(visualizer.svg())
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("31") == 32 + 1  # the bank of two columns of sixteen, and the name of a column


def test_a_composed_layout_sets_the_sliders() -> None:
    layout = parse("S<2,1,3> o 5 o (8,8):(8,1)")
    visualizer = explore_layout(layout)
    assert shows(visualizer, layout)
    assert [visualizer.swizzle_bits.value, visualizer.swizzle_base.value, visualizer.swizzle_shift.value] == [2, 1, 3]


@pytest.mark.parametrize("text", ["(?,4):(4,1)", "(4,2):(2,1) o 0 o (2,2):(1,2)", "(4,8):(1E0,1E1)"])
def test_what_cannot_be_explored_is_refused(text: str) -> None:
    with pytest.raises(LayoutError):
        explore_layout(parse(text))


def test_controls_have_names(visualizer: Any, copy: fx.TiledCopy) -> None:
    for view in (visualizer, explore_threads(copy)):
        controls = [w for w in descendants(view) if "value" in w.traits() and not hasattr(w, "message")]
        inputs = [w.description for w in controls if not isinstance(w, widgets.HTML)]
        assert len(inputs) == len(set(inputs)) >= 4
        assert all(inputs)


# --- the thread explorer ---------------------------------------------------------------------------------------------


def test_choosing_a_thread_lights_it_everywhere(copy: fx.TiledCopy, read: Callable[[str], Any]) -> None:
    source, destination = parse("(8,8):(8,1)"), parse("(8,8):(1,8)")
    explorer = explore_threads(copy, source, destination)
    parts = [copy.type.copy.partition(layout) for layout in (source, destination)]
    for thread in (5, 0):
        explorer.thread.value = thread
        for outline, cells, part in zip(explorer.figure.data[4::5], explorer.figure.data[0::5], parts, strict=True):
            lit = cells.customdata[outlined(outline, (8, 8))][:, 0].tolist()
            assert sorted(lit) == sorted(part(thread + 8 * value) for value in range(8))
        listed = re.findall(r"V\d+", read(explorer.values.value).text)
        assert listed == [f"V{value}" for value in range(8)] * 2


def test_a_click_chooses_the_thread_of_the_cell(copy: fx.TiledCopy) -> None:
    explorer = explore_threads(copy)
    (panel,) = explorer.view.panels
    cells = explorer.figure.data[0]
    ((thread, _),) = panel.holders[2 + 4 * 3]
    explorer._chooser(panel)(cells, SimpleNamespace(point_inds=[(2, 3)]), None)
    assert explorer.chosen == thread


def test_panels_go_below_each_other_where_there_is_no_room() -> None:
    explorer = explore_threads(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)))
    for width, rows in ((500, 3), (830, 2), (1500, 1)):
        explorer.download.width = width
        tops = {explorer.figure.layout[axis].domain[1] for axis in ("yaxis", "yaxis2", "yaxis3")}
        assert len(tops) == rows
        assert explorer.figure.layout.width <= width


def test_no_thread_lights_everything(copy: fx.TiledCopy) -> None:
    explorer = explore_threads(copy)
    explorer.lights_thread.value = False
    assert explorer.chosen is None
    assert not explorer.figure.data[4].x
    assert explorer.values.value == ""


# --- ways in ---------------------------------------------------------------------------------------------------------


def test_whatever_shows_itself_can_be_explored(copy: fx.TiledCopy) -> None:
    assert set(SHOWN) - {CoordTensor} <= set(EXPLORERS)  # a coordinate tensor has nothing to choose
    add_methods()
    for value in (Layout((4, 8)), copy, copy.get_slice(3), copy.atom, copy.type.copy):
        assert type(value.explore()) is type(workbench.explore(value))
    assert copy.get_slice(3).explore().chosen == 3


def test_what_has_no_live_view_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a str has no live view"):
        workbench.explore("layout")


def test_a_saved_widget_has_its_picture_as_html(
    visualizer: Any, copy: fx.TiledCopy, read: Callable[[str], Any]
) -> None:
    for view in (visualizer, explore_threads(copy)):
        bundle = view._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        assert read(bundle["text/html"]).text.strip()
