"""Bytes of LDS that operations under way will write or have yet to read."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.arrays import Array

_CELL_BYTES = 4


class Cells:
    """For each dword of LDS, the number of an operation that uses it, 0 for none; of several, the last one."""

    def __init__(self, lds_bytes: int) -> None:
        self._operation = np.zeros(-(-lds_bytes // _CELL_BYTES) + 1, np.int32)
        self._is_empty = True

    def mark(self, offsets: Array, size: int, operation: int) -> None:
        self._operation[dwords(offsets, size)] = operation
        self._is_empty = False

    def clear(self, offsets: Array, size: int, operation: int) -> None:
        """Forget an operation where it is still the last one."""
        cells = dwords(offsets, size)
        self._operation[cells] = np.where(self._operation[cells] == operation, 0, self._operation[cells])

    def find(self, offsets: Array, size: int) -> Array | None:
        """For each access the number of an operation that uses a dword of it; None if there is none at all."""
        if self._is_empty:
            return None
        found = self._operation[dwords(offsets, size)].max(axis=1)
        return found if found.any() else None


def dwords(offsets: Array, size: int) -> Array:
    """(n, dwords): the numbers of those that n accesses touch, however they lie; the last may be one too many."""
    first = offsets >> 2
    count = (size + 2) // _CELL_BYTES + 1 if ((offsets | size) & 3).any() else max(size // _CELL_BYTES, 1)
    return np.asarray(first[:, None] + np.arange(count))
