"""Gaps of a view: memory between its first and its last byte that belongs to none of its elements.

A view of some columns of a matrix has gaps between its rows. They belong to other tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flydsl.simulator.arrays import Array


class Rows(NamedTuple):
    """Runs of extent_bytes whose starts are stride_bytes apart; the rest of each stride is a gap."""

    stride_bytes: int
    extent_bytes: int


@lru_cache
def rows_of(shape: tuple[int, ...], strides: tuple[int, ...], element_bytes: int) -> tuple[Rows, ...]:
    """The rows that the elements of a view form, from the longest to the innermost; empty for a view without gaps.

    strides are in elements. A gap that other elements of an overlapping view may fill does not count.

    >>> rows_of((4, 32), (64, 1), 4)
    (Rows(stride_bytes=256, extent_bytes=128),)
    >>> rows_of((4, 32), (1, 4), 4)
    ()
    """
    modes = sorted((stride * element_bytes, n) for n, stride in zip(shape, strides, strict=True) if n > 1 and stride)
    rows: list[Rows] = []
    extent = element_bytes
    for stride, n in modes:
        if stride < extent:
            rows.clear()
        elif rows or stride > extent:
            rows.append(Rows(stride, extent))
        extent += (n - 1) * stride
    return tuple(reversed(rows))


def touches_gap(offsets: Array, size: int, rows: Sequence[Rows]) -> Array:
    """For each offset from the start of a view: True if an access of `size` bytes there touches a gap."""
    touching = np.zeros(offsets.shape, np.bool_)
    for stride, extent in rows:
        offsets = offsets % stride
        touching |= offsets + size > extent
    return touching
