"""Composition: the layout of c -> A(B(c))."""

from __future__ import annotations

from typing import Any

from flydsl.layout.composed import AnyLayout, ComposedLayout, as_layout
from flydsl.layout.indexing import last_stride
from flydsl.layout.int_tuple import AnyTuple, LayoutLike
from flydsl.layout.layout import Layout, of_modes, unchecked_layout, unit_strides_zeroed
from flydsl.layout.leaf import Basis, Leaf, ceil_div_leaf, divides
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.text import Inadmissible, operation, to_text
from flydsl.layout.tile import Tile, as_tiler, by_mode


@operation
def composition(a: AnyLayout | Swizzle, b: object) -> LayoutLike:
    """The layout of c -> A(B(c)), congruent to B or finer: `composition(A, B)(i) == A(B(i))`.

    a: a Layout, a ComposedLayout (its outer layout is composed), or a Swizzle (which gives a ComposedLayout).
    b: a Layout, or a Tile that composes each mode of A with its own (None and the modes beyond the tile are unchanged,
    with stride 0 if they have one element).

    Raises LayoutError if a stride or extent of B does not divide the modes of A evenly, or if that is only known at run
    time: then no layout describes the function.

    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    ((2,2),3):((24,2),8)
    >>> composition(Layout((16, 2, 1), (1, 16, 5)), Tile((Layout(4, 2),)))
    (4,2,1):(2,16,0)
    """
    if isinstance(a, Swizzle):
        return _after_swizzle(a, b)
    if isinstance(a, ComposedLayout):
        return ComposedLayout(a.inner, a.offset, composition(a.outer, b))
    outer = as_layout(a)
    if isinstance(b, Tile):
        return composed_by_mode(outer, b)
    if isinstance(b, (tuple, list)):
        return composed_by_mode(outer, Tile(tuple(b)))
    return _composed_with(outer, as_tiler(b))


def _composed_with(a: Layout, tiler: Layout | Tile | None) -> Layout:
    if tiler is None:
        return unit_strides_zeroed(a)
    return composed_by_mode(a, tiler) if isinstance(tiler, Tile) else composed(a, tiler)[0]


def _after_swizzle(swizzle: Swizzle, b: object) -> ComposedLayout:
    if isinstance(b, ComposedLayout):
        raise Inadmissible(
            "a swizzle cannot be composed with a layout that is already composed with one",
            hint="compose it with the layout inside",
        )
    return ComposedLayout(swizzle, 0, as_layout(b))


def composed_by_mode(a: Layout, tile: Tile) -> Layout:
    """Compose each mode of A with its mode of the tile. A leaf composed with a tile of one mode stays a leaf."""
    composed_modes, beyond = by_mode(a, tile, _composed_with)
    modes = composed_modes + list(map(unit_strides_zeroed, beyond))
    return of_modes(modes) if type(a.extents) is tuple else modes[0]


def composed(a: Layout, *parts: Layout, rounding: bool = False) -> list[Layout]:
    """A composed with each of the parts, which become the modes of one layout.

    rounding: where a stride of B does not fit a broadcast mode of A (stride 0), round up as CuTe does, rather than
    raise Inadmissible. The mode's elements are all one, but what comes after it is then reached in part.
    """
    extents, strides = a.flat_modes()
    if not extents:  # one element: what lies past it is a step of its stride away, as past any last mode
        extents, strides = (1,), (last_stride(a.strides),)
    passage = _Passage(extents, strides, rounding)
    return [unchecked_layout(*passage.through(part.extents, part.strides)) for part in parts]


