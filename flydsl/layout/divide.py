"""Divides: a layout split into tiles and the rest, in four arrangements of the modes.

With A of shape (M,N,L,...) and a tile [TM|TN]:

    logical_divide   ((TM,RM),(TN,RN),L,...)
    zipped_divide    ((TM,TN),(RM,RN,L,...))
    tiled_divide     ((TM,TN),RM,RN,L,...)
    flat_divide      (TM,TN,RM,RN,L,...)

A divisor that is a layout splits A as a whole, counted as ints, into (tile, rest).

Where a tile does not divide A, the rest is rounded up, as FlyDSL and CuTe do: the last tile reaches past A.
"""

from __future__ import annotations

from math import prod

from flydsl.layout.complement import complement_of
from flydsl.layout.composed import AnyLayout, as_layout, layout_operation
from flydsl.layout.composition import composed
from flydsl.layout.int_tuple import LayoutLike
from flydsl.layout.layout import Layout, modes_of, of_modes, unchecked_layout
from flydsl.layout.leaf import Dynamic  # noqa: F401 - for the doctest
from flydsl.layout.measure import size, size_of
from flydsl.layout.tile import Tile, as_tiler, by_mode

Pair = tuple[Layout, Layout]


@layout_operation
def logical_divide(a: AnyLayout, b: object) -> LayoutLike:
    """A split by a divisor: the composition of A with (B, complement(B, size(A))), or that mode by mode.

    a: Layout or ComposedLayout. b: a Layout, an extent n (for n:1), or a Tile of them (None leaves a mode alone, and so
    does a tile of fewer modes than A).
    If the strides of B divide one another, and those of the broadcast modes of A, the result has the image of A.

    Raises LayoutError if the composition is not a layout.

    >>> logical_divide(Layout((4, 8), (8, 1)), Tile((2, 4)))
    ((2,2),(4,2)):((8,16),(1,4))
    >>> logical_divide(Layout(24, 2), Layout(4, 3))
    (4,(3,2)):(6,(2,24))
    >>> logical_divide(Layout(10, 1), Layout(4, 1))
    (4,3):(1,4)
    >>> logical_divide(Layout((Dynamic(), 8), (Dynamic(), 1)), 1)
    (1,(?,8)):(0,(?,1))
    """
    return _divided(as_layout(a), as_tiler(b))


@layout_operation
def zipped_divide(a: AnyLayout, b: object) -> LayoutLike:
    """A split into (tiles, rests): `((TM,TN,...),(RM,RN,...,L,...))`; for one mode `(TM,RM)`.

    None in the tile treats a mode of two modes as a tile and its rest, and any other mode as a rest.

    >>> zipped_divide(Layout((4, 8), (8, 1)), Tile((2, 4)))
    ((2,4),(2,2)):((8,1),(16,4))
    """
    return of_modes(list(_tile_and_rest(as_layout(a), as_tiler(b))))


@layout_operation
def tiled_divide(a: AnyLayout, b: object) -> LayoutLike:
    """A split into the tile as one mode and each rest: `((TM,TN,...),RM,RN,...,L,...)`.

    >>> tiled_divide(Layout((4, 8), (8, 1)), Tile((2, 4)))
    ((2,4),2,2):((8,1),16,4)
    """
    tile, rest = _tile_and_rest(as_layout(a), as_tiler(b))
    return of_modes([tile, *modes_of(rest)])


@layout_operation
def flat_divide(a: AnyLayout, b: object) -> LayoutLike:
    """A split with all parts side by side: `(TM,TN,...,RM,RN,...,L,...)`.

    >>> flat_divide(Layout((4, 8), (8, 1)), Tile((2, 4)))
    (2,4,2,2):(8,1,16,4)
    """
    tile, rest = _tile_and_rest(as_layout(a), as_tiler(b))
    return of_modes(modes_of(tile) + modes_of(rest))


def reaches_past(a: AnyLayout, *parts: AnyLayout) -> bool:
    """True if the parts that A was divided into have more coordinates than A; False if that is not known."""
    sizes = [size(a), *map(size, parts)]
    numbers = [number for number in sizes if type(number) is int]
    return len(numbers) == len(sizes) and prod(numbers[1:]) > numbers[0]


def _divided(a: Layout, tiler: Layout | Tile | None) -> Layout:
    if isinstance(tiler, Tile):
        divided, beyond = by_mode(a, tiler, _divided)
        return of_modes(divided + beyond)
    return a if tiler is None else of_modes(list(_divided_whole(a, tiler)))


def _tile_and_rest(a: Layout, tiler: Layout | Tile | None) -> Pair:
    if isinstance(tiler, Tile):
        pairs, beyond = by_mode(a, tiler, _tile_and_rest)
        if len(a) == len(pairs) == 1:
            return pairs[0]
        return of_modes([tile for tile, _ in pairs]), of_modes([rest for _, rest in pairs] + beyond)
    return _divided_before(a) if tiler is None else _divided_whole(a, tiler)


def _divided_before(a: Layout) -> Pair:
    """A mode that is not divided: as a tile and its rest if it has two modes, else as a rest."""
    if len(a) == 2:
        tile, rest = modes_of(a)
        return tile, rest
    return unchecked_layout(1, 0), a


def _divided_whole(a: Layout, b: Layout) -> Pair:
    whole, part = size_of(a), size_of(b)
    if type(whole) is not int and type(part) is int and part == 1:  # the rest is all of A, of whatever size
        modes = [unchecked_layout(extent, stride) for extent, stride in zip(*a.flat_modes(), strict=True)]
        return unchecked_layout(1, 0), modes[0] if len(modes) == 1 else of_modes(modes)
    tile, rest = composed(a, b, complement_of(b, whole), rounding=True)
    return tile, rest
