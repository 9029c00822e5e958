"""Elements side by side: what the functions of a composed layout keep of it."""

from __future__ import annotations

from typing import Any, TypeAlias

from flydsl.layout.coalesce import coalesce
from flydsl.layout.composed import AnyLayout, ComposedLayout, Function
from flydsl.layout.coordinate_swizzle import CoordSwizzle, part_at
from flydsl.layout.layout import Layout, unchecked_layout
from flydsl.layout.leaf import Basis, divides
from flydsl.layout.swizzle import Swizzle

_Mode: TypeAlias = tuple[int, ...]  # a path to a part of a coordinate; () for an index, which has no parts


def is_adjacent(layout: AnyLayout, values: int) -> bool:
    """True if the elements of a layout, which has as many as `values`, are known to lie side by side.

    Of a composed layout, the outer one must take steps of one, along an index or along one mode of a coordinate. The
    functions after it must keep those together: swizzles move blocks of 2**base, whose aligned parts stay whole.

    >>> from flydsl.layout.notation import parse
    >>> is_adjacent(parse("S<3,3,3> o 8 o 8:1"), 8), is_adjacent(parse("S<3,3,3> o 4 o 8:1"), 8)
    (True, False)
    >>> is_adjacent(parse("((2,2)):((1,2))"), 4), is_adjacent(parse("(2,2):(1,4)"), 4)
    (True, False)
    >>> is_adjacent(parse("(8,64):(64,1) o 0 o [CS<3,0,[0],3,[1]> o (1,8) o 8:1E1]"), 8)
    True
    """
    outer = layout if isinstance(layout, Layout) else layout.outer
    if len(coalesce(outer).flat_modes()[0]) > 1:
        return False
    steps = _steps(outer)
    if isinstance(layout, Layout):
        return steps == ()
    return values == 1 or _through(layout, steps, values) == ()


def begins_aligned(layout: ComposedLayout, stride: Any, values: int) -> bool:
    """True if a stride of the outer layout keeps the alignment that `is_adjacent` relies on.

    >>> from flydsl.layout.notation import parse
    >>> begins_aligned(parse("S<3,3,3> o 0 o (8,4):(1,8)"), 8, 8), begins_aligned(parse("S<3,3,3> o 0 o 8:1"), 4, 8)
    (True, False)
    """
    steps = _steps(layout.outer)
    if isinstance(stride, Basis):
        return stride.modes != steps or divides(values, stride.coefficient)
    return divides(values, stride)


def _steps(layout: Layout) -> _Mode | None:
    """The mode along which the first mode of a layout takes steps of one, () if they are indices; None for others."""
    extents, strides = layout.flat_modes()
    first = strides[0] if extents else 1
    if isinstance(first, Basis):
        return first.modes if type(first.coefficient) is int and first.coefficient == 1 else None
    return () if type(first) is int and first == 1 else None


def _after(function: Function, mode: _Mode, values: int) -> _Mode | None:
    """The mode along which the results go one by one for `values` steps along a mode, from a multiple of them on."""
    if isinstance(function, Swizzle):
        return mode if divides(values, 1 << function.base) or not function.bits else None
    if isinstance(function, CoordSwizzle):
        block = function.block(mode)
        return mode if block is None or divides(values, block) else None
    if isinstance(function, Layout):
        return _along(function, mode, values)
    return _through(function, _after(function.outer, mode, values), values)


def _through(function: ComposedLayout, mode: _Mode | None, values: int) -> _Mode | None:
    """As `_after`, for steps along a mode of what the outer function gives."""
    if mode is None or not divides(values, part_at(function.offset, mode)):
        return None
    return _after(function.inner, mode, values)


def _along(layout: Layout, mode: _Mode, values: int) -> _Mode | None:
    """As `_after`, for a layout: its mode must take steps of one, and not end within the values."""
    extents, strides = layout.extents, layout.strides
    for number in mode:
        if type(extents) is tuple:
            if number >= len(extents):
                return None
            extents, strides = extents[number], strides[number]
        elif number:
            return None
    part = unchecked_layout(extents, strides)
    flat = part.flat_modes()[0]
    ends_evenly = len(flat) < 2 or (type(flat[0]) is int and divides(values, flat[0]))
    return _steps(part) if ends_evenly else None
