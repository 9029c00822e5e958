"""Layouts made from a shape: coordinates, contiguous in some order, or like another layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flydsl.layout.composed import as_layout
from flydsl.layout.int_tuple import AnyTuple, compact_strides, leaves, normal_form
from flydsl.layout.layout import Layout, checked_shape, unchecked_layout, unit_strides_zeroed
from flydsl.layout.leaf import Basis, Leaf
from flydsl.layout.text import Inadmissible, operation, to_text


@operation
def make_identity_layout(shape: object) -> Layout:
    """The layout that maps every coordinate to itself: the start of a coordinate tensor.

    >>> make_identity_layout((4, (2, 8)))
    (4,(2,8)):(1E0,(1E1E0,1E1E1))
    >>> make_identity_layout((4, 8))(9)
    (1,2)
    """
    extents = checked_shape(shape)

    def strides(tree: AnyTuple, path: tuple[int, ...]) -> AnyTuple:
        if type(tree) is tuple:
            return tuple([strides(x, (*path, i)) for i, x in enumerate(tree)])
        return Basis(1, path) if path else 1

    return unchecked_layout(extents, strides(extents, ()))


@operation
def make_ordered_layout(shape: object, order: object) -> Layout:
    """The contiguous layout whose modes vary in the given order. The mode of smallest order is the fastest.

    order: ints, congruent to the shape or coarser. Among leaves of equal order, the leftmost is the fastest.

    >>> make_ordered_layout((4, 8, 3), (1, 0, 2))
    (4,8,3):(8,1,32)
    """
    extents = checked_shape(shape)
    return _contiguous(extents, _spread(normal_form(order), extents))


def _spread(order: AnyTuple, shape: AnyTuple) -> list[int]:
    """The order of each leaf of the shape."""
    if type(order) is tuple:
        if type(shape) is not tuple or len(shape) != len(order):
            raise Inadmissible(
                f"the order {to_text(order)} must have the modes of the shape {to_text(shape)}",
                hint="an order has a number for each mode: (1, 0) for two, row-major",
            )
        return [rank for o, s in zip(order, shape, strict=True) for rank in _spread(o, s)]
    if type(order) is not int:
        raise Inadmissible(
            f"an order must number the modes from 0, got {to_text(order)}",
            hint="the fastest mode has number 0: (1, 0) is row-major",
        )
    return [order for _ in leaves(shape)]


def _contiguous(shape: AnyTuple, order: list[Any]) -> Layout:
    """The contiguous layout whose leaves vary in the given order. Leaves of order None get stride 0 and no space."""
    extents = list(leaves(shape))
    strides: list[Leaf] = [0] * len(extents)
    stride: Leaf = 1
    for i in sorted((i for i, rank in enumerate(order) if rank is not None), key=order.__getitem__):
        strides[i] = stride
        stride = stride * extents[i]
    return unchecked_layout(shape, _refill(shape, iter(strides)))


def _refill(shape: AnyTuple, values: Iterator[Any]) -> AnyTuple:
    """The values, nested like the shape."""
    return tuple([_refill(s, values) for s in shape]) if type(shape) is tuple else next(values)


@operation
def make_layout_like(layout: Layout) -> Layout:
    """The contiguous layout of the same shape whose modes vary in the order of the strides, run-time strides last.

    Modes of stride 0 (broadcast) keep it and take no room.

    >>> make_layout_like(Layout((4, 2, 8), (16, 0, 1)))
    (4,2,8):(8,0,1)
    """
    like = as_layout(layout)
    return _contiguous(like.extents, list(map(_stride_order, leaves(like.strides))))


@operation
def make_fragment_layout_like(layout: Layout) -> Layout:
    """The contiguous layout in which a thread keeps its part of a tensor in registers.

    Mode 0 (what one instruction takes) comes first, its leftmost leaf fastest; the others follow in the order of their
    strides, or from left to right where the layout gives coordinates. Values that are one in the tensor (stride 0,
    broadcast) have a place each: the thread may change them. Modes of size 1 get stride 0.

    >>> make_fragment_layout_like(Layout(((4, 2), 2, 3), ((1, 4), 240, 8)))
    ((4,2),2,3):((1,4),24,8)
    >>> [make_fragment_layout_like(layout) for layout in (Layout((8, 2, 8), (1, 0, 16)), Layout(((6, 2),), ((12, 3),)))]
    [(8,2,8):(1,8,16), ((6,2)):((1,6))]
    """
    like = as_layout(layout)
    shape, strides = like.extents, list(leaves(like.strides))
    if type(shape) is not tuple or len(shape) < 2:
        return unchecked_layout(shape, compact_strides(shape)[0])
    if any(isinstance(stride, Basis) for stride in strides):
        return unit_strides_zeroed(unchecked_layout(shape, compact_strides(shape)[0]))
    order = [_stride_order(stride) or (False, 0) for stride in strides]
    first = len(list(leaves(shape[0])))
    order[:first] = [(False, i - first) for i in range(first)]
    return unit_strides_zeroed(_contiguous(shape, order))


def _stride_order(stride: Any) -> tuple[bool, int] | None:
    if isinstance(stride, Basis):
        raise Inadmissible(
            f"a stride must be known before run time to be ordered by size, got {stride}",
            hint="order layouts of static strides",
        )
    if type(stride) is int:
        return (False, abs(stride)) if stride else None
    return (True, 0)
