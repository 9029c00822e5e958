"""The bytes of LDS that have been written."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.arrays import Array


class LdsHistory:
    """The written bytes of LDS, for all workgroups of a batch, one after the other.

    Each has `lds_bytes` that begin `stride` after another's. What is beyond, of the last dword, needs no write.
    """

    def __init__(self, workgroups: int, lds_bytes: int, stride: int) -> None:
        written = np.zeros((workgroups, stride), np.bool_)
        written[:, lds_bytes:] = True
        self._written = written.ravel()

    def unwritten(self, places: Array) -> tuple[int, int] | None:
        """The first of (elements, bytes) places that was never written, as (element, byte); or None."""
        missing = ~self._written[places]
        if not missing.any():
            return None
        element = int(missing.any(axis=1).argmax())
        return element, int(missing[element].argmax())

    def mark_written(self, places: Array) -> None:
        self._written[places] = True
