"""The counters of a launch as users read them: by line of the ISA, by line of the source, in total."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import mfma_cycles, mfma_operations, valu_cycles, valu_operations
from flydsl.errors import ArchError, SourceLocation
from flydsl.errors.missing_attributes import Explained
from flydsl.simulator.arrays import Array
from flydsl.simulator.counters.counts import Counts, LineCounts, total_counts
from flydsl.simulator.counters.instruction_class import (
    VECTOR_CLASSES,
    instruction_class,
    lds_operation,
    scalar_load_bytes,
)
from flydsl.simulator.counters.raw import FIELDS
from flydsl.simulator.counters.roofline import Roofline, roofline
from flydsl.simulator.counters.table import launch_table, totals_text
from flydsl.simulator.estimates import Estimate

if TYPE_CHECKING:
    from flydsl.arch.launch_limits import Dim3
    from flydsl.simulator.decoding.program import Instruction, Program
    from flydsl.simulator.dispatch import LaunchStatistics
    from flydsl.simulator.timing.trace import Trace


@dataclass(frozen=True, repr=False)
class LaunchCounters(Explained):
    """The counters of one launch. Its repr is a table.

    kernel, grid, block: as launched. statistics: what `launch` returns. counts: of each instruction of the program,
    as `counters.raw` describes. trace: of a launch inside `tracing(execute=True)`, too; untimed: why it has none there.
    lds_bytes: of a workgroup, with what the launch adds.
    """

    kernel: str
    grid: Dim3
    block: Dim3
    statistics: LaunchStatistics
    program: Program
    counts: Array
    trace: Trace | None = None
    untimed: str = ""
    lds_bytes: int = 0

    @cached_property
    def by_line(self) -> dict[int, LineCounts]:
        """The counts of the executed instructions, by their line in the listing."""
        raws = (dict(zip(FIELDS, record, strict=True)) for record in self.counts.tolist())
        counted = zip(self.program.instructions, raws, strict=True)
        return {i.listed.line: _line_counts(self.program.arch, i, raw) for i, raw in counted if raw["executions"]}

    @cached_property
    def by_source_line(self) -> dict[SourceLocation, Counts]:
        """The counts by source line, ignoring columns. Instructions without a source line are in `totals` only."""
        found: dict[SourceLocation, list[Counts]] = {}
        for line in self.by_line.values():
            if line.location is not None:
                found.setdefault(replace(line.location, column=None, end_column=None), []).append(line)
        ordered = sorted(found, key=lambda location: (location.file, location.line))
        return {location: total_counts(found[location]) for location in ordered}

    @cached_property
    def totals(self) -> Counts:
        """The counts of the whole launch."""
        return total_counts(self.by_line.values())

    @property
    def estimate(self) -> Estimate | None:
        """The time on the GPU by the model of time; None for a launch without a trace."""
        return None if self.trace is None else self.trace.estimate

    def roofline(self) -> Roofline:
        """The time that each resource needs at its peak rate. ArchError for an architecture without known peaks."""
        workgroups = self.grid[0] * self.grid[1] * self.grid[2]
        return roofline(self.program.arch, self.totals, workgroups, self.statistics.waves)

    @property
    def heading(self) -> str:
        """The kernel and how it was launched."""
        return f"{self.kernel}: grid {self.grid}, block {self.block}, {self.statistics.waves} waves"

    def summary(self) -> list[str]:
        """The totals, the estimate, the roofline and what is unknown, as lines of text."""
        return [self.heading, *totals_text(self.totals), *self._times(), *self.unknown()]

    def _times(self) -> Iterator[str]:
        yield self.estimate_text
        try:
            yield str(self.roofline())
        except ArchError as reason:
            yield f"no roofline: {reason.message}"

    @property
    def estimate_text(self) -> str:
        """The estimated time in a sentence, or why there is none."""
        if self.estimate is not None:
            return f"estimated time: {self.estimate} ({self.estimate.meaning})"
        return f"no estimate of the time: {self.untimed or 'it is made inside `tracing(execute=True)`'}"

    def unknown(self) -> list[str]:
        """Sentences that name what the counters leave out."""
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
        return launch_table(self.summary(), self.by_line.values())


def _line_counts(arch: Arch, instruction: Instruction, raw: dict[str, int]) -> LineCounts:
    kind, executions = instruction_class(instruction.mnemonic), raw["executions"]
    counts: dict[str, int] = {name: raw[name] for name in ("global_bytes", "global_lines", "scratch_bytes")}
    counts["scalar_bytes"] = executions * scalar_load_bytes(instruction.mnemonic)
    if kind in VECTOR_CLASSES:
        ignores_exec = instruction.semantics is not None and instruction.semantics.ignores_exec
        counts["vector_executions"] = executions
        counts["vector_lanes"] = instruction.wave_size * executions
        counts["active_lanes"] = counts["vector_lanes"] if ignores_exec else raw["active_lanes"]
    counts |= _lds_counts(arch, instruction, raw)
    counts |= _cycles(arch, kind, instruction, executions)
    if kind == "MFMA":
        counts["mfma_operations"] = executions * mfma_operations(instruction.table_name)
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


def _cycles(arch: Arch, kind: str, instruction: Instruction, executions: int) -> dict[str, int]:
    if kind not in ("MFMA", "VALU"):
        return {}
    name, mnemonic = kind.lower(), instruction.table_name
    of_vectors = kind == "VALU"
    cost = valu_cycles(arch, mnemonic, instruction.wave_size) if of_vectors else mfma_cycles(arch, mnemonic)
    return {f"{name}_unknown": executions} if cost is None else {f"{name}_cycles": cost * executions}
