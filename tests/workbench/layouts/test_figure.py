"""The pictures of layouts: what they say is what the layout does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flydsl.arch import get_arch
from flydsl.errors import ArchError, ArgumentError, LayoutError
from flydsl.layout import Layout, make_layout, parse, size
from workbench.layouts import Panel, layout_figure
from workbench.layouts.grid import Grid

TEXTS = [
    "(4,8):(8,1)",
    "((2,2),(2,(2,2))):((1,4),(2,(8,16)))",
    "S<2,0,3> o 0 o (8,8):(8,1)",
    "S<1,1,2> o 3 o (2,(2,4)):(8,(1,2))",
    "(2,3,2):(1,2,6)",
    "((3,2)):((2,1))",
    "4:-1",
    "(2,2):(0,0)",
    "1:0",
    "():()",
]
extents = st.integers(1, 4)
modes = st.one_of(extents, st.tuples(extents, extents))
shapes = st.one_of(modes, st.tuples(modes), st.tuples(modes, modes), st.tuples(modes, modes, modes))


@given(shapes)
def test_every_coordinate_is_drawn_once(shape: Any) -> None:
    layout = make_layout(shape)
    assert sorted(Grid.of(layout).offsets.ravel().tolist()) == list(range(size(layout)))


@pytest.mark.parametrize("text", TEXTS)
def test_every_cell_says_where_its_coordinate_maps(text: str) -> None:
    layout = parse(text)
    cells = layout_figure(layout, element_bits=16).data[0]
    grid = Grid.of(layout)
    for row in range(grid.height):
        for column in range(grid.width):
            coordinate = parse(grid.coordinate(row, column))
            offset = layout(coordinate)
            assert cells.text[row][column] == offset == cells.z[row, column]
            shown = hover(cells, row, column)
            bank = 2 * offset // 4 % 32
            assert f"<b> {grid.coordinate(row, column)}</b>" in shown
            assert f"offset {offset}<br>byte {2 * offset} (elements of 16 bits)" in shown
            assert f"LDS bank {bank} of 32 (gfx942)" in shown


def hover(cells: Any, row: int, column: int) -> str:
    """The hover text of a cell as the page puts it together."""
    text = cells.hovertemplate
    for i, number in enumerate(cells.customdata[row, column]):
        text = text.replace(f"%{{customdata[{i}]}}", str(number))
    return str(text.replace("%{text}", str(cells.text[row][column])))


def test_rows_are_the_first_mode() -> None:
    assert Grid.of(parse("(2,3):(3,1)")).offsets.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert Grid.of(parse("3:2")).offsets.tolist() == [[0, 2, 4]]
    assert Grid.of(parse("(2,2,2):(1,2,4)")).offsets.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_tile_borders_stand_where_nested_modes_meet() -> None:
    borders = Grid.of(parse("((2,2),(3,(2,2))):((1,2),(4,(12,24)))")).borders()
    assert borders.rows == {2: True}
    assert borders.columns == {3: False, 6: True, 9: False}
    _, inner, outer, *_ = layout_figure(parse("((2,2),(3,(2,2))):((1,2),(4,(12,24)))")).data
    assert inner.x == (2.5, 2.5, None, 8.5, 8.5, None)
    assert outer.x == (-0.5, 11.5, None, 5.5, 5.5, None)
    assert outer.y == (1.5, 1.5, None, -0.5, 3.5, None)


def test_a_mode_of_extent_one_makes_no_tile() -> None:
    assert Grid.of(parse("((1,4),(4,1)):((0,1),(4,0))")).borders().rows == {}


@pytest.mark.parametrize("name", ["gfx942", "gfx950", "gfx1201"])
def test_banks_repeat_after_as_many_dwords_as_there_are_banks(name: str) -> None:
    arch = get_arch(name)
    row = layout_figure(Layout(256, 1), color_by="bank", element_bits=16, arch=arch).data[0].z[0]
    assert row.tolist() == [element // 2 % (arch.lds_banks or 0) for element in range(256)]


def test_banks_that_are_not_known_are_not_drawn() -> None:
    arch = get_arch("gfx1250")
    assert "bank" not in layout_figure(Layout(8, 1), arch=arch).data[0].hovertemplate
    with pytest.raises(ArchError, match="not known"):
        layout_figure(Layout(8, 1), color_by="bank", arch=arch)


def test_threads_and_values_are_those_of_the_thread_value_layout() -> None:
    layout, layout_tv = parse("(4,4):(4,1)"), parse("((2,2),(2,2)):((2,8),(1,4))")
    threads = layout_figure(layout, layout_tv=layout_tv, color_by="thread").data[0]
    values = layout_figure(layout, layout_tv=layout_tv, color_by="value").data[0]
    for thread in range(4):
        for value in range(4):
            row, column = layout_tv(thread, value) % 4, layout_tv(thread, value) // 4
            assert threads.z[row, column] == thread
            assert values.z[row, column] == value
            assert threads.text[row][column] == f"T{thread}<br>V{value}"
            assert f"thread {thread}, value {value}<extra>" in hover(threads, row, column)


@pytest.mark.parametrize("distance", [1, 2, 4, 8, 16, 32, 64, 128])
def test_threads_a_power_of_two_apart_have_other_colours(distance: int) -> None:
    threads = layout_figure(Layout(256, 1), layout_tv=Layout((256, 1), (1, 0)), color_by="thread").data[0].z[0].tolist()
    assert [t for t in range(256 - distance) if threads[t] == threads[t + distance]] == []


def test_an_element_of_several_threads_names_them_all() -> None:
    cells = layout_figure(Layout(4, 1), layout_tv=parse("((4,2),1):((1,0),0)"), color_by="thread").data[0]
    assert cells.text[0][1] == "T1 V0<br>T5 V0"
    assert "by<br>T1 V0<br>T5 V0<extra>" in hover(cells, 0, 1)


def test_an_element_of_nobody_has_no_colour() -> None:
    panel = Panel(Layout(4, 1), Layout((1, 2), (0, 1)))
    assert panel.holders == [[(0, 0)], [(0, 1)], [], []]
    cells = layout_figure(Layout(4, 1), layout_tv=Layout((1, 2), (0, 1)), color_by="thread").data[0]
    colors = [cells.colorscale[2 * (z + 1)][1] for z in cells.z[0].tolist()]
    assert colors[0] == colors[1] != colors[2] == colors[3] == "rgba(0,0,0,0)"


def test_a_thread_value_layout_must_stay_inside() -> None:
    with pytest.raises(LayoutError, match="element 4, and 4 has 4 elements"):
        layout_figure(Layout(4, 1), layout_tv=Layout((2, 2), (1, 4)))


@pytest.mark.parametrize("color_by", ["thread", "value", "colour"])
def test_colours_there_are_none_of_are_refused(color_by: str) -> None:
    with pytest.raises(ArgumentError):
        layout_figure(Layout(4, 1), color_by=color_by)


@pytest.mark.parametrize("bits", [0, -8, 16.0, None, 256])
def test_elements_have_a_width(bits: Any) -> None:
    with pytest.raises(LayoutError, match="1 to 128 bits wide"):
        layout_figure(Layout(4, 1), element_bits=bits)


def test_a_layout_too_large_says_so() -> None:
    with pytest.raises(LayoutError, match="1048576 cells"):
        layout_figure(Layout((1024, 1024)))


def test_the_same_layout_gives_the_same_figure() -> None:
    one, other = (layout_figure(parse(TEXTS[2]), color_by="bank").to_json() for _ in range(2))
    assert one == other


def test_a_title_has_room() -> None:
    long = "a name of a copy, which is longer than its picture is wide"
    assert layout_figure(Layout(4, 1), title=long).layout.width > 8 * len(long)
    lines = layout_figure(Layout(4, 1), title=" ".join([long] * 3)).layout.title.text.split("<br>")
    assert len(lines) == 3
    assert max(map(len, lines)) < 200


def test_a_title_is_shown_as_it_is() -> None:
    figure = layout_figure(Layout(4, 1), title="<a href='javascript:alert(1)'>")
    assert "<a" not in figure.layout.title.text


def test_offsets_beyond_what_a_page_counts_in_are_refused() -> None:
    for layout in (Layout(4, 2**62), Layout((2, 2), (-(2**50), 1)), parse("2:1 o 1 o 2:1125899906842624")):
        with pytest.raises(LayoutError, match="not drawn"):
            layout_figure(layout)


def test_large_offsets_are_exact() -> None:
    offset = 2**40
    cells = layout_figure(Layout(2, offset)).data[0]
    assert json.loads(layout_figure(Layout(2, offset)).to_json())
    assert cells.customdata[0, 1, 0] == offset
