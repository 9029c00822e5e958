"""Index and coordinate computations of shape and stride on bare int tuples. `Layout` builds on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.layout.int_tuple import AnyTuple, leaves, normal_form
from flydsl.layout.leaf import Basis, BasisSum, Dynamic, Leaf, is_static
from flydsl.layout.text import Inadmissible, to_text


def merge_modes(shape: AnyTuple, stride: AnyTuple, extents: list[Leaf], strides: list[Any]) -> None:
    """Append the leaves of a layout to flat modes: drop those of size 1, merge those that continue the last one.

    Modes merge where static knowledge shows that they continue: run-time extents and strides stay apart.
    """
    if type(shape) is tuple:
        for s, d in zip(shape, stride, strict=True):
            merge_modes(s, d, extents, strides)
    elif shape != 1:
        if extents and type(shape) is int and type(extents[-1]) is int:
            last = strides[-1]
            if (type(last) is int or is_static(last)) and extents[-1] * last == stride:
                extents[-1] *= shape
                return
        extents.append(shape)
        strides.append(stride)


def index_of(coord: Any, shape: AnyTuple, stride: AnyTuple) -> Any:
    """The index at a coordinate: an int or Dynamic, or a coordinate where the strides are basis vectors.

    An int is the position of a coordinate in the order with the leftmost mode fastest; the last mode takes the rest.
    """
    return index_or_coordinate(_sum_at(coord, shape, stride), stride)


def index_or_coordinate(index: Any, stride: AnyTuple) -> Any:
    """The index unchanged, or a sum of basis vectors as a coordinate with all modes that the strides name."""
    if type(index) is not int or index == 0:
        bases = [d for d in leaves(stride) if isinstance(d, Basis)]
        if bases:
            return (BasisSum(tuple([0 * d for d in bases])) + index).coordinate()
    return index


def _sum_at(coord: Any, shape: AnyTuple, stride: AnyTuple) -> Any:
    if isinstance(coord, (tuple, list)):
        check_fit(coord, shape)
        index: Any = 0
        for c, s, d in zip(coord, shape, stride, strict=True):
            index = index + (c * d if type(c) is int and type(s) is not tuple else _sum_at(c, s, d))
        return index
    crd = coord if type(coord) is int else number(coord)
    if type(shape) is not tuple:
        return crd * stride
    extents: list[Leaf] = []
    strides: list[Any] = []
    merge_modes(shape, stride, extents, strides)
    return counted_sum(crd, extents, strides, stride)


def counted_sum(coord: Leaf, extents: Sequence[Leaf], strides: Sequence[Any], of: AnyTuple) -> Any:
    """The index of flat modes at the coordinate that an int counts to, leftmost mode fastest; the last takes the rest.

    of: the strides that the modes come from; the last one counts where no mode has a size.
    """
    if not extents:
        return coord * last_stride(of)
    index: Any = 0
    for i in range(len(extents) - 1):
        if strides[i] != 0:
            index = index + coord % extents[i] * strides[i]
        coord = coord // extents[i]
    return index + coord * strides[-1]


def last_stride(stride: AnyTuple) -> Any:
    """The stride of the last leaf, 0 if there is none."""
    while type(stride) is tuple:
        stride = stride[-1] if stride else 0
    return stride


def number(value: object) -> Leaf:
    """The coordinate or index as one number. Raises Inadmissible if it is not a number."""
    leaf = normal_form(value)
    if type(leaf) is not int and not isinstance(leaf, Dynamic):
        raise Inadmissible(
            f"an index must be one integer, got {to_text(leaf)}", hint="a coordinate has a number for each mode"
        )
    return leaf


def check_fit(coord: Sequence[Any], tree: AnyTuple) -> None:
    """Raise Inadmissible unless the tree has as many modes as the coordinate."""
    if type(tree) is not tuple or len(tree) != len(coord):
        raise Inadmissible(
            f"the coordinate {to_text(tuple(coord))} does not fit {to_text(tree)}",
            hint="give an integer, or a tuple with one part for each mode",
        )


def coordinate_of(index: Any, shape: AnyTuple, stride: AnyTuple) -> AnyTuple:
    """The coordinate at which a compact layout gives the index: (index / stride) % extent in every leaf."""
    if type(shape) is tuple:
        return tuple([coordinate_of(index, s, d) for s, d in zip(shape, stride, strict=True)])
    if isinstance(stride, Basis) or (type(stride) is int and stride < 0):
        raise Inadmissible(
            f"an index cannot be divided by the stride {to_text(stride)}", hint="use positive integer strides"
        )
    if (type(shape) is int and shape == 1) or (type(stride) is int and stride == 0):
        return 0
    return index // stride % shape


def _of_leaf(coord: tuple[AnyTuple, ...], leaf: AnyTuple) -> AnyTuple:
    """The coordinate in a mode without parentheses that is given as in one with further modes of size 1.

    Where a tile fills the whole, what divides it has no modes of its own: `(None, 0)` of 2:1 is `None`.
    """
    if not coord or any(part is None or type(part) is tuple or (type(part) is int and part != 0) for part in coord[1:]):
        check_fit(coord, leaf)
    return coord[0]


def pick(coord: AnyTuple, tree: AnyTuple, wanted: bool, kept: list[AnyTuple]) -> None:
    """Append the parts of a tree that the coordinate leaves open (`wanted`: its wildcards), or those that it fixes."""
    if type(coord) is tuple and type(tree) is not tuple:
        pick(_of_leaf(coord, tree), tree, wanted, kept)
    elif type(coord) is tuple:
        check_fit(coord, tree)
        for c, t in zip(coord, tree, strict=True):
            pick(c, t, wanted, kept)
    elif (coord is None) == wanted:
        kept.append(tree)


def split(coord: AnyTuple, shape: AnyTuple, stride: AnyTuple, shapes: list[AnyTuple], strides: list[AnyTuple]) -> Any:
    """Append the modes that the wildcards of a coordinate leave open. Return the index that the other modes add."""
    if coord is None:
        shapes.append(shape)
        strides.append(stride)
        return 0
    if type(coord) is not tuple:
        return coord * stride if type(coord) is int and type(shape) is not tuple else _sum_at(coord, shape, stride)
    if type(shape) is not tuple:
        return split(_of_leaf(coord, shape), shape, stride, shapes, strides)
    check_fit(coord, shape)
    index: Any = 0
    for c, s, d in zip(coord, shape, stride, strict=True):
        index = index + split(c, s, d, shapes, strides)
    return index
