"""Tiled copies as data: the partition of a tensor over threads."""

from __future__ import annotations

import pytest

from flydsl import layout as algebra
from flydsl.atoms import TiledCopy, UniversalCopy
from flydsl.errors import LayoutError
from flydsl.layout import Layout, make_layout, make_layout_tv, make_tile, parse, size


def tiled(bits: int, thr: Layout, val: Layout) -> TiledCopy:
    tile, layout_tv = make_layout_tv(thr, val)
    return TiledCopy(UniversalCopy(bits), 32, layout_tv, make_tile(*tile))


def test_partition_is_that_of_the_reference_dump() -> None:
    """Example 02: 24 x 120 in tiles of 8 x 24, four threads with eight values each, 128-bit copies."""
    copy = tiled(128, parse("(4,1):(1,1)"), parse("(1,8):(1,1)"))
    parts = copy.partition(parse("(8,24):(?{i64},1)"))
    assert str(algebra.slice(parts, (0, None, None, None))) == "((4,2),2,3):((1,4),?{i64 div=4},8)"


@pytest.mark.parametrize(
    ("bits", "thr", "val", "tensor"),
    [
        (128, "(4,1):(1,1)", "(1,8):(1,1)", "(8,24):(24,1)"),
        (32, "(2,4):(4,1)", "(2,2):(1,2)", "(8,16):(16,1)"),
        (64, "(8,4):(4,1)", "(1,2):(1,1)", "(16,8):(1,16)"),
        (32, "(8,1):(1,8)", "(4,1):(1,4)", "(64,3):(1,64)"),
    ],
)
def test_threads_and_values_cover_the_tensor_once(bits: int, thr: str, val: str, tensor: str) -> None:
    copy, layout = tiled(bits, parse(thr), parse(val)), parse(tensor)
    parts = copy.partition(layout)
    assert size(algebra.get(parts, 0)) == copy.threads
    assert sorted(parts(i) for i in range(size(parts))) == sorted(layout(i) for i in range(size(layout)))


def test_a_call_moves_values_side_by_side() -> None:
    copy = tiled(128, parse("(4,1):(1,1)"), parse("(1,8):(1,1)"))
    parts = copy.partition(make_layout((8, 24), (24, 1)))
    thread, (call, *_) = algebra.get(parts, 0), algebra.get(parts, 1)
    assert size(thread) == 4
    assert [call(i) for i in range(4)] == [0, 1, 2, 3]


def test_values_that_are_no_whole_number_of_calls_are_refused() -> None:
    with pytest.raises(LayoutError, match="128 bits"):
        tiled(128, parse("4:1"), parse("3:1"))


def test_a_tile_that_does_not_divide_reaches_past_the_tensor() -> None:
    copy = tiled(32, parse("(4,1):(1,4)"), parse("(2,1):(1,2)"))
    thread, values, rows, columns = copy.partition(parse("(12,2):(1,12)"))
    assert (size(thread), size(values), size(rows), size(columns)) == (4, 2, 2, 2)
    assert rows(1) == 8
