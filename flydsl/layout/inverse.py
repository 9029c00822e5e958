"""Inverses: from the index back to the coordinate, counted as an int."""

from __future__ import annotations

from math import prod
from typing import Any

from flydsl.layout.coalesce import of_flat_modes
from flydsl.layout.composed import as_layout
from flydsl.layout.indexing import merge_modes
from flydsl.layout.layout import Layout
from flydsl.layout.leaf import Leaf
from flydsl.layout.text import Inadmissible, operation


@operation
def right_inverse(layout: Layout) -> Layout:
    """The largest layout R with `layout(R(i)) == i`, from the modes of `layout` that are contiguous from index 0 on.

    Modes of stride 0 and modes only known at run time are skipped. The size is 1 if no mode has stride 1.

    >>> right_inverse(Layout((2, 4), (4, 1)))
    (4,2):(2,1)
    """
    extents, strides = as_layout(layout).flat_modes()
    known = [i for i in range(len(extents)) if type(extents[i]) is int and type(strides[i]) is int]
    shapes: list[Leaf] = []
    steps: list[Leaf] = []
    reached: Leaf = 1
    for i in sorted(known, key=strides.__getitem__):
        if strides[i] == reached:
            merge_modes(extents[i], prod(extents[:i]), shapes, steps)
            reached = reached * extents[i]
    return of_flat_modes(shapes, steps)


@operation
def left_inverse(layout: Layout) -> Layout:
    """The layout L with `L(layout(i)) == i`. Indices that `layout` skips are filled in.

    Along modes of stride 0, whose coordinates share an index, it gives the first coordinate.
    Raises LayoutError where two other coordinates share an index, or no layout can tell the modes apart.

    >>> left_inverse(Layout(5, 4)), left_inverse(Layout((2, 4), (1, 4))), left_inverse(Layout((4, 3), (0, 1)))
    ((4,5):(0,1), (4,4):(1,2), 3:4)
    """
    extents, strides = as_layout(layout).flat_modes()
    for stride in strides:
        if type(stride) is not int or stride < 0:
            raise Inadmissible(
                f"a stride must be at least 0 and known before run time, got {stride}",
                hint="use static strides of at least 0",
            )
    shapes: list[Leaf] = []
    steps: list[Any] = []
    below = 1  # the stride of the mode before in the order of strides
    step: Leaf = 0  # its step in the result
    extent: Leaf = 1
    for i in sorted((i for i, stride in enumerate(strides) if stride), key=strides.__getitem__):
        merge_modes(_gap(below, extent, strides[i]), step, shapes, steps)
        below, step, extent = strides[i], prod(extents[:i]), extents[i]
    merge_modes(extent, step, shapes, steps)
    return of_flat_modes(shapes, steps)


def _gap(stride: int, extent: Leaf, above: int) -> int:
    """Number of strides that fit below the next larger stride."""
    if type(extent) is not int:
        raise Inadmissible(
            f"whether {extent}:{stride} stays below the stride {above} is not known before run time",
            hint="use static shapes and strides",
        )
    if extent * stride > above:
        raise Inadmissible(
            f"the layout is not one-to-one: {extent}:{stride} reaches past the stride {above}",
            hint="a layout has an inverse if no two coordinates have the same index",
        )
    if above % stride:
        raise Inadmissible(
            f"the stride {stride} does not divide the stride {above}",
            hint="make each stride divide the next one",
        )
    return above // stride
