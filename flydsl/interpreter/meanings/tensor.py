"""The meaning of the tensor data mover's copies (gfx1250): one tile for each wave, as its descriptor says."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.location import source_location
from flydsl.errors import SimulatorError
from flydsl.interpreter.elements import Array
from flydsl.interpreter.execution import Execution, NotInterpreted, means
from flydsl.interpreter.memory import Outside
from flydsl.simulator.memory.tensor_descriptor import BadField, Tile, tile_of

_WORDS = 20


@means(
    "rocdl.tensor.load.to.lds", "rocdl.tensor.load.to.lds.d2", "rocdl.tensor.store.from.lds",
    "rocdl.tensor.store.from.lds.d2",
)  # fmt: skip
def _copy_tiles(x: Execution, op: ir.Operation, *groups: Array) -> None:
    """Copy the tile of each wave that has an active lane; the words of a descriptor are the same in all its lanes."""
    is_load, active = ".load." in op.name, x.by_waves(x.mask)
    given = [x.by_waves(group) for group in groups]
    for wave in np.flatnonzero(active.any(axis=1)):
        lane = int(active[wave].argmax())
        words = [int(word) & 0xFFFFFFFF for group in given for word in group[wave, lane]]
        _copy_tile(x, op, [*words, *[0] * (_WORDS - len(words))], int(wave) * x.wave_size + lane, is_load=is_load)


def _copy_tile(x: Execution, op: ir.Operation, words: list[int], lane: int, *, is_load: bool) -> None:
    at = source_location(op.location)
    try:
        tile = tile_of(words, is_load=is_load)
    except BadField as error:
        raise SimulatorError(f"lane {lane + x.first_lane} copies a tile: {error}", at=at) from None
    if tile is None:
        return
    if tile.barrier is not None:
        raise NotInterpreted(
            "the interpreter has no barriers in LDS at which copies arrive", at=at, hint="run the kernel compiled"
        )
    x.stores += 1
    for elements in np.unique(tile.elements).tolist():
        rows = np.flatnonzero(tile.elements == elements)
        _copy_rows(x, tile, rows, int(elements), lane, is_load=is_load)


def _copy_rows(x: Execution, tile: Tile, rows: Array, elements: int, lane: int, *, is_load: bool) -> None:
    """Copy rows of which only some elements are in the tensor; the others are 0 in LDS."""
    size, everywhere = elements * tile.element_bytes, np.ones(len(rows), np.bool_)

    def fault(_: int, what: Outside) -> SimulatorError:
        return x.fault(lane, what)

    places = _in_lds(x, tile.lds_offsets(rows, tile.width if is_load else elements), lane, is_load=is_load)
    addresses = tile.addresses[rows].astype(np.int64)
    if not is_load:
        if size:
            x.memory.store(addresses, x.shared.data[places], everywhere, fault)
        return
    data = np.zeros((len(rows), tile.width * tile.element_bytes), np.uint8)
    if size:
        data[:, :size] = x.memory.load(addresses, size, everywhere, fault)
    x.shared.data[places] = data


def _in_lds(x: Execution, places: Any, lane: int, *, is_load: bool) -> Array:
    """Addresses in LDS, which must be ones of the workgroup."""
    if places.size and not x.shared.holds(int(places.min()), int(places.max()) + 1):
        start, size = int(places.min()), int(places.max()) + 1 - int(places.min())
        problem = f"of a tile outside of the workgroup's LDS: address {start:#x}"
        raise x.fault(lane, Outside(is_load, size, problem, "lds", start))
    found: Array = places
    return found
