"""Data-parallel primitives: the lane from which each lane takes its first operand (ISA, "DPP")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flydsl.hsaco.operands import Modifiers
from flydsl.simulator.arrays import Array
from flydsl.simulator.waves import LANES

_LANE = np.arange(LANES)
_ROW_START = _LANE & ~15


@dataclass(frozen=True)
class LanePattern:
    """For each of 64 lanes: its source lane, whether that lane exists, and whether the masks let it be written.

    bound_control: a lane without a source reads 0; otherwise it is not written.
    """

    source: Array
    in_range: Array
    enabled: Array
    bound_control: bool


def lane_pattern(modifiers: Modifiers) -> LanePattern:
    """The lane pattern of a DPP control. NotImplementedError for a control that gfx9 does not have."""
    source, in_range = _source(modifiers)
    row_mask, bank_mask = modifiers.integer("row_mask", 15), modifiers.integer("bank_mask", 15)
    enabled = ((row_mask >> (_LANE // 16)) & 1 & (bank_mask >> (_LANE % 16 // 4))).astype(np.bool_)
    return LanePattern(np.where(in_range, source, 0), in_range, enabled, "bound_ctrl" in modifiers.values)


def _source(modifiers: Modifiers) -> tuple[Array, Array]:
    values = modifiers.values
    everywhere = np.ones(LANES, np.bool_)
    if "quad_perm" in values:
        return (_LANE & ~3) + np.array(modifiers.bits("quad_perm", 4))[_LANE & 3], everywhere
    if "row_mirror" in values:
        return _ROW_START + 15 - (_LANE & 15), everywhere
    if "row_half_mirror" in values:
        return (_LANE & ~7) + 7 - (_LANE & 7), everywhere
    if "row_newbcast" in values:
        return _ROW_START + modifiers.integer("row_newbcast"), everywhere
    if "row_bcast" in values:
        return _row_broadcast(modifiers.integer("row_bcast"))
    for name, direction in (("shl", 1), ("shr", -1), ("ror", -1), ("rol", 1)):
        if f"row_{name}" in values:
            return _shifted(direction * modifiers.integer(f"row_{name}"), 16, wraps=name.startswith("ro"))
        if f"wave_{name}" in values:
            return _shifted(direction * modifiers.integer(f"wave_{name}"), LANES, wraps=name.startswith("ro"))
    raise NotImplementedError(f"DPP control {sorted(values)}")


def _shifted(distance: int, span: int, *, wraps: bool) -> tuple[Array, Array]:
    """From `distance` lanes further on, within spans of that many lanes."""
    start, position = _LANE & ~(span - 1), (_LANE & (span - 1)) + distance
    inside = (position >= 0) & (position < span)
    return start + position % span, inside | wraps


def _row_broadcast(lane: int) -> tuple[Array, Array]:
    """row_bcast:15 gives each row the last lane of the row before, row_bcast:31 rows 2 and 3 lane 31."""
    if lane == 15:
        return np.maximum(_ROW_START - 1, 0), _LANE >= 16
    return np.full(LANES, 31), _LANE >= 32
