"""Data-parallel primitives: the lane from which each lane takes its first operand (ISA, "DPP")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flydsl.hsaco.operands import Modifiers
from flydsl.simulator.arrays import Array

_ROW = 16


@dataclass(frozen=True)
class LanePattern:
    """For each lane of a wave: its source lane, whether that lane exists, and whether the masks let it be written.

    bound_control: a lane without a source reads 0; otherwise it is not written. fetches_inactive: lanes that are not
    active are sources, too.
    """

    source: Array
    in_range: Array
    enabled: Array
    bound_control: bool
    fetches_inactive: bool = False


def lane_pattern(modifiers: Modifiers, lanes: int) -> LanePattern:
    """The lane pattern of a DPP control in a wave of this size. NotImplementedError for an unknown control."""
    lane = np.arange(lanes)
    source, in_range = _source(modifiers, lane)
    row_mask, bank_mask = modifiers.integer("row_mask", 15), modifiers.integer("bank_mask", 15)
    enabled = ((row_mask >> (lane // _ROW)) & 1 & (bank_mask >> (lane % _ROW // 4))).astype(np.bool_)
    zero_bound = modifiers.flag("bound_ctrl") or "dpp8" in modifiers.values
    return LanePattern(np.where(in_range, source, 0), in_range, enabled, zero_bound, modifiers.flag("fi"))


def _source(modifiers: Modifiers, lane: Array) -> tuple[Array, Array]:
    values = modifiers.values
    everywhere = np.ones(lane.size, np.bool_)
    row, place = lane & ~(_ROW - 1), lane & (_ROW - 1)
    if "dpp8" in values:
        return (lane & ~7) + np.array(modifiers.bits("dpp8", 8))[lane & 7], everywhere
    if "quad_perm" in values:
        return (lane & ~3) + np.array(modifiers.bits("quad_perm", 4))[lane & 3], everywhere
    if "row_mirror" in values:
        return row + 15 - place, everywhere
    if "row_half_mirror" in values:
        return (lane & ~7) + 7 - (lane & 7), everywhere
    for name in ("row_newbcast", "row_share"):
        if name in values:
            return row + modifiers.integer(name), everywhere
    if "row_xmask" in values:
        return row + (place ^ modifiers.integer("row_xmask")), everywhere
    if "row_bcast" in values:
        return _row_broadcast(modifiers.integer("row_bcast"), lane)
    for name, direction in (("shl", 1), ("shr", -1), ("ror", -1), ("rol", 1)):
        if f"row_{name}" in values:
            return _shifted(lane, direction * modifiers.integer(f"row_{name}"), _ROW, wraps=name.startswith("ro"))
        if f"wave_{name}" in values:
            return _shifted(lane, direction * modifiers.integer(f"wave_{name}"), lane.size, wraps=name.startswith("ro"))
    raise NotImplementedError(f"DPP control {sorted(values)}")


def _shifted(lane: Array, distance: int, span: int, *, wraps: bool) -> tuple[Array, Array]:
    """From `distance` lanes further on, within spans of that many lanes."""
    start, position = lane & ~(span - 1), (lane & (span - 1)) + distance
    inside = (position >= 0) & (position < span)
    return start + position % span, inside | wraps


def _row_broadcast(last: int, lane: Array) -> tuple[Array, Array]:
    """row_bcast:15 gives each row the last lane of the row before, row_bcast:31 rows 2 and 3 lane 31."""
    if last == 15:
        return np.maximum((lane & ~(_ROW - 1)) - 1, 0), lane >= 16
    return np.full(lane.size, 31), lane >= 32
