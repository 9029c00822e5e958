"""The outline of cells: the edges between those that are lit and all others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.layouts.grid import Numbers


def outline(lit: Numbers) -> Iterator[tuple[float, float, float, float]]:
    """Each edge from x, y to x, y, where cell (row, column) has its middle at (column, row). lit: booleans.

    >>> list(outline(np.array([[False, True]])))
    [(0.5, -0.5, 1.5, -0.5), (0.5, 0.5, 1.5, 0.5), (0.5, -0.5, 0.5, 0.5), (1.5, -0.5, 1.5, 0.5)]
    """
    padded = np.pad(lit, 1)
    for y, x in np.argwhere(padded[1:, 1:-1] != padded[:-1, 1:-1]).tolist():
        yield x - 0.5, y - 0.5, x + 0.5, y - 0.5
    for y, x in np.argwhere(padded[1:-1, 1:] != padded[1:-1, :-1]).tolist():
        yield x - 0.5, y - 0.5, x - 0.5, y + 0.5
