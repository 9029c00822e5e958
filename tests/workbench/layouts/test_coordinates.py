"""Coordinate layouts and the partitions of coordinate tensors draw the coordinates."""

from __future__ import annotations

from itertools import product

import pytest

import flydsl.expr as fx
from flydsl.arch import get_arch
from flydsl.errors import ArgumentError
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.layout import Layout, parse
from workbench.layouts import layout_bundle, view_of


def cells(value) -> list[list[str]]:
    (panel,) = view_of(value).panels
    return panel.cell_texts()


def test_an_identity_layout_holds_its_own_coordinates():
    assert cells(parse("(2,3):(1E0,1E1)")) == [[f"({i},{j})" for j in range(3)] for i in range(2)]


def test_strides_of_any_form():
    assert cells(parse("(4,2):(2E1,16E0)")) == [[f"({16 * j},{2 * i})" for j in range(2)] for i in range(4)]
    assert cells(parse("((2,2),3):((1E0,4E0),0)")) == [[f"({i})"] * 3 for i in (0, 1, 4, 5)]


def test_the_parts_of_all_threads_make_up_the_tile(read):
    """Each thread's partition of the coordinates is drawn; together they are the tile, each element once."""
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(atom, Layout((4, 2), (2, 1)), Layout((1, 2), (1, 1)))
    tile = fx.make_identity_tensor((8, 8))
    parts = [copy.get_slice(thread).partition_S(tile) for thread in range(8)]
    shown = [cell for part in parts for row in cells(part) for cell in row]
    assert sorted(shown) == sorted(f"({i},{j})" for i, j in product(range(8), range(8)))
    assert "(3,6)" in read(layout_bundle(parts[7])["text/html"]).text


def test_hovering_tells_the_coordinate_and_no_address():
    (cells, *_) = view_of(fx.make_identity_tensor((2, 2))).figure().data
    assert "holds the coordinate (%{customdata[0]},%{customdata[1]})" in cells.hovertemplate
    assert "byte" not in cells.hovertemplate
    assert cells.customdata[1][0].tolist()[:2] == [1, 0]


def test_there_are_no_banks_of_coordinates():
    (panel,) = view_of(fx.make_identity_tensor((2, 2))).panels
    with pytest.raises(ArgumentError, match="no LDS bank"):
        panel.banks(get_arch("gfx942"))


def test_an_origin_of_run_time_is_text():
    part = CoordTensor(("block", 0), parse("(2,2):(1E0,1E1)"))
    assert "known at run time only" in layout_bundle(part)["text/plain"]