class _Passage:
    """The composition of the coalesced modes of A with the leaves of a layout B.

    taken: how far the leaves of B reach in each mode of A, added up. If that exceeds the extent, B(c) carries into
    the next mode of A, and no sum over the leaves of B is A(B(c)).
    """

    __slots__ = ("extents", "rounding", "strides", "taken")

    def __init__(self, extents: tuple[Leaf, ...], strides: tuple[Any, ...], rounding: bool) -> None:
        self.extents = extents
        self.strides = strides
        self.rounding = rounding
        self.taken: list[Any] = [0] * len(extents)

    def through(self, shape: AnyTuple, stride: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
        """Shape and stride of A composed with shape:stride."""
        if type(shape) is not tuple:
            return self._leaf(shape, stride)
        shapes, strides = [], []
        for s, d in zip(shape, stride, strict=True):
            new_shape, new_stride = self._leaf(s, d) if type(s) is int else self.through(s, d)
            shapes.append(new_shape)
            strides.append(new_stride)
        return tuple(shapes), tuple(strides)

    def _leaf(self, shape: Leaf, stride: Any) -> tuple[AnyTuple, AnyTuple]:
        if shape == 1:
            return 1, 0
        if type(stride) is int:
            if stride == 0:
                return shape, 0
            if stride < 0 and len(self.extents) > 1:
                raise Inadmissible(
                    f"the stride {stride} of B leaves the domain of A, which has several modes",
                    hint="make B smaller, or A larger",
                )
        elif isinstance(stride, Basis):
            raise Inadmissible(
                f"{to_text(shape)}:{stride} gives coordinates, where indices are needed",
                hint="compose with a layout of integer strides",
            )
        if len(self.extents) > 1:
            return self._modes(shape, stride)
        return shape, stride * self.strides[0]

    def _modes(self, shape: Leaf, stride: Leaf) -> tuple[AnyTuple, AnyTuple]:
        """Skip `stride` elements of A, then keep `shape` of them; the last mode of A takes the rest."""
        new_shape: list[Leaf] = []
        new_stride: list[Any] = []
        last = len(self.extents) - 1
        for i in range(last):
            extent = self.extents[i]
            if divides(extent, stride):
                stride = stride // extent
                continue
            count = self._kept(i, shape, stride)
            new_shape.append(count)
            new_stride.append(stride * self.strides[i])
            if count == shape:
                break
            shape, stride = shape // count, 1
        else:
            new_shape.append(shape)
            new_stride.append(stride * self.strides[last])
        if len(new_shape) == 1:
            return new_shape[0], new_stride[0]
        return tuple(new_shape), tuple(new_stride)

    def _kept(self, mode: int, shape: Leaf, stride: Leaf) -> int:
        """Number of the `shape` steps of the stride that stay within one mode of A.

        Raises Inadmissible unless all of them do, or they fill the mode and then go on evenly in the next.
        """
        extent = self.extents[mode]
        least = extent if type(extent) is int else extent.divisibility  # type: ignore[union-attr]  # they are positive
        if type(shape) is int and type(stride) is int and (shape - 1) * stride < least:
            count = shape
        elif self._rounds(mode, stride):
            return _rounded(extent, shape, stride)
        else:
            count = _filled(extent, shape, stride)
        self.taken[mode] += (count - 1) * stride
        if self.taken[mode] >= least:
            raise Inadmissible(
                f"the modes of B add up to more than the {to_text(extent)} elements in a mode of A",
                hint="make B smaller, or A larger",
            )
        return count

    def _rounds(self, mode: int, stride: Leaf) -> bool:
        """True if the mode is a broadcast one that the stride does not fit, so that the count is rounded up."""
        extent, of = self.extents[mode], self.strides[mode]
        if not self.rounding or type(extent) is not int or type(stride) is not int:
            return False
        return type(of) is int and of == 0 and 0 < extent % stride < extent


def _rounded(extent: Leaf, shape: Leaf, stride: Leaf) -> int:
    """Number of steps that begin within an extent."""
    count = ceil_div_leaf(extent, stride)
    if type(count) is not int or not divides(count, shape):
        raise Inadmissible(
            f"{to_text(shape)} is not a multiple of the {count} steps of {stride} in a mode of {extent}",
            hint="choose shape and stride of B so that they divide the modes of A",
        )
    return count


def _filled(extent: Leaf, shape: Leaf, stride: Leaf) -> int:
    """Number of steps that fill an extent exactly, so that the next mode continues evenly."""
    if type(extent) is not int or type(stride) is not int:
        raise Inadmissible(
            f"whether {to_text(shape)}:{to_text(stride)} stays within {extent} is not known before run time",
            hint="divide by a tile, mode by mode, or let the extent's divisibility be known",
        )
    if extent % stride:
        raise Inadmissible(
            f"the stride {stride} and the extent {extent}: neither divides the other",
            hint="choose strides of B that step over whole modes of A, or divide an extent of A",
        )
    count = extent // stride
    if not divides(count, shape):
        multiple = f"a multiple of the {count} elements left in a mode of {extent}"
        shown = to_text(shape)
        raise Inadmissible(
            f"{shown} is not {multiple}"
            if type(shape) is int
            else f"whether {shown} is {multiple} is not known before run time",
            hint="choose shape and stride of B so that they divide the modes of A",
        )
    return count
