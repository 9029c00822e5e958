"""Counts of executed instructions, summed over waves: of one instruction, of a line, of a launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from flydsl.errors import SourceLocation
from flydsl.simulator.counters.instruction_class import CLASSES
from flydsl.simulator.counters.raw import LINE_BYTES


@dataclass(frozen=True)
class Counts:
    """Counts of executed instructions, summed over waves. `+` adds two of them.

    by_class: wave-instructions of each class of `instruction_class.CLASSES` that occurred.
    vector_executions, vector_lanes, active_lanes: executions of vector instructions, the lanes that their waves have,
    and those that were active in them.
    global_bytes: what lanes read, wrote or changed in global memory; global_lines: distinct lines of 64 bytes of each
    access of a wave. scalar_bytes: what SMEM loaded. scratch_bytes, lds_bytes: of each lane, too.
    lds_passes: cycles for which accesses held the LDS; lds_conflicts: those of them due to bank conflicts;
    lds_max_ways: the most in one phase. lds_unknown: accesses in neither, whose rule is not published.
    mfma_cycles, valu_cycles: of a SIMD, from published costs; mfma_unknown, valu_unknown: executions in neither.
    mfma_operations: multiplications and additions in matrix instructions. valu_operations: those of floats in the
    active lanes of vector instructions.
    """

    by_class: dict[str, int] = field(default_factory=dict)
    vector_executions: int = 0
    vector_lanes: int = 0
    active_lanes: int = 0
    global_bytes: int = 0
    global_lines: int = 0
    scalar_bytes: int = 0
    scratch_bytes: int = 0
    lds_bytes: int = 0
    lds_passes: int = 0
    lds_conflicts: int = 0
    lds_max_ways: int = 0
    lds_unknown: int = 0
    mfma_cycles: int = 0
    mfma_operations: int = 0
    mfma_unknown: int = 0
    valu_cycles: int = 0
    valu_unknown: int = 0
    valu_operations: int = 0

    @property
    def executions(self) -> int:
        """Wave-instructions of all classes."""
        return sum(self.by_class.values())

    @property
    def lane_utilization(self) -> float | None:
        """The fraction of lanes that were active in vector instructions; None without any."""
        return self.active_lanes / self.vector_lanes if self.vector_lanes else None

    @property
    def line_utilization(self) -> float | None:
        """Bytes of global memory that lanes accessed, per byte of the lines they lie in; None without any.

        Above 1 where lanes of one access want the same bytes.
        """
        return self.global_bytes / (LINE_BYTES * self.global_lines) if self.global_lines else None

    def __add__(self, other: Counts) -> Counts:
        by_class = {name: self.by_class.get(name, 0) + other.by_class.get(name, 0) for name in CLASSES}
        numbers = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        numbers["lds_max_ways"] = max(self.lds_max_ways, other.lds_max_ways)
        return Counts({name: count for name, count in by_class.items() if count}, **numbers)


_NUMBERS = tuple(f.name for f in fields(Counts) if f.name != "by_class")


@dataclass(frozen=True)
class LineCounts(Counts):
    """Counts of one instruction. isa_line: its line in the listing, from 1; location: its source location, if known."""

    text: str = ""
    isa_line: int = 0
    location: SourceLocation | None = None


def total_counts(counts: Iterable[Counts]) -> Counts:
    """The sum of all the counts."""
    total = Counts()
    for one in counts:
        total += one
    return total
