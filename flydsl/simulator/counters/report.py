"""The counters of a launch as users read them: by line of the ISA, by line of the source, in total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import mfma_cycles, mfma_operations, valu_cycles, valu_operations
from flydsl.errors import SourceLocation
from flydsl.simulator.counters.instruction_class import (
    CLASSES,
    VECTOR_CLASSES,
    instruction_class,
    lds_operation,
    scalar_load_bytes,
)
from flydsl.simulator.counters.raw import FIELDS, LINE_BYTES, Array
from flydsl.simulator.waves import LANES

if TYPE_CHECKING:
    from flydsl.simulator.counters.roofline import Roofline
    from flydsl.simulator.dispatch import Dim3, LaunchStatistics
    from flydsl.simulator.program import Instruction, Program


@dataclass(frozen=True)
class Counts:
    """What instructions did, summed over waves. Add two to have them together.

    by_class: wave-instructions of each class of `instruction_class.CLASSES` that occurred.
    vector_executions, active_lanes: executions of vector instructions, and the lanes that were active in them.
    global_bytes: what lanes read, wrote or changed in global memory; global_lines: distinct lines of 64 bytes of each
    access of a wave. scalar_bytes: what SMEM loaded. scratch_bytes, lds_bytes: of each lane, too.
    lds_passes: cycles for which accesses held the LDS; lds_conflicts: those of them due to bank conflicts;
    lds_max_ways: the most in one phase. lds_unknown: accesses in neither, whose rule nobody has published.
    mfma_cycles, valu_cycles: of a SIMD, from published costs; mfma_unknown, valu_unknown: executions in neither.
    mfma_operations: multiplications and additions in matrix instructions. valu_operations: those of floats in the
    active lanes of vector instructions.
    """

    by_class: dict[str, int] = field(default_factory=dict)
    vector_executions: int = 0
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
        """The part of the lanes that was active in vector instructions; None without any."""
        return self.active_lanes / (LANES * self.vector_executions) if self.vector_executions else None

    @property
    def line_utilization(self) -> float | None:
        """Bytes of global memory that lanes asked for, per byte of the lines they lie in; None without any.

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
    """Counts of one instruction. isa_line: its line in the listing, from 1; location: in the source, where known."""

    text: str = ""
    isa_line: int = 0
    location: SourceLocation | None = None


@dataclass(frozen=True, repr=False)
class LaunchCounters:
    """What a launch did. Its repr is a table.

    kernel, grid, block: as launched. statistics: what `launch` returns. counts: of each instruction of the program,
    as `counters.raw` describes.
    """

    kernel: str
    grid: Dim3
    block: Dim3
    statistics: LaunchStatistics
    program: Program
    counts: Array

    @cached_property
    def by_line(self) -> dict[int, LineCounts]:
        """The instructions that were executed, by their line in the listing."""
        raws = (dict(zip(FIELDS, record, strict=True)) for record in self.counts.tolist())
        counted = zip(self.program.instructions, raws, strict=True)
        return {i.listed.line: _line_counts(self.program.arch, i, raw) for i, raw in counted if raw["executions"]}

    @cached_property
    def by_source_line(self) -> dict[SourceLocation, Counts]:
        """By line of the source, columns left out. What has no source line is in `totals` alone."""
        found: dict[SourceLocation, list[Counts]] = {}
        for line in self.by_line.values():
            if line.location is not None:
                found.setdefault(SourceLocation(line.location.file, line.location.line), []).append(line)
        ordered = sorted(found, key=lambda location: (location.file, location.line))
        return {location: _sum(found[location]) for location in ordered}

    @cached_property
    def totals(self) -> Counts:
        """Of the whole launch."""
        return _sum(self.by_line.values())

    def roofline(self) -> Roofline:
        """An estimate of the time on the GPU. ArchError for an architecture whose peak figures are not known."""
        from flydsl.simulator.counters.roofline import roofline

        workgroups = self.grid[0] * self.grid[1] * self.grid[2]
        return roofline(self.program.arch, self.totals, workgroups, self.statistics.waves)

    def unknown(self) -> list[str]:
        """What the counters leave out, in sentences."""
        totals, name = self.totals, self.program.arch.name
        sentences = []
        for count, what, group in (
            (totals.lds_unknown, "LDS accesses are left out of passes and conflicts", "LDS"),
            (totals.mfma_unknown, "matrix instructions are left out of MFMA cycles", "MFMA"),
            (totals.valu_unknown, "vector instructions are left out of VALU cycles", "VALU"),
        ):
            if count:
                names = ", ".join(self._unknown_mnemonics(group))
                sentences.append(f"{count} {what}, what they cost on {name} is not published: {names}")
        return sentences

    def _unknown_mnemonics(self, group: str) -> list[str]:
        lines = (line for line in self.by_line.values() if line.lds_unknown + line.mfma_unknown + line.valu_unknown)
        return sorted({line.text.split()[0] for line in lines if group in line.by_class})

    def __repr__(self) -> str:
        from flydsl.simulator.counters.table import launch_table

        return launch_table(self)


def _sum(counts: Iterable[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total += one
    return total


def _line_counts(arch: Arch, instruction: Instruction, raw: dict[str, int]) -> LineCounts:
    kind, executions = instruction_class(instruction.mnemonic), raw["executions"]
    counts: dict[str, int] = {name: raw[name] for name in ("global_bytes", "global_lines", "scratch_bytes")}
    counts["scalar_bytes"] = executions * scalar_load_bytes(instruction.mnemonic)
    if kind in VECTOR_CLASSES:
        ignores_exec = instruction.semantics is not None and instruction.semantics.ignores_exec
        counts["vector_executions"] = executions
        counts["active_lanes"] = LANES * executions if ignores_exec else raw["active_lanes"]
    counts |= _lds_counts(arch, instruction, raw)
    counts |= _cycles(arch, kind, instruction.mnemonic, executions)
    if kind == "MFMA":
        counts["mfma_operations"] = executions * mfma_operations(instruction.mnemonic)
    elif kind == "VALU":
        counts["valu_operations"] = counts["active_lanes"] * valu_operations(instruction.mnemonic)
    listed = instruction.listed
    return LineCounts({kind: executions}, text=listed.text, isa_line=listed.line, location=listed.location, **counts)


def _lds_counts(arch: Arch, instruction: Instruction, raw: dict[str, int]) -> dict[str, int]:
    passes, bytes_ = raw["lds_passes"], raw["lds_bytes"]
    is_known = lds_operation(arch, instruction.mnemonic) is not None
    unknown = raw["lds_uncounted"] if is_known else raw["executions"] * (bytes_ > 0)
    return {
        "lds_bytes": bytes_,
        "lds_passes": passes,
        "lds_conflicts": passes - raw["lds_phases"],
        "lds_max_ways": raw["lds_max_ways"],
        "lds_unknown": unknown,
    }


def _cycles(arch: Arch, kind: str, mnemonic: str, executions: int) -> dict[str, int]:
    if kind not in ("MFMA", "VALU"):
        return {}
    name, cost = ("mfma", mfma_cycles(arch, mnemonic)) if kind == "MFMA" else ("valu", valu_cycles(arch, mnemonic))
    return {f"{name}_unknown": executions} if cost is None else {f"{name}_cycles": cost * executions}
