"""`Layout`, the value of the algebra, and what every operation on layouts uses. `composed` has the other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn

from flydsl.errors import LayoutError
from flydsl.errors.missing_attributes import Explorable
from flydsl.layout.indexing import index_or_coordinate, merge_modes, pick, split
from flydsl.layout.int_tuple import (
    AnyTuple,
    as_int_tuple,
    compact_strides,
    depth_of,
    leaves,
    normal_form,
)
from flydsl.layout.leaf import Dynamic, Leaf, is_static
from flydsl.layout.text import Inadmissible, operation, shown, to_text


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


def part_and_offset(coord: AnyTuple, layout: Layout) -> tuple[Layout, Any]:
    """The sublayout that the wildcards of a coordinate leave open, and the index at which it begins."""
    shapes: list[AnyTuple] = []
    strides: list[AnyTuple] = []
    index = split(coord, layout.extents, layout.strides, shapes, strides)
    return unchecked_layout(_unwrapped(shapes), _unwrapped(strides)), index_or_coordinate(index, layout.strides)


def unwrapped(layout: Layout) -> Layout:
    """The layout without the parentheses around a single mode: `((4,2)):((1,4))` is `(4,2):(1,4)`."""
    shape, stride = layout.extents, layout.strides
    while type(shape) is tuple and len(shape) == 1:
        shape, stride = shape[0], stride[0]
    return layout if shape is layout.extents else unchecked_layout(shape, stride)


def unit_strides_zeroed(layout: Layout) -> Layout:
    """The layout with stride 0 in the modes of size 1."""
    return unchecked_layout(layout.extents, _zeroed_at_ones(layout.extents, layout.strides))


def _zeroed_at_ones(shape: AnyTuple, stride: AnyTuple) -> AnyTuple:
    """The strides, set to 0 in modes of size 1."""
    if type(shape) is tuple:
        return tuple([_zeroed_at_ones(s, d) for s, d in zip(shape, stride, strict=True)])
    return 0 if shape == 1 else stride


def modes_of(layout: Layout) -> list[Layout]:
    """The modes as layouts; for a leaf the layout itself."""
    if type(layout.extents) is not tuple:
        return [layout]
    return [unchecked_layout(s, d) for s, d in zip(layout.extents, layout.strides, strict=True)]


def of_modes(modes: list[Layout]) -> Layout:
    """The layout with the given modes."""
    return unchecked_layout(tuple([m.extents for m in modes]), tuple([m.strides for m in modes]))
