"""Colours and names of units and stalls. A stall has the colour of what is waited for, paler and lower than work.

The colours are told apart by most of those who see fewer (Okabe and Ito, "Color universal design"); names stand beside.
"""

from __future__ import annotations

from flydsl.simulator.timing import Stall, Unit
from flydsl.simulator.timing.advice import REASON_NAMES, UNIT_NAMES
from workbench.kit.html import PAPER

UNIT_COLORS = {
    Unit.SCALAR: "#999999",
    Unit.VALU: "#3a8fd0",
    Unit.TRANSCENDENTAL: "#56c5e9",
    Unit.MATRIX: "#00a878",
    Unit.LDS: "#e69f00",
    Unit.VECTOR_MEMORY: "#d687b4",
    Unit.SCALAR_MEMORY: "#a98bd6",
    Unit.BRANCH: "#c08a4a",
    Unit.MESSAGE: "#b5b5b5",
}
REASON_COLORS = {
    Stall.NONE: "#b5b5b5",
    Stall.DEPENDENCY: "#3a8fd0",
    Stall.WAIT_VECTOR_MEMORY: "#d687b4",
    Stall.WAIT_LDS: "#e69f00",
    Stall.WAIT_SCALAR: "#a98bd6",
    Stall.LDS_BUSY: "#b07a00",
    Stall.MATRIX_BUSY: "#00a878",
    Stall.MEMORY_BUSY: "#a34d80",
    Stall.BARRIER: "#d55e00",
    Stall.NO_SLOT: "#777777",
    Stall.INSTRUCTION_FETCH: "#8a5a20",
    Stall.SIGNAL: "#cc3311",
}
SHORT_REASONS = {
    Stall.NONE: "",
    Stall.DEPENDENCY: "dependency",
    Stall.WAIT_VECTOR_MEMORY: "memory wait",
    Stall.WAIT_LDS: "LDS wait",
    Stall.WAIT_SCALAR: "scalar wait",
    Stall.LDS_BUSY: "LDS busy",
    Stall.MATRIX_BUSY: "matrix busy",
    Stall.MEMORY_BUSY: "memory busy",
    Stall.BARRIER: "barrier",
    Stall.NO_SLOT: "other wave",
    Stall.INSTRUCTION_FETCH: "fetch",
    Stall.SIGNAL: "signal",
}
"""For columns of tables."""

__all__ = ["REASON_COLORS", "REASON_NAMES", "SHORT_REASONS", "UNIT_COLORS", "UNIT_NAMES", "pale"]


def pale(color: str, part: float = 0.45) -> str:
    """A colour on paper, faded to a part of it.

    >>> pale("#000000", 0.5)
    '#808080'
    """
    pairs = zip(_channels(color), _channels(PAPER), strict=True)
    return "#" + "".join(f"{round(part * ink + (1 - part) * paper):02x}" for ink, paper in pairs)


def _channels(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color.removeprefix("#")))
