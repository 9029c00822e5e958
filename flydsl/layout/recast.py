"""Recast: the layout of the same memory in elements of another width."""

from __future__ import annotations

from math import gcd
from typing import Any

from flydsl.layout.composed import AnyLayout, ComposedLayout, as_layout
from flydsl.layout.int_tuple import LayoutLike
from flydsl.layout.layout import Layout, modes_of, of_modes, unchecked_layout
from flydsl.layout.leaf import Basis, Leaf, ceil_div_leaf, divides
from flydsl.layout.swizzle import Swizzle, recast_swizzle
from flydsl.layout.text import Inadmissible, operation, shown

MOST_BITS = 2**16


@operation
def recast_layout(layout: AnyLayout, old_bits: int, new_bits: int) -> LayoutLike:
    """The layout of the same memory, viewed in elements of old_bits, in elements of new_bits.

    Modes of stride 1 grow or shrink, the other strides are scaled; a run-time stride is taken not to be 1. Wider
    elements that the layout covers in part count whole. (CuTe: recast_layout.) Raises LayoutError where a stride falls
    within an element.

    >>> recast_layout(Layout((8, 4), (4, 1)), 8, 4), recast_layout(Layout((8, 4), (4, 1)), 8, 16)
    ((8,8):(8,1), (8,2):(2,1))
    """
    for bits in (old_bits, new_bits):
        if type(bits) is not int or not 0 < bits <= MOST_BITS:
            raise Inadmissible(
                f"a width must be a positive number of bits, got {shown(bits)}", hint="pass 16 or 32, for example"
            )
    common = gcd(old_bits, new_bits)
    up, down = new_bits // common, old_bits // common
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle) or layout.offset != 0:
            raise Inadmissible("only a swizzle at offset 0 can be recast", hint="recast before the offset is added")
        return ComposedLayout(recast_swizzle(layout.inner, up, down), 0, _recast(layout.outer, up, down))
    return _recast(as_layout(layout), up, down)


def _recast(layout: Layout, up: int, down: int) -> Layout:
    if type(layout.extents) is tuple:
        return of_modes([_recast(mode, up, down) for mode in modes_of(layout)])
    return unchecked_layout(*_narrowed(*_widened(layout.extents, layout.strides, up), down))


def _widened(extent: Leaf, stride: Any, factor: int) -> tuple[Leaf, Any]:
    if factor == 1 or (type(stride) is int and stride == 0):
        return extent, stride
    if isinstance(stride, Basis):
        raise Inadmissible(
            f"a stride must be an integer to be recast, got {stride}", hint="recast a layout of integer strides"
        )
    if divides(factor, stride):
        return extent, stride // factor
    if type(stride) is int and factor % stride == 0:
        return ceil_div_leaf(extent, factor // abs(stride)), 1 if stride > 0 else -1
    raise Inadmissible(
        f"the stride {stride} and {factor} elements to one: neither is known to divide the other",
        hint="use strides that are whole numbers of the wider elements",
    )


def _narrowed(extent: Leaf, stride: Any, factor: int) -> tuple[Leaf, Any]:
    if type(stride) is int and abs(stride) == 1:
        return extent * factor, stride
    return extent, stride * factor
