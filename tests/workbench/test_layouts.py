"""The layout view: what the picture says is what the layout does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flydsl.errors import LayoutError
from flydsl.layout import Layout, cosize, make_layout, parse, size
from workbench.layouts import layout_bundle, layout_figure, layout_grid, layout_html

extents = st.integers(1, 4)
modes = st.one_of(extents, st.tuples(extents, extents))
shapes = st.one_of(modes, st.tuples(modes), st.tuples(modes, modes), st.tuples(modes, modes, modes))


@given(shapes)
def test_every_coordinate_is_drawn_once(shape: object) -> None:
    layout = make_layout(shape)
    grid = layout_grid(layout)
    assert sorted(offset for row in grid.offsets for offset in row) == list(range(size(layout)))


def test_rows_are_the_first_mode() -> None:
    assert layout_grid(parse("(2,3):(3,1)")).offsets == [[0, 1, 2], [3, 4, 5]]
    assert layout_grid(parse("3:2")).offsets == [[0, 2, 4]]
    assert layout_grid(parse("(2,2,2):(1,2,4)")).offsets == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_hover_names_the_nested_coordinate() -> None:
    figure = layout_figure(parse("((2,2),4):((1,4),8)"))
    assert figure.data[0].customdata[3][1] == "((1,1),1)"
    assert figure.data[0].z[3][1] == parse("((2,2),4):((1,4),8)")(3, 1)


def test_tile_borders_stand_where_nested_modes_meet() -> None:
    figure = layout_figure(parse("((2,2),4):((1,4),8)"))
    assert list(figure.data[1].y) == [1.5, 1.5, None]
    assert layout_html(parse("((2,2),4):((1,4),8)")).count("border-top") == 4


@pytest.mark.parametrize("text", ["S<2,0,3> o 0 o (8,8):(8,1)", "(4,8):(8,1)", "(2,2):(0,0)", "4:-1"])
def test_bundle_has_a_picture_a_table_and_text(text: str) -> None:
    layout = parse(text)
    bundle = layout_bundle(layout)
    assert bundle["text/plain"] == str(layout)
    assert "application/vnd.plotly.v1+json" in bundle
    assert "<script" not in bundle["text/html"]
    assert "<table" in bundle["text/html"]


@pytest.mark.parametrize("text", ["(?,4):(4,1)", "(4,8):(1E0,1E1)"])
def test_what_cannot_be_drawn_is_text(text: str) -> None:
    assert layout_bundle(parse(text)) == {"text/plain": text}


def test_a_layout_too_large_says_so() -> None:
    with pytest.raises(LayoutError, match="1048576 cells"):
        layout_figure(Layout((1024, 1024)))


def test_large_layouts_have_no_table() -> None:
    layout = Layout((128, 128), (128, 1))
    assert cosize(layout) == 128 * 128
    assert "<table" not in layout_html(layout)
