"""The measures of a launch's counters for each line, and the one that limits the launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flydsl.errors import ArchError
from flydsl.simulator.counters import Counts, LaunchCounters, Roofline


@dataclass(frozen=True)
class Measure:
    """A column. head: over it. amount: of a line. unknown: executions of the line that the amount leaves out."""

    name: str
    head: str
    amount: Callable[[Counts], int]
    unknown: Callable[[Counts], int] = lambda counts: 0

    def text(self, counts: Counts) -> str:
        """The amount; nothing for 0, "?" where it is not known."""
        amount = self.amount(counts)
        parts = [str(amount)] * bool(amount) + ["?"] * bool(self.unknown(counts))
        return "+".join(parts)


INSTRUCTIONS = Measure("instructions", "instr", lambda c: c.executions)
LINES = Measure("64-byte lines", "lines", lambda c: c.global_lines)
BYTES = Measure("bytes", "bytes", lambda c: c.global_bytes + c.lds_bytes + c.scratch_bytes + c.scalar_bytes)
LDS_PASSES = Measure("LDS passes", "passes", lambda c: c.lds_passes, lambda c: c.lds_unknown)
LDS_CONFLICTS = Measure("LDS conflicts", "confl", lambda c: c.lds_conflicts, lambda c: c.lds_unknown)
MFMA_CYCLES = Measure("MFMA cycles", "MFMA", lambda c: c.mfma_cycles, lambda c: c.mfma_unknown)
VALU_CYCLES = Measure("VALU cycles", "VALU", lambda c: c.valu_cycles, lambda c: c.valu_unknown)

MEASURES = (INSTRUCTIONS, LINES, BYTES, LDS_PASSES, LDS_CONFLICTS, MFMA_CYCLES, VALU_CYCLES)
_OF_RESOURCE = {"memory": LINES, "MFMA": MFMA_CYCLES, "VALU": VALU_CYCLES, "LDS": LDS_PASSES}


def nonzero_measures(counters: LaunchCounters) -> list[Measure]:
    """The measures that are not 0 in the whole launch."""
    return [m for m in MEASURES if m.text(counters.totals)]


def roofline(counters: LaunchCounters) -> Roofline | ArchError:
    """The time that each resource needs at its peak rate, or why that is not known."""
    try:
        return counters.roofline()
    except ArchError as reason:
        return reason


def limiting(counters: LaunchCounters) -> Measure:
    """The measure of the resource that needs the longest by the roofline; instructions if there is none."""
    found = roofline(counters)
    if isinstance(found, ArchError) or not found.time_us:
        return INSTRUCTIONS
    return _OF_RESOURCE[found.bound]


def total(measure: Measure, lines: Iterable[Counts]) -> int:
    """The amount of all lines together."""
    return sum(map(measure.amount, lines))
