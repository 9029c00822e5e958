"""A layout spread over rows and columns.

Rows are the first mode, columns all others (folded into one, leftmost fastest); a layout of rank 1 is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, count
from math import prod
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flydsl.errors import LayoutError
from flydsl.layout import ComposedLayout, Layout, flatten, get_shape, gives_coordinates, idx2crd, make_layout, size

AnyLayout: TypeAlias = Layout | ComposedLayout
Numbers: TypeAlias = NDArray[Any]

MAX_CELLS = 256 * 256
_OFFSET_END = 2**44  # addresses in bits stay below 2**53, up to which a page counts


@dataclass(frozen=True, eq=False)
class Grid:
    """The offsets of a layout over two axes.

    shape: the layout's. offsets: int64, height x width. The n-th coordinate is in row n % height, column n // height.
    """

    shape: Any
    offsets: Numbers

    @staticmethod
    @lru_cache(maxsize=16)  # a view asks for the grid of one layout several times over
    def of(layout: AnyLayout) -> Grid:
        """Spread a layout out. Raises LayoutError if it is too large or not a function of numbers.

        >>> Grid.of(make_layout((2, 3), (3, 1))).offsets.tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        cells = size(layout)
        if not isinstance(cells, int):
            raise LayoutError(f"{layout} has sizes known at run time only", hint="draw a layout of numbers")
        if cells > MAX_CELLS:
            raise LayoutError(f"{layout} has {cells} cells; at most {MAX_CELLS} are drawn", hint="draw a slice of it")
        shape = get_shape(layout)
        height = prod(_leaves(_axes(shape)[0]))
        spread = _spread(layout, height, cells // height)
        spread.setflags(write=False)
        return Grid(shape, spread)

    @property
    def height(self) -> int:
        return int(self.offsets.shape[0])

    @property
    def width(self) -> int:
        return int(self.offsets.shape[1])

    @cached_property
    def row_names(self) -> list[str]:
        """The coordinate of each row along its axis; an empty one for rank 1."""
        rows, _ = _axes(self.shape)
        return [""] if rows == () else _names(rows)

    @cached_property
    def column_names(self) -> list[str]:
        """The coordinate of each column along its axis."""
        return _names(_axes(self.shape)[1])

    def coordinate(self, row: int, column: int) -> str:
        """The nested coordinate of a cell, in the notation of the DSL."""
        return str(idx2crd(row + self.height * column, make_layout(self.shape)))

    def coordinate_form(self, leaf: Callable[[int], str]) -> str:
        """The form of all coordinates, with `leaf(k)` in the place of the k-th leaf."""
        numbers = count()

        def form(shape: Any) -> str:
            return f"({','.join(map(form, shape))})" if isinstance(shape, tuple) else leaf(next(numbers))

        return form(self.shape)

    def coordinate_leaves(self) -> list[Numbers]:
        """For each leaf of the coordinates, left to right, its number in every cell (shapes that broadcast)."""
        rows, columns = map(_leaves, _axes(self.shape))
        return [n[:, None] for n in _digits(rows, self.height)] + [n[None, :] for n in _digits(columns, self.width)]

    def borders(self) -> Borders:
        """The borders between tiles of nested modes."""
        rows, columns = map(_leaves, _axes(self.shape))
        return Borders(_levels(rows, self.height), _levels(columns, self.width))


@dataclass(frozen=True)
class Borders:
    """Positions along each axis at which a tile begins. Each maps to whether it is the border of an outermost tile."""

    rows: dict[int, bool]
    columns: dict[int, bool]


def _spread(layout: AnyLayout, height: int, width: int) -> Numbers:
    """The offsets, height x width."""
    if isinstance(layout, ComposedLayout) and gives_coordinates(layout.outer):
        return _numbers(layout, [layout(i) for i in range(height * width)]).reshape(width, height).T
    if isinstance(layout, ComposedLayout):
        offset, outer = layout.offset, _spread(layout.outer, height, width)
        return _numbers(layout, [layout.inner(offset + index) for index in outer.ravel().tolist()]).reshape(outer.shape)
    # A layout is the sum of its modes: rows and columns add up.
    rows = _numbers(layout, [layout(row) for row in range(height)])
    columns = _numbers(layout, [layout(column * height) for column in range(width)])
    return rows[:, None] + columns[None, :]


def _numbers(layout: AnyLayout, offsets: list[Any]) -> Numbers:
    if any(not isinstance(offset, int) for offset in offsets):
        raise LayoutError(f"{layout} does not map to plain offsets")
    if any(abs(offset) >= _OFFSET_END for offset in offsets):
        raise LayoutError(f"{layout} has offsets of {_OFFSET_END} and more, which are not drawn")
    return np.array(offsets, np.int64)


def _axes(shape: Any) -> tuple[Any, Any]:
    """The shapes of rows and columns; () for a missing one."""
    if not isinstance(shape, tuple):
        return (), shape
    if len(shape) < 2:
        return (), shape[0] if shape else ()
    return shape[0], shape[1] if len(shape) == 2 else tuple(shape[1:])


def _leaves(shape: Any) -> list[int]:
    return list(flatten(shape)) if isinstance(shape, tuple) else [shape]


def _names(shape: Any) -> list[str]:
    axis = make_layout(shape)
    return [str(idx2crd(i, axis)) for i in range(prod(_leaves(shape)))]


def _digits(extents: list[int], count: int) -> Iterator[Numbers]:
    """The leaves of the coordinates that count to 0, 1, ..., count - 1."""
    numbers = np.arange(count)
    for extent in extents:
        yield numbers % extent
        numbers = numbers // extent


def _levels(extents: list[int], cells: int) -> dict[int, bool]:
    """The start of each tile along an axis with these leaves, and whether the tile is an outermost one."""
    tiles = sorted({tile for tile in accumulate(extents, mul) if 1 < tile < cells})
    return {at: at % tiles[-1] == 0 for tile in tiles for at in range(tile, cells, tile)}
