"""Sizes, ranks and parts of layouts and int tuples."""

from __future__ import annotations

from math import prod
from typing import Any

from flydsl.layout.composed import AnyLayout, ComposedLayout, as_layout, composed_get_inner, crd2idx, gives_coordinates
from flydsl.layout.int_tuple import (
    AnyTuple,
    as_int_tuple,
    check_numbers,
    depth_of,
    leaves,
    map_leaves,
    normal_form,
    product_leaf,
)
from flydsl.layout.layout import Layout
from flydsl.layout.leaf import Basis, Leaf
from flydsl.layout.text import Inadmissible, operation
from flydsl.layout.tile import Tile


@operation
def get_shape(layout: AnyLayout) -> AnyTuple:
    """The shape.

    >>> get_shape(Layout((4, 8), (8, 1)))
    (4,8)
    """
    return as_int_tuple(_outer(layout).extents)


@operation
def get_stride(layout: AnyLayout) -> AnyTuple:
    """The stride.

    >>> get_stride(Layout((4, 8), (8, 1)))
    (8,1)
    """
    return as_int_tuple(_outer(layout).strides)


def _outer(layout: AnyLayout) -> Layout:
    return layout.outer if isinstance(layout, ComposedLayout) else as_layout(layout)


def _tree(value: object) -> AnyTuple:
    if isinstance(value, (Layout, ComposedLayout)):
        return _outer(value).extents
    return value.modes if isinstance(value, Tile) else normal_form(value)


@operation
def rank(value: object) -> int:
    """The number of modes of a layout, an int tuple or a tile; 1 for a leaf.

    >>> rank((4, (2, 8))), rank(Layout(8, 1))
    (2, 1)
    """
    tree = _tree(value)
    return len(tree) if type(tree) is tuple else 1


@operation
def depth(value: object) -> int:
    """The depth of nesting of a layout, an int tuple or a tile; 0 for a leaf.

    >>> depth((4, (2, 8))), depth(8)
    (2, 0)
    """

    if isinstance(value, Tile):
        return 1 + max((0 if mode is None else depth(mode) for mode in value.modes), default=0)
    return depth_of(_tree(value))


@operation
def coshape(layout: AnyLayout) -> AnyTuple:
    """The extent of the indices from 0 on; on a coordinate layout that of each of its modes.

    >>> coshape(Layout((4, 8), (1, 16))), coshape(Layout((4, 8), (Basis(2, (0,)), Basis(1, (1,)))))
    (116, (7,8))
    """
    return as_int_tuple(_plus_one(_last(layout)))


@operation
def coprofile(layout: AnyLayout) -> AnyTuple:
    """The nesting of the indices, with zeros as leaves: 0, or for a coordinate layout a tuple.

    >>> coprofile(Layout((4, 8), (1, 16))), coprofile(Layout((4, 8), (Basis(2, (0,)), Basis(1, (1,)))))
    (0, (0,0))
    """
    return as_int_tuple(map_leaves(lambda last: 0, _last(layout)))


def _last(layout: AnyLayout) -> AnyTuple:
    """The largest index, or of a coordinate layout the largest coordinate."""
    outer = _outer(layout)
    if not any(isinstance(stride, Basis) for stride in leaves(outer.strides)):
        return cosize_of(outer) - 1
    return normal_form(crd2idx(map_leaves(lambda extent: extent - 1, outer.extents), outer))


def _plus_one(tree: AnyTuple) -> AnyTuple:
    return map_leaves(lambda leaf: leaf + 1, tree)


@operation
def size(value: object) -> Leaf:
    """The number of coordinates of a layout; the product of an int tuple.

    >>> size(Layout((4, (2, 8)), (1, (4, 8)))), size((4, 8))
    (64, 32)
    """
    if isinstance(value, (Layout, ComposedLayout)):
        return size_of(_outer(value))
    tree = normal_form(value)
    check_numbers(tree)
    return product_leaf(tree)


def size_of(layout: Layout) -> Leaf:
    """The number of coordinates of a layout."""
    return prod(layout.flat_modes()[0])


@operation
def cosize(layout: AnyLayout) -> Leaf:
    """One more than the largest index of the layout (for a composed layout, of its outer layout).

    Run-time strides are taken to be non-negative. Of a composed layout whose outer one gives coordinates, it is that of
    the layout which makes indices of them.

    >>> cosize(Layout((4, 2), (1, 8)))
    12
    """
    outer = _outer(layout)
    if isinstance(layout, ComposedLayout) and gives_coordinates(outer):
        last = composed_get_inner(layout)
        return cosize_of(last if isinstance(last, Layout) else outer)
    return cosize_of(outer)


def cosize_of(layout: Layout) -> Leaf:
    """The cosize of a layout of numbers."""
    return sum(map(_last_index, *layout.flat_modes())) + 1


def _last_index(extent: Leaf, stride: Any) -> Leaf:
    if isinstance(stride, Basis):
        raise Inadmissible(
            "the layout gives coordinates, which have no size", hint="coshape(layout) has the extents of coordinates"
        )
    return 0 if type(stride) is int and stride <= 0 else (extent - 1) * stride
