"""The values of the algebra, `Layout` and `ComposedLayout`, and the helpers that every operation on them uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ClassVar, NoReturn, TypeAlias

from flydsl.errors import LayoutError
from flydsl.layout.indexing import counted_sum, index_of, index_or_coordinate, merge_modes, number, pick, split
from flydsl.layout.int_tuple import (
    AnyTuple,
    IntLeaf,
    LayoutOrTuple,
    as_int_tuple,
    compact_strides,
    depth_of,
    leaves,
    normal_form,
)
from flydsl.layout.leaf import Basis, Dynamic, Leaf, is_static
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.text import Inadmissible, operation, refusal, shown, to_text
from flydsl.missing_attributes import Explorable


class Immutable:
    """An immutable value. Its fields determine comparison, hashing, copying and pickling."""

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def _contents(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.fields])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is type(self) and self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._contents()

    def __repr__(self) -> str:
        return str(self)


class LayoutFunctions:
    """The functions behind the methods of layouts.

    The modules that define them enter them here; `flydsl.expr` enters its own, which also take runtime values.
    """

    crd2idx: Callable[..., Any]
    slice: Callable[..., Any]
    idx2crd: Callable[..., Any]
    get_flat_coord: Callable[..., Any]
    get_1d_coord: Callable[..., Any]


functions = LayoutFunctions()


class _OpenLayout:
    """A layout under construction: unchecked_layout sets its fields and then makes it an immutable Layout."""

    __slots__ = ("_flat", "extents", "strides")

    extents: AnyTuple
    strides: AnyTuple
    _flat: tuple[tuple[Leaf, ...], tuple[Any, ...]] | None


class Layout(_OpenLayout, Immutable, Explorable):
    """A function from coordinates to indices: `shape:stride`, two congruent int tuples.

    Its leaves map coordinate c to c*stride, and their sum is the index. A layout takes a coordinate of its shape, or of
    any coarser nesting, down to one int that counts through the coordinates with the leftmost mode fastest. Extents are
    positive. Strides may be negative or zero, or basis vectors, which make the index a coordinate.

    Without a stride the layout is contiguous, leftmost mode fastest. Raises LayoutError where shape and stride are not
    congruent or an extent is not positive.

    >>> Layout((4, (2, 8)), (2, (1, 8))), Layout((4, (2, 8)))
    ((4,(2,8)):(2,(1,8)), (4,(2,8)):(1,(4,8)))
    >>> Layout((4, 8), (8, 1))(5), Layout((4, 8), (8, 1))(1, 1)
    (9, 9)
    """

    __slots__ = ()
    fields = ("extents", "strides")  # in normal form; shape and stride are what a user sees of them

    def __new__(cls, shape: object, stride: object = None) -> Layout:
        return make_layout(shape, stride)

    @property
    def shape(self) -> AnyTuple:
        """The extents, nested."""
        return as_int_tuple(self.extents)

    @property
    def stride(self) -> AnyTuple:
        """The strides, nested like the shape."""
        return as_int_tuple(self.strides)

    def flat_modes(self) -> tuple[tuple[Leaf, ...], tuple[Any, ...]]:
        """The extents and strides of the coalesced layout (no modes if the size is 1), computed once."""
        if self._flat is None:
            if type(self.extents) is tuple:
                extents: list[Leaf] = []
                strides: list[Any] = []
                merge_modes(self.extents, self.strides, extents, strides)
                _set_flat(self, (tuple(extents), tuple(strides)))
            else:
                _set_flat(self, ((self.extents,), (self.strides,)) if self.extents != 1 else ((), ()))
        return self._flat  # type: ignore[return-value]

    def __str__(self) -> str:
        return f"{to_text(self.extents)}:{to_text(self.strides)}"

    def __call__(self, *coord: object) -> Any:
        """The index at a coordinate: `layout(i, j)` or `layout((i, j))`, or `layout(n)` to count coordinates.

        With None in it, the layout that is left, as by `slice`: `layout(None, 3)`.
        """
        if len(coord) > 1 and any(part is None for part in coord):
            return self[coord]
        return functions.crd2idx(coord[0] if len(coord) == 1 else coord, self)

    def __getitem__(self, mode: Any) -> Any:
        """One mode of the layout; for a coordinate such as `layout[None, 3]` the remaining layout, as by `slice`."""
        if isinstance(mode, tuple):
            return functions.slice(self, mode)
        try:
            return modes_of(self)[mode]
        except IndexError:
            raise LayoutError(
                f"{self}[{mode}]: there is no mode {mode}",
                hint="modes count from 0; layout(coordinate) is the index of a coordinate",
            ) from None
        except TypeError:
            raise LayoutError(
                f"{self}[{shown(mode)}]: the number of a mode must be a Python int",
                hint="an integer takes a mode; layout(coordinate) is the index of a coordinate",
            ) from None

    def get_hier_coord(self, index: Any) -> Any:
        """The coordinate of an index, in the nesting of the shape: see `idx2crd`."""
        return functions.idx2crd(index, self)

    def get_flat_coord(self, index: Any) -> Any:
        """The coordinate of an index, without nesting: see `get_flat_coord`."""
        return functions.get_flat_coord(index, self)

    def get_1d_coord(self, index: Any) -> Any:
        """The number of an index among the coordinates: see `get_1d_coord`."""
        return functions.get_1d_coord(index, self)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self)

    @property
    def depth(self) -> int:
        """The depth of nesting; 0 for a leaf."""
        return depth_of(self.extents)

    @property
    def is_leaf(self) -> bool:
        """True for one mode without parentheses."""
        return type(self.extents) is not tuple

    @property
    def is_static_shape(self) -> bool:
        """True if all extents are known at compile time."""
        return not any(isinstance(leaf, Dynamic) for leaf in leaves(self.extents))

    @property
    def is_static_stride(self) -> bool:
        """True if all strides are known at compile time."""
        return all(is_static(leaf) for leaf in leaves(self.strides))

    @property
    def is_static(self) -> bool:
        """True if nothing of it is a runtime value."""
        return self.is_static_shape and self.is_static_stride

    def __len__(self) -> int:
        """The rank."""
        return len(self.extents) if type(self.extents) is tuple else 1

    def __iter__(self) -> Iterator[Layout]:
        return iter(modes_of(self))


_set_flat: Any = _OpenLayout.__dict__["_flat"].__set__


def unchecked_layout(shape: AnyTuple, stride: AnyTuple) -> Layout:
    """A Layout from a shape and a stride that must be normal and congruent."""
    layout: Any = _OpenLayout()
    layout.extents = shape
    layout.strides = stride
    layout._flat = None
    layout.__class__ = Layout
    return layout


@operation
def make_layout(shape: object, stride: object = None) -> Layout:
    """The layout `shape:stride`. Without a stride it is contiguous, leftmost mode fastest.

    >>> make_layout((4, 8), (8, 1)), make_layout((4, (2, 3)))
    ((4,8):(8,1), (4,(2,3)):(1,(4,8)))
    """
    extents = checked_shape(shape)
    if stride is None:
        return unchecked_layout(extents, compact_strides(extents)[0])
    strides = normal_form(stride)
    check_strides(extents, strides)
    return unchecked_layout(extents, strides)


def checked_shape(shape: object) -> AnyTuple:
    """A shape in normal form. Raises Inadmissible if a leaf is not an extent."""
    extents = normal_form(shape)
    _check_extents(extents)
    return extents


def _check_extents(shape: AnyTuple) -> None:
    for extent in shape if type(shape) is tuple else (shape,):
        if type(extent) is int:
            if extent < 1:
                raise Inadmissible(f"an extent must be positive, got {extent}", hint="use extents of at least 1")
        elif type(extent) is tuple:
            _check_extents(extent)
        elif not isinstance(extent, Dynamic):
            raise Inadmissible(
                f"an extent must be a positive integer, got {to_text(extent)}", hint="pass integers, or tuples of them"
            )


def check_strides(shape: AnyTuple, stride: AnyTuple) -> None:
    """Raise Inadmissible unless there is one stride for each extent."""
    if type(shape) is tuple:
        if type(stride) is not tuple or len(stride) != len(shape):
            raise Inadmissible(
                f"{to_text(shape)} and {to_text(stride)} are not congruent", hint="give every extent one stride"
            )
        for s, d in zip(shape, stride, strict=True):
            if type(s) is not int or type(d) is not int:
                check_strides(s, d)
    elif type(stride) is tuple or stride is None:
        raise Inadmissible(
            f"{to_text(shape)} must have one stride, got {to_text(stride)}", hint="give each extent one stride"
        )


@operation
def crd2idx(coord: object, layout: AnyLayout) -> LayoutOrTuple:
    """The index that the layout gives at a coordinate, which may be an int or a tuple of any coarser nesting.

    On a coordinate layout the result is a coordinate. Raises LayoutError where the coordinate does not fit the shape.

    >>> crd2idx((1, 3), Layout((4, 8), (1, 4))), crd2idx(13, Layout((4, 8), (1, 4)))
    (13, 13)
    """
    if type(layout) is ComposedLayout:
        return layout.inner(layout.offset + _index_at(coord, layout.outer))
    return as_int_tuple(_index_at(coord, as_layout(layout)))


def _index_at(coord: Any, layout: Layout | Swizzle) -> Any:
    if isinstance(layout, Swizzle):
        return layout(coord)
    if isinstance(coord, (tuple, list)):
        return index_of(coord, layout.extents, layout.strides)
    return index_or_coordinate(counted_sum(number(coord), *layout.flat_modes(), layout.strides), layout.strides)


class ComposedLayout(Immutable, Explorable):
    """`inner o offset o outer`: the function c -> inner(offset + outer(c)).

    inner: a Swizzle or a Layout, applied last. offset: an index. outer: a Layout, whose shape the whole has.

    >>> ComposedLayout(Swizzle(2, 1, 3), 43, Layout(16, 1))
    S<2,1,3> o 43 o 16:1
    >>> ComposedLayout(Swizzle(2, 1, 3), 43, Layout(16, 1))(0)
    47

    Several functions in a row, `a o m o [b o n o outer]`, are held as `(a o m o b) o n o outer`, so that `outer` is a
    layout always; there, `inner` is itself a composed one, from indices to indices.
    """

    __slots__ = ("inner", "offset", "outer")
    fields = ("inner", "offset", "outer")

    inner: Swizzle | Layout | ComposedLayout
    offset: Leaf
    outer: Layout

    def __new__(cls, inner: Swizzle | AnyLayout, offset: Leaf, outer: AnyLayout) -> ComposedLayout:
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
        return isinstance(self.inner, Swizzle) or self.inner.is_static

    @property
    def is_static_offset(self) -> bool:
        """True if the offset is known at compile time."""
        return is_static(self.offset)

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


@operation
def make_composed_layout(inner: Swizzle | AnyLayout, offset: Any, outer: AnyLayout | None = None) -> ComposedLayout:
    """The function c -> inner(offset + outer(c)). With two arguments, inner and outer, the offset is 0.

    >>> make_composed_layout(Swizzle(3, 3, 3), make_layout((8, 64), (64, 1)))
    S<3,3,3> o 0 o (8,64):(64,1)
    >>> make_composed_layout(Layout(32, 2), 5, ComposedLayout(Layout(32, 3), 7, Layout(8, 1)))
    32:2 o 5 o [32:3 o 7 o 8:1]
    """
    if outer is None:
        offset, outer = 0, offset
    if not isinstance(inner, (Swizzle, Layout, ComposedLayout)):
        raise Inadmissible(
            f"the inner function must be a swizzle or a layout, got {shown(inner)}",
            hint="fx.make_composed_layout(fx.Swizzle(3, 3, 3), layout)",
        )
    offset = int(offset) if isinstance(offset, IntLeaf) else offset
    if type(offset) is not int and not isinstance(offset, Dynamic):
        raise Inadmissible(
            f"an offset must be an integer or a tuple of integers, got {shown(offset)}", hint="pass 0, for example"
        )
    if type(outer) is ComposedLayout:
        return _composed(_composed(inner, offset, outer.inner), outer.offset, outer.outer)
    if type(outer) is not Layout:
        raise Inadmissible(
            f"the outer function must be a layout, got {shown(outer)}",
            hint="fx.make_composed_layout(fx.Swizzle(3, 3, 3), layout)",
        )
    return _composed(inner, offset, outer)


def _composed(inner: Swizzle | AnyLayout, offset: Leaf, outer: Swizzle | AnyLayout) -> ComposedLayout:
    """The composition of two functions, nested so that its outer function is always a layout or swizzle."""
    if type(outer) is ComposedLayout:
        return _composed(_composed(inner, offset, outer.inner), outer.offset, outer.outer)
    if isinstance(outer, Layout) and any(isinstance(d, Basis) for d in leaves(outer.strides)):
        raise Inadmissible(
            "the outer layout gives coordinates, not indices", hint="compose with a layout of integer strides"
        )
    composed = object.__new__(ComposedLayout)
    for name, value in zip(ComposedLayout.fields, (inner, offset, outer), strict=True):
        object.__setattr__(composed, name, value)
    return composed


def picked(value: Any, coord: AnyTuple, wanted: bool) -> Any:
    """The modes that the coordinate leaves open (`wanted`) or fixes; a single mode without parentheses."""
    if type(value) is Layout:
        return unchecked_layout(_parts(value.extents, coord, wanted), _parts(value.strides, coord, wanted))
    return as_int_tuple(_parts(normal_form(value), coord, wanted))


def _parts(tree: AnyTuple, coord: AnyTuple, wanted: bool) -> AnyTuple:
    kept: list[AnyTuple] = []
    pick(coord, tree, wanted, kept)
    return _unwrapped(kept)


def _unwrapped(parts: list[AnyTuple]) -> AnyTuple:
    return parts[0] if len(parts) == 1 else tuple(parts)


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
        return ComposedLayout(value.inner, value.offset + offset, part)
    return picked(value, crd, True)


def part_and_offset(coord: AnyTuple, layout: Layout) -> tuple[Layout, Any]:
    """The sublayout that the wildcards of a coordinate leave open, and the index at which it begins."""
    shapes: list[AnyTuple] = []
    strides: list[AnyTuple] = []
    index = split(coord, layout.extents, layout.strides, shapes, strides)
    return unchecked_layout(_unwrapped(shapes), _unwrapped(strides)), index_or_coordinate(index, layout.strides)


@operation
def composed_parts(layout: ComposedLayout) -> tuple[Swizzle | Layout, Leaf, AnyLayout]:
    """The function applied last, the offset before it, and the functions before that.

    >>> composed_parts(make_composed_layout(Layout(32, 2), 5, ComposedLayout(Layout(32, 3), 7, Layout(8, 1))))
    (32:2, 5, 32:3 o 7 o 8:1)
    """
    return _one_by_one(_as_composed(layout))


def _one_by_one(layout: ComposedLayout) -> tuple[Swizzle | Layout, Leaf, AnyLayout]:
    if not isinstance(layout.inner, ComposedLayout):
        return layout.inner, layout.offset, layout.outer
    last, offset, middle = _one_by_one(layout.inner)
    return last, offset, _composed(middle, layout.offset, layout.outer)


@operation
def composed_get_inner(layout: ComposedLayout) -> Swizzle | Layout:
    """The function that a composed layout applies last.

    >>> composed_get_inner(ComposedLayout(Swizzle(3, 3, 3), 4, Layout(8, 1)))
    S<3,3,3>
    """
    return _one_by_one(_as_composed(layout))[0]


@operation
def composed_get_offset(layout: ComposedLayout) -> Leaf:
    """The offset that a composed layout adds to the index before it applies its inner function.

    >>> composed_get_offset(ComposedLayout(Swizzle(3, 3, 3), 4, Layout(8, 1)))
    4
    """
    return _one_by_one(_as_composed(layout))[1]


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
    if isinstance(value, (ComposedLayout, Swizzle)):
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


def unwrapped(layout: Layout) -> Layout:
    """The layout without the parentheses around a single mode: `((4,2)):((1,4))` is `(4,2):(1,4)`."""
    shape, stride = layout.extents, layout.strides
    while type(shape) is tuple and len(shape) == 1:
        shape, stride = shape[0], stride[0]
    return layout if shape is layout.extents else unchecked_layout(shape, stride)


def resting(layout: Layout) -> Layout:
    """The layout with stride 0 in the modes of size 1."""
    return unchecked_layout(layout.extents, _moving(layout.extents, layout.strides))


def _moving(shape: AnyTuple, stride: AnyTuple) -> AnyTuple:
    """The strides, set to 0 in modes of size 1."""
    if type(shape) is tuple:
        return tuple([_moving(s, d) for s, d in zip(shape, stride, strict=True)])
    return 0 if shape == 1 else stride


def modes_of(layout: Layout) -> list[Layout]:
    """The modes as layouts; for a leaf the layout itself."""
    if type(layout.extents) is not tuple:
        return [layout]
    return [unchecked_layout(s, d) for s, d in zip(layout.extents, layout.strides, strict=True)]


def of_modes(modes: list[Layout]) -> Layout:
    """The layout with the given modes."""
    return unchecked_layout(tuple([m.extents for m in modes]), tuple([m.strides for m in modes]))


functions.crd2idx, functions.slice = crd2idx, slice
