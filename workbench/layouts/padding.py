"""Padding: the rows of a tile moved apart, so that the columns go through the LDS banks."""

from __future__ import annotations

from math import inf

from flydsl.errors import LayoutError
from flydsl.layout import (
    ComposedLayout,
    Layout,
    composed_get_inner,
    cosize,
    flatten,
    gives_coordinates,
    make_composed_layout,
    make_layout,
)
from workbench.layouts.grid import AnyLayout


def padded(layout: Layout, elements: int) -> Layout:
    """A tile whose rows are this many elements further apart; of a column-major tile, its columns.

    Raises LayoutError if the layout does not have rows of one length.

    >>> padded(Layout((16, 64), (64, 1)), 8), padded(Layout((64, 16), (1, 64)), 8)
    ((16,64):(72,1), (64,16):(1,72))
    """
    if elements == 0:
        return layout
    modes = list(layout)
    if len(modes) != 2:
        raise LayoutError(f"padding goes between the rows of a layout of rank 2, and {layout} has rank {len(modes)}")
    line, other = modes[::-1] if is_row_major(layout) else modes
    if not _strides(other):
        return layout  # a single row
    length = min(_strides(other))
    if length <= 0 or any(stride % length for stride in _strides(other)) or _last(line) >= length:
        raise LayoutError(f"{layout} has no rows of one length to pad")
    stretched = make_layout(other.shape, _stretched(other.stride, length, elements))
    pair = (stretched, line) if is_row_major(layout) else (line, stretched)
    return make_layout(tuple(mode.shape for mode in pair), tuple(mode.stride for mode in pair))


def _last(line: Layout) -> int:
    """The largest offset in a line."""
    last = cosize(line) - 1
    assert isinstance(last, int)
    return last


def _stretched(stride: object, length: int, padding: int) -> object:
    if isinstance(stride, tuple):
        return tuple(_stretched(part, length, padding) for part in stride)
    assert isinstance(stride, int)
    return stride // length * (length + padding)


def is_row_major(layout: AnyLayout) -> bool:
    """True if rows are contiguous rather than columns. A layout of rank 1 is one row."""
    if isinstance(layout, ComposedLayout) and gives_coordinates(layout.outer):
        return _is_row_major_by_coordinates(layout)
    modes = list(layout.outer if isinstance(layout, ComposedLayout) else layout)
    return len(modes) < 2 or _finest(modes[1:]) <= _finest(modes[:1])


def _is_row_major_by_coordinates(layout: ComposedLayout) -> bool:
    """The same of a layout of coordinates, by the steps that the last function makes of them without a swizzle."""
    plain = make_composed_layout(composed_get_inner(layout), layout.outer)
    rank = len(layout.outer)
    steps = [plain(tuple(int(i == mode) for i in range(rank))) - plain((0,) * rank) for mode in range(rank)]
    return rank < 2 or min(steps[1:]) <= steps[0]


def _finest(modes: list[Layout]) -> float:
    """The smallest step between elements."""
    return min((stride for mode in modes for stride in _strides(mode) if stride > 0), default=inf)


def _strides(mode: Layout) -> list[int]:
    """The strides of a mode's leaves that have more than one element. Raises LayoutError where they are no numbers."""
    pairs = list(zip(_flat(mode.shape), _flat(mode.stride), strict=True))
    if any(not isinstance(leaf, int) for pair in pairs for leaf in pair):
        raise LayoutError(f"{mode} is not a layout of known numbers, so its neighbours in memory are not known")
    return [stride for extent, stride in pairs if extent != 1]


def _flat(tree: object) -> tuple[int, ...]:
    leaves = flatten(tree)
    return leaves if isinstance(leaves, tuple) else (leaves,)
