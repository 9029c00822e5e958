"""Coordinates and indices of static layouts, computed with shifts and masks where an extent is a power of two.

    row, column = idx2crd(thread, (32, 8))
    offset = crd2idx((row, column), (pitch, 16))

The layout algebra of `fx` does the same for any layout. These functions are for sizes of a kernel's own tiles, where
they leave one or two instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernels.kernels_common import power_of_two


def divide(number: Any, divisor: int) -> Any:
    """number // divisor, for a number that is not negative."""
    return number >> (divisor.bit_length() - 1) if power_of_two(divisor) == divisor else number // divisor


def remainder(number: Any, divisor: int) -> Any:
    """number % divisor, for a number that is not negative."""
    return number & (divisor - 1) if power_of_two(divisor) == divisor else number % divisor


def idx2crd(index: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """The coordinates of a row-major index, the last one fastest. The first extent does not bound its coordinate.

    >>> idx2crd(13, (4, 2, 3))
    (2, 0, 1)
    """
    coordinates = []
    for extent in reversed(shape[1:]):
        coordinates.append(remainder(index, extent))
        index = divide(index, extent)
    return (index, *reversed(coordinates))


def crd2idx(coordinates: Sequence[Any], stride: Sequence[int]) -> Any:
    """The sum of the coordinates times their strides.

    >>> crd2idx((2, 0, 1), (6, 3, 1))
    13
    """
    return sum(coordinate * step for coordinate, step in zip(coordinates, stride, strict=True))


def get(coordinates: Sequence[Any], mode: int) -> Any:
    """One coordinate."""
    return coordinates[mode]


def swizzled_blocks(block: Any, blocks: Any, columns: int, group: int, dies: int = 8) -> tuple[Any, Any]:
    """(row, column) of a workgroup's tile such that workgroups of one die share rows and columns in its cache.

    Workgroups go to the dies in turn. A die takes consecutive tiles; they walk `group` rows of tiles column by column.
    block: the workgroup's number; blocks: how many there are, which must be a multiple of `dies` for the first step.
    """
    full = divide(blocks, dies) * dies
    moved = remainder(block, dies) * divide(blocks, dies) + divide(block, dies)
    block = (block < full).select(moved, block)
    rows = blocks // columns
    first = block // (group * columns) * group
    height = (rows - first < group).select(rows - first, group)
    inside = block % (group * columns)
    return first + inside % height, inside // height
