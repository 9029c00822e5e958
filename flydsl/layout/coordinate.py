"""Coordinates from indices, and the parts of a layout that a coordinate fixes. `layout` has `crd2idx` and `slice`."""

from __future__ import annotations

from typing import Any

from flydsl.layout.composed import AnyLayout, ComposedLayout, as_layout, layout_operation, slice
from flydsl.layout.indexing import coordinate_of, index_of, number
from flydsl.layout.int_tuple import AnyTuple, LayoutOrTuple, as_int_tuple, compact_strides, normal_form
from flydsl.layout.layout import Layout, functions, part_and_offset, picked
from flydsl.layout.leaf import Leaf
from flydsl.layout.text import operation


@operation
def idx2crd(index: object, layout: Layout) -> AnyTuple:
    """The coordinate of an index, congruent to the shape: (index / stride) % extent in every leaf.

    For a layout that is one-to-one, contiguous or nearly so: `layout(idx2crd(layout(c), layout)) == layout(c)`.

    >>> idx2crd(44, Layout((6, 8), (8, 1)))
    (5,4)
    """
    of = as_layout(layout)
    return as_int_tuple(coordinate_of(number(index), of.extents, of.strides))


@operation
def get_flat_coord(index: object, layout: Layout) -> AnyTuple:
    """The coordinate of an index with one int for each mode.

    >>> get_flat_coord(190, Layout((8, (4, 8)), (32, (8, 1))))
    (5,27)
    """
    of = as_layout(layout)
    coord = coordinate_of(number(index), of.extents, of.strides)
    if type(coord) is not tuple:
        return coord
    return as_int_tuple(tuple([_count(c, s) for c, s in zip(coord, of.extents, strict=True)]))


@operation
def get_1d_coord(index: object, layout: Layout) -> Leaf:
    """The coordinate of an index as one int, which counts the coordinates with the leftmost mode fastest.

    >>> get_1d_coord(9, Layout((6, 5), (5, 1)))
    25
    """
    of = as_layout(layout)
    return _count(coordinate_of(number(index), of.extents, of.strides), of.extents)


def _count(coord: AnyTuple, shape: AnyTuple) -> Leaf:
    return index_of(coord, shape, compact_strides(shape)[0])


@layout_operation
def dice(value: LayoutOrTuple, coord: object) -> LayoutOrTuple:
    """The part of a layout or int tuple that a coordinate fixes, the opposite of slice.

    >>> dice(Layout((8, 5, 16), (1, 8, 40)), (None, 3, 0))
    (5,16):(8,40)
    """
    return picked(value, normal_form(coord), False)


@operation
def slice_and_offset(coord: object, layout: AnyLayout) -> tuple[Any, Any]:
    """The sublayout that the wildcards leave open, and the index (or coordinate) at which it begins.

    `layout(coord with c for the wildcards) == offset + sublayout(c)`. A composed layout is not linear, so it keeps the
    offset inside and the returned offset is 0.

    >>> slice_and_offset((None, 3), Layout((64, 8), (1, 64)))
    (64:1, 192)
    """
    crd = normal_form(coord)
    if isinstance(layout, ComposedLayout):
        return slice(layout, crd), 0
    part, offset = part_and_offset(crd, as_layout(layout))
    return part, as_int_tuple(offset)


functions.idx2crd, functions.get_flat_coord, functions.get_1d_coord = idx2crd, get_flat_coord, get_1d_coord
