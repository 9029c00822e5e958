"""The counters of a launch as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from flydsl.simulator.counters.counts import Counts, LineCounts
from flydsl.simulator.counters.raw import LINE_BYTES

_HEADINGS = ("line", "executions", "lanes", "lines", "bytes", "LDS passes", "conflicts", "cycles", "instruction")


def launch_table(summary: Iterable[str], lines: Iterable[LineCounts]) -> str:
    """The lines of a summary, then a row for every instruction that was executed."""
    rows = [_row(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    parts = [*summary, ""]
    for row in (_HEADINGS, *rows):
        numbers = [text.rjust(width) for text, width in zip(row[:-1], widths, strict=False)]
        parts.append("  ".join([*numbers, row[-1]]))
    return "\n".join(parts)


def totals_text(totals: Counts) -> list[str]:
    """The totals of a launch, in lines."""
    classes = ", ".join(f"{name} {count}" for name, count in totals.by_class.items())
    lanes = "" if totals.lane_utilization is None else f"; {totals.lane_utilization:.1%} of lanes active"
    lines = [f"{totals.executions} wave-instructions: {classes}{lanes}"]
    if totals.global_lines:
        lines.append(
            f"global memory: {totals.global_bytes} bytes in {totals.global_lines} lines of {LINE_BYTES} bytes"
            f" ({totals.line_utilization:.1%} of the bytes of the lines)"
        )
    if totals.lds_bytes:
        most = f" (at most {totals.lds_max_ways} ways)" if totals.lds_conflicts else ""
        lines.append(
            f"LDS: {totals.lds_bytes} bytes, {totals.lds_passes} passes, {totals.lds_conflicts} of them for bank "
            f"conflicts{most}"
        )
    if totals.mfma_cycles or totals.valu_cycles:
        lines.append(f"SIMD cycles: MFMA {totals.mfma_cycles}, VALU {totals.valu_cycles}")
    return lines


def _row(line: LineCounts) -> tuple[str, ...]:
    lanes = "" if not line.vector_executions else f"{line.active_lanes / line.vector_executions:.4g}"
    passes = "?" if line.lds_unknown and not line.lds_passes else _number(line.lds_passes)
    conflicts = "?" if passes == "?" else (str(line.lds_conflicts) if line.lds_passes else "")
    cycles = "?" if line.mfma_unknown or line.valu_unknown else _number(line.mfma_cycles + line.valu_cycles)
    bytes_ = line.global_bytes + line.lds_bytes + line.scratch_bytes + line.scalar_bytes
    text = " ".join(line.text.split()) + (f"  ; {line.location}" if line.location else "")
    return (
        str(line.isa_line),
        str(line.executions),
        lanes,
        _number(line.global_lines),
        _number(bytes_),
        passes,
        conflicts,
        cycles,
        text,
    )


def _number(count: int) -> str:
    return str(count) if count else ""
