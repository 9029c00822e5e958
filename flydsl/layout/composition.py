"""Composition: the layout of c -> A(B(c))."""

from __future__ import annotations

from typing import Any

from flydsl.layout.int_tuple import AnyTuple
from flydsl.layout.layout import AnyLayout, ComposedLayout, Layout, as_layout, of_modes, trusted
from flydsl.layout.leaf import Basis, Leaf, divides
from flydsl.layout.swizzle import Swizzle
from flydsl.layout.text import Inadmissible, operation, to_text
from flydsl.layout.tile import Tile, as_tiler, by_mode

FlatModes = tuple[tuple[Leaf, ...], tuple[Any, ...]]


@operation
def composition(a: AnyLayout | Swizzle, b: object) -> Any:
    """The layout of c -> A(B(c)), congruent to B or finer: `composition(A, B)(i) == A(B(i))`.

    a: a Layout, a ComposedLayout (its outer layout is composed), or a Swizzle (which gives a ComposedLayout).
    b: a Layout, or a Tile that composes each mode of A with its own (None and the modes beyond the tile stay).

    Raises LayoutError where a stride or extent of B does not fit the modes of A evenly, or where that is not known
    before run time: no layout describes the function then.

    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    ((2,2),3):((24,2),8)
    >>> composition(Layout((16, 2), (1, 16)), Tile((Layout(4, 2),)))
    (4,2):(2,16)
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
        return a
    return composed_by_mode(a, tiler) if isinstance(tiler, Tile) else composed(a, tiler)


def _after_swizzle(swizzle: Swizzle, b: object) -> ComposedLayout:
    if isinstance(b, ComposedLayout):
        raise Inadmissible("two functions composed before a layout are not available")
    return ComposedLayout(swizzle, 0, as_layout(b))


def composed_by_mode(a: Layout, tile: Tile) -> Layout:
    """Each mode of A composed with its mode of the tile."""
    composed_modes, beyond = by_mode(a, tile, _composed_with)
    return of_modes(composed_modes + beyond)


def composed(a: Layout, b: Layout) -> Layout:
    """A after B."""
    return trusted(*composed_tree(a.flat_modes(), b.shape, b.stride))


def composed_tree(a: FlatModes, shape: AnyTuple, stride: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
    """Shape and stride of A after shape:stride, where A is coalesced."""
    if type(shape) is not tuple:
        return _composed_leaf(a, shape, stride)
    shapes, strides = [], []
    for s, d in zip(shape, stride, strict=True):
        new_shape, new_stride = composed_tree(a, s, d)
        shapes.append(new_shape)
        strides.append(new_stride)
    return tuple(shapes), tuple(strides)


def _composed_leaf(a: FlatModes, shape: Leaf, stride: Any) -> tuple[AnyTuple, AnyTuple]:
    """A after one mode: pass over `stride` elements of A, then keep `shape` of them, mode by mode."""
    if type(shape) is int and shape == 1:
        return 1, 0
    if type(stride) is int and stride == 0:
        return shape, 0
    if isinstance(stride, Basis):
        raise Inadmissible(f"{to_text(shape)}:{stride} gives coordinates, which are no indices")
    extents, strides = a
    if len(extents) <= 1:
        return shape, stride * (strides[0] if strides else 0)
    if type(stride) is int and stride < 0:
        raise Inadmissible(f"the stride {stride} runs out of the domain, which has several modes")
    return _through_modes(extents, strides, shape, stride)


def _through_modes(
    extents: tuple[Leaf, ...], strides: tuple[Any, ...], shape: Leaf, stride: Leaf
) -> tuple[AnyTuple, AnyTuple]:
    new_shape: list[Leaf] = []
    new_stride: list[Any] = []
    for i in range(len(extents) - 1):
        extent = extents[i]
        if stride % extent == 0 if type(stride) is int and type(extent) is int else divides(extent, stride):
            stride = stride // extent
            continue
        count = _count_within(extent, stride, shape)
        new_shape.append(count)
        new_stride.append(stride * strides[i])
        shape = shape // count
        stride = 1
        if type(shape) is int and shape == 1:
            break
    else:
        new_shape.append(shape)
        new_stride.append(stride * strides[-1])
    if len(new_shape) == 1:
        return new_shape[0], new_stride[0]
    return tuple(new_shape), tuple(new_stride)


def _count_within(extent: Leaf, stride: Leaf, shape: Leaf) -> Leaf:
    """How many of `shape` steps of the stride, begun at 0, stay within an extent that they do not skip.

    Raises Inadmissible unless all of them do, or they fill the extent and then go on evenly in the next mode.
    """
    if type(shape) is int and type(stride) is int:
        inside = (shape - 1) * stride < extent if type(extent) is int else divides(shape * stride, extent)
        if inside:
            return shape
    if type(extent) is not int or type(stride) is not int:
        raise Inadmissible(
            f"whether {to_text(shape)}:{to_text(stride)} stays within the extent {extent} is not known before run time",
            hint="divide by a tile, mode by mode, or let the extent's divisibility be known",
        )
    if extent % stride:
        raise Inadmissible(f"the stride {stride} and the extent {extent}: neither divides the other")
    count = extent // stride
    if not divides(count, shape):
        raise Inadmissible(
            f"the extent {to_text(shape)} is not a multiple of the {count} elements left in a mode of {extent}"
        )
    return count
