"""The cells inside an outline, as a person sees them."""

from __future__ import annotations

from typing import Any

import numpy as np


def outlined(trace: Any, shape: tuple[int, int]) -> np.ndarray:
    """As booleans: a cell is inside if an odd number of edges is to the left of it."""
    xs, ys = list(trace.x), list(trace.y)
    edges = [(xs[i], ys[i], xs[i + 1], ys[i + 1]) for i in range(0, len(xs), 3)]
    upright = [(x0, min(y0, y1), max(y0, y1)) for x0, y0, x1, y1 in edges if x0 == x1]
    inside = [
        [sum(x < column and low < row < high for x, low, high in upright) % 2 for column in range(shape[1])]
        for row in range(shape[0])
    ]
    return np.array(inside, bool)
