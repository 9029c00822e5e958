"""The bytes that accesses store, or that memory has at their places: looked at where a race turns on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.checked.access_history import AccessHistory
from flydsl.simulator.lockstep.memory import Request


class Stored:
    """The bytes that selected lanes of an access store."""

    def __init__(self, values: Sequence[Array], shape: tuple[int, int], request: Request, size: int) -> None:
        assert request.lanes is not None
        self._values, self._shape, self._lanes, self._size = values, shape, request.lanes, size

    def __call__(self, chosen: Array) -> Array:
        lanes = self._lanes[chosen]
        dwords = [np.broadcast_to(value, self._shape).reshape(-1)[lanes] for value in self._values]
        words = np.stack(dwords, axis=1)
        if words.dtype.itemsize < 4:
            words = words.astype(np.uint32)
        return np.ascontiguousarray(words).view(np.uint8).reshape(lanes.size, -1)[:, : self._size]


class Present:
    """The bytes that memory has at the places of some accesses."""

    def __init__(self, history: AccessHistory, offsets: Array, size: int) -> None:
        self._history, self._offsets, self._size = history, offsets, size

    def __call__(self, chosen: Array) -> Array:
        return np.stack([self._history.bytes_at(int(offset), self._size) for offset in self._offsets[chosen]])


def in_units(
    places: Array, content: Array, base: int, wave: int, *, is_write: bool
) -> tuple[Request, Array, Callable[[Array], Array]]:
    """Bytes that a wave accesses as a request, of dwords where they are whole, the offsets, and what is stored there.

    base: is taken off an offset for the address.
    """
    dwords = places.reshape(-1, 4) if places.size % 4 == 0 else places[:0].reshape(-1, 4)
    is_whole = dwords.size and not (dwords[:, 0] % 4).any() and (dwords[:, 3] - dwords[:, 0] == 3).all()
    size = 4 if is_whole else 1
    offsets, values = places[::size], content.reshape(-1, size)
    request = Request((offsets - base).astype(np.uint64), None, size, 2, is_write, wave)
    return request, offsets, lambda chosen: values[chosen]
