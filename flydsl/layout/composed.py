"""Composed layouts, `inner o offset o outer`, and the index that a layout of either kind gives at a coordinate."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

from flydsl.errors import LayoutError
from flydsl.errors.missing_attributes import Explorable
from flydsl.layout.coordinate_swizzle import CoordSwizzle, added, fitted
from flydsl.layout.indexing import counted_sum, index_of, index_or_coordinate, number
from flydsl.layout.int_tuple import AnyTuple, LayoutOrTuple, as_int_tuple, leaves, map_leaves, normal_form
from flydsl.layout.layout import (
    Immutable,
    Layout,
    checked_shape,
    functions,
    part_and_offset,
    picked,
    unchecked_layout,
)
from flydsl.layout.leaf import Basis, Dynamic, is_static
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.text import Inadmissible, operation, refusal, shown, to_text


class ComposedLayout(Immutable, Explorable):
    """`inner o offset o outer`: the function c -> inner(offset + outer(c)).

    inner: a Swizzle or a Layout, applied last. offset: an index. outer: a Layout, whose shape the whole has. Where
    outer gives coordinates (its strides are basis vectors), the offset is one, too (0 stands for zeros), and inner a
    CoordSwizzle, a Layout with the modes that they name, or a composition of these.

    >>> ComposedLayout(Swizzle(2, 1, 3), 43, Layout(16, 1))
    S<2,1,3> o 43 o 16:1
    >>> ComposedLayout(Swizzle(2, 1, 3), 43, Layout(16, 1))(0)
    47
    >>> ComposedLayout(Layout((8, 8), (8, 1)), (1, 0), Layout((4, 8), (Basis(1, 0), Basis(1, 1))))(2, 5)
    29

    Several functions in a row, `a o m o [b o n o outer]`, are held as `(a o m o b) o n o outer`, so that `outer` is a
    layout always; there, `inner` is itself a composed one, from indices to indices.
    """

    __slots__ = ("inner", "offset", "outer")
    fields = ("inner", "offset", "outer")

    inner: Function
    offset: Any
    outer: Layout

    def __new__(cls, inner: Function, offset: Any, outer: AnyLayout) -> ComposedLayout:
        return make_composed_layout(inner, offset, outer)

    @property
    def extents(self) -> AnyTuple:
        """The extents of the outer layout, a plain tuple."""
        return self.outer.extents

    @property
    def shape(self) -> AnyTuple:
        """The shape of the outer layout."""
        return self.outer.shape

    @property
    def stride(self) -> AnyTuple:
        """The stride of the outer layout."""
        return self.outer.stride

    @property
    def is_static_outer(self) -> bool:
        """True if nothing of the outer layout is a runtime value."""
        return self.outer.is_static

    @property
    def is_static_inner(self) -> bool:
        """True if nothing of the inner function is a runtime value."""
        return not isinstance(self.inner, (Layout, ComposedLayout)) or self.inner.is_static

    @property
    def is_static_offset(self) -> bool:
        """True if the offset is known at compile time."""
        return all(map(is_static, leaves(self.offset)))

    @property
    def is_static(self) -> bool:
        """True if nothing of it is a runtime value."""
        return self.is_static_outer and self.is_static_inner and self.is_static_offset

    def __str__(self) -> str:
        inner, offset, rest = _one_by_one(self)
        return f"{inner} o {to_text(offset)} o {f'[{rest}]' if isinstance(rest, ComposedLayout) else rest}"

    def __call__(self, *coord: object) -> Any:
        """The index at a coordinate: `layout(i, j)` or `layout((i, j))`, or `layout(n)` to count coordinates."""
        return functions.crd2idx(coord[0] if len(coord) == 1 else coord, self)

    def __len__(self) -> int:
        """The rank."""
        return len(self.outer)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self.outer)

    @property
    def depth(self) -> int:
        """The depth of nesting; 0 for a leaf."""
        return self.outer.depth

    @property
    def is_leaf(self) -> bool:
        """True for one mode without parentheses."""
        return self.outer.is_leaf


AnyLayout: TypeAlias = Layout | ComposedLayout
Function: TypeAlias = Swizzle | CoordSwizzle | Layout | ComposedLayout
"""A function in a composed layout: from indices or coordinates to indices or coordinates."""


@operation
def make_composed_layout(inner: Function, offset: Any, outer: AnyLayout | None = None) -> ComposedLayout:
    """The function c -> inner(offset + outer(c)). With two arguments, inner and outer, the offset is 0.

    >>> make_composed_layout(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
    S<3,3,3> o 0 o (8,64):(64,1)
    >>> make_composed_layout(Layout(32, 2), 5, ComposedLayout(Layout(32, 3), 7, Layout(8, 1)))
    32:2 o 5 o [32:3 o 7 o 8:1]
    >>> coordinates = Layout((8, 64), (Basis(1, 0), Basis(1, 1)))
    >>> make_composed_layout(CoordSwizzle(3, 0, [0], 3, [1]), coordinates)
    CS<3,0,[0],3,[1]> o (0,0) o (8,64):(1E0,1E1)
    """
    if outer is None:
        offset, outer = 0, offset
    if not isinstance(inner, (Swizzle, CoordSwizzle, Layout, ComposedLayout)):
        raise Inadmissible(
            f"the inner function must be a swizzle or a layout, got {shown(inner)}",
            hint="fx.make_composed_layout(fx.Swizzle(3, 3, 3), layout)",
        )
    if not isinstance(outer, (Layout, ComposedLayout)):
        raise Inadmissible(
            f"the outer function must be a layout, got {shown(outer)}",
            hint="fx.make_composed_layout(fx.Swizzle(3, 3, 3), layout)",
        )
    at = _checked_offset(offset)
    if type(at) is int and at == 0 and gives_coordinates(outer):
        at = map_leaves(lambda part: 0, _applied(outer, 0))
    whole = _composed(inner, at, outer)
    if type(at) is tuple:
        _applied(inner, at)  # raises where a layout has other modes than the coordinates
    return whole


def _checked_offset(offset: Any) -> AnyTuple:
    try:
        found = normal_form(offset)
    except LayoutError:
        found = None
    if not all(type(leaf) is int or isinstance(leaf, Dynamic) for leaf in leaves(found)):
        raise Inadmissible(
            f"an offset must be an integer or a tuple of integers, got {shown(offset)}", hint="pass 0, for example"
        )
    return found


def _composed(inner: Function, offset: Any, outer: Function) -> ComposedLayout:
    """The composition of two functions, nested so that its outer function is always a layout or swizzle."""
    if type(outer) is ComposedLayout:
        return _composed(_composed(inner, offset, outer.inner), outer.offset, outer.outer)
    given, wanted = gives_coordinates(outer), _takes_coordinates(inner)
    if given is not None and wanted is not None and given != wanted:
        raise Inadmissible(
            "the outer layout gives coordinates, not indices"
            if given
            else f"{inner} swizzles coordinates, and the outer layout gives indices",
            hint="compose with a layout of integer strides"
            if given
            else "compose with a layout whose strides are basis vectors, such as fx.make_identity_layout(shape)",
        )
    if type(offset) is tuple and (given is False or wanted is False):
        raise Inadmissible(
            f"the offset {to_text(offset)} is a coordinate, where indices are added", hint="pass an integer"
        )
    if given and type(offset) is not tuple:
        raise Inadmissible(
            f"the offset {to_text(offset)} is an index, where coordinates are added",
            hint="pass 0, or a tuple with a number for each mode",
        )
    composed = object.__new__(ComposedLayout)
    for name, value in zip(ComposedLayout.fields, (inner, offset, outer), strict=True):
        object.__setattr__(composed, name, value)
    return composed


@operation
def gives_coordinates(function: Function) -> bool | None:
    """True if a function gives coordinates, False if it gives indices, None for a layout that gives 0 alone.

    >>> gives_coordinates(Layout(8, Basis(1, 0))), gives_coordinates(Layout(8, 1)), gives_coordinates(Layout(8, 0))
    (True, False, None)
    """
    if isinstance(function, (Swizzle, CoordSwizzle)):
        return isinstance(function, CoordSwizzle)
    if type(function) is ComposedLayout:
        return gives_coordinates(function.inner)
    strides = list(leaves(as_layout(function).strides))
    if any(isinstance(stride, Basis) for stride in strides):
        return True
    return None if all(type(stride) is int and stride == 0 for stride in strides) else False


def _takes_coordinates(function: Function) -> bool | None:
    """True if a function takes coordinates alone, False if indices alone; a layout takes both."""
    if type(function) is ComposedLayout:
        return _takes_coordinates(function.outer)
    return None if type(function) is Layout else isinstance(function, CoordSwizzle)


@operation
def crd2idx(coord: object, layout: AnyLayout) -> LayoutOrTuple:
    """The index that the layout gives at a coordinate, which may be an int or a tuple of any coarser nesting.

    On a coordinate layout the result is a coordinate. Raises LayoutError where the coordinate does not fit the shape.

    >>> crd2idx((1, 3), Layout((4, 8), (1, 4))), crd2idx(13, Layout((4, 8), (1, 4)))
    (13, 13)
    """
    if type(layout) is ComposedLayout:
        return as_int_tuple(_applied(layout.inner, added(layout.offset, _index_at(coord, layout.outer))))
    return as_int_tuple(_index_at(coord, as_layout(layout)))


def _applied(function: Function, index: Any) -> Any:
    """A function of a composed layout at the index, or at the coordinate, that the one before it gave."""
    if type(function) is Layout:
        return _index_at(fitted(index, function.extents), function)
    if type(function) is ComposedLayout:
        return _applied(function.inner, added(function.offset, _applied(function.outer, index)))
    return function(index)


def _index_at(coord: Any, layout: Function) -> Any:
    if type(layout) is not Layout:
        return _applied(layout, normal_form(coord))
    if isinstance(coord, (tuple, list)):
        return index_of(coord, layout.extents, layout.strides)
    return index_or_coordinate(counted_sum(number(coord), *layout.flat_modes(), layout.strides), layout.strides)


@operation
def slice(value: LayoutOrTuple, coord: object) -> LayoutOrTuple:
    """The part of a layout or int tuple that the wildcards of a coordinate leave open; a single mode is unwrapped.

    Of a layout this forgets where the part begins (see slice_and_offset); a composed layout keeps it in its offset.
    Where coalescing has made several modes one, their coordinate still holds, if it is 0 in all but the first.

    >>> slice(Layout((8, 5, 16), (1, 8, 40)), (None, 3, None))
    (8,16):(1,40)
    >>> slice((4, (2, 3)), (1, None))
    (2,3)
    >>> slice(Layout((8, 2), (1, 8)), (3, (None, 0)))
    2:8
    """
    crd = normal_form(coord)
    if isinstance(value, ComposedLayout):
        part, offset = part_and_offset(crd, value.outer)
        return ComposedLayout(value.inner, added(value.offset, offset), part)
    return picked(value, crd, True)


@operation
def composed_parts(layout: ComposedLayout) -> tuple[Function, Any, AnyLayout]:
    """The function applied last, the offset before it, and the functions before that.

    >>> composed_parts(make_composed_layout(Layout(32, 2), 5, ComposedLayout(Layout(32, 3), 7, Layout(8, 1))))
    (32:2, 5, 32:3 o 7 o 8:1)
    """
    return _one_by_one(_as_composed(layout))


def _one_by_one(layout: ComposedLayout) -> tuple[Function, Any, AnyLayout]:
    if not isinstance(layout.inner, ComposedLayout):
        return layout.inner, layout.offset, layout.outer
    last, offset, middle = _one_by_one(layout.inner)
    return last, offset, _composed(middle, layout.offset, layout.outer)


@operation
def composed_get_inner(layout: ComposedLayout) -> Function:
    """The function that a composed layout applies last.

    >>> composed_get_inner(ComposedLayout(Swizzle(3, 3, 3), 4, Layout(8, 1)))
    S<3,3,3>
    """
    return _one_by_one(_as_composed(layout))[0]


@operation
def composed_get_offset(layout: ComposedLayout) -> AnyTuple:
    """The offset that a composed layout adds to the index before it applies its inner function.

    >>> composed_get_offset(ComposedLayout(Swizzle(3, 3, 3), 4, Layout(8, 1)))
    4
    """
    return as_int_tuple(_one_by_one(_as_composed(layout))[1])


@operation
def composed_get_outer(layout: ComposedLayout) -> AnyLayout:
    """The layout that a composed layout applies first.

    >>> composed_get_outer(ComposedLayout(Swizzle(3, 3, 3), 4, Layout(8, 1)))
    8:1
    """
    return _one_by_one(_as_composed(layout))[2]


def _as_composed(value: object) -> ComposedLayout:
    if type(value) is not ComposedLayout:
        raise Inadmissible(
            f"the value must be a composed layout, got {shown(value)}",
            hint="make one with fx.make_composed_layout(swizzle, layout)",
        )
    return value


def layout_operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a public operation on layouts. On a composed layout it works on the outer layout."""

    @wraps(function)
    def admitting(layout: Any, *operands: Any, **options: Any) -> Any:
        try:
            if type(layout) is ComposedLayout:
                return ComposedLayout(layout.inner, layout.offset, function(layout.outer, *operands, **options))
            return function(layout, *operands, **options)
        except (Inadmissible, RecursionError) as reason:
            raise refusal(function.__name__, (layout, *operands, *options.values()), reason) from None

    return admitting


def as_layout(value: object) -> Layout:
    """A layout argument as a Layout; an extent n is n:1."""
    if type(value) is Layout:
        return value
    if isinstance(value, (ComposedLayout, Swizzle, CoordSwizzle)):
        raise Inadmissible(
            f"this is not defined for a layout composed with a swizzle, got {value}",
            hint="apply it to the layout inside, and compose the result with the swizzle",
        )
    extent = checked_shape(value)
    if type(extent) is tuple:
        raise Inadmissible(
            f"the value must be a layout, got {shown(value)}", hint="make one with make_layout(shape, stride)"
        )
    return unchecked_layout(extent, 1)


functions.crd2idx, functions.slice = crd2idx, slice
