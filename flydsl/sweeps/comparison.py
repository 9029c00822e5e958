"""Two rows of a sweep, side by side: which is faster, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flydsl.errors import ArgumentError
from flydsl.sweeps.row import Row, cell_text

_LEAST_DIFFERENCE = 0.02
_ABOUT = (
    ("instructions", "executed instructions"),
    ("hbm_bytes", "bytes of HBM"),
    ("global_lines", "lines of global memory"),
    ("l1_hit_percent", "hits of L1, percent"),
    ("l2_hit_percent", "hits of L2, percent"),
    ("lds_passes", "passes of LDS"),
    ("lds_conflicts", "bank conflicts"),
    ("mfma_cycles", "cycles of matrix instructions"),
    ("valu_cycles", "cycles of vector instructions"),
    ("waves_per_simd", "waves per SIMD"),
    ("vgprs", "VGPRs"),
    ("agprs", "AGPRs"),
    ("lds_bytes", "bytes of LDS"),
    ("scratch_bytes", "bytes of scratch"),
    ("spills", "spilled registers"),
    ("roofline_percent", "percent of the roofline"),
)


@dataclass(frozen=True)
class Comparison:
    """Two rows, the faster one first in what it prints."""

    first: Row
    second: Row

    def __post_init__(self) -> None:
        for row in (self.first, self.second):
            if row.time_us is None:
                raise ArgumentError(f"{row} has no time to compare", hint="rows with a time: table.where()")

    @property
    def faster(self) -> Row:
        """The row with the shorter time; of equal ones the first."""
        return min(self.first, self.second, key=lambda row: row.time_us or 0.0)

    @property
    def slower(self) -> Row:
        return self.second if self.faster is self.first else self.first

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """The values of the faster and of the slower row, by column, where they differ by over 2 %, most first."""
        found = {
            name: (self.faster[name], self.slower[name])
            for name, _ in _ABOUT
            if isinstance(self.faster[name], int | float) and isinstance(self.slower[name], int | float)
        }
        sizes = {name: _difference(*pair) for name, pair in found.items()}
        chosen = sorted((n for n in found if sizes[n] > _LEAST_DIFFERENCE), key=lambda name: -sizes[name])
        return {name: found[name] for name in chosen}

    def __repr__(self) -> str:
        """The times, what waves wait for, and the differences in lines."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        faster, slower = self.faster, self.slower
        more = (slower.time_us or 0.0) / (faster.time_us or 1.0) - 1
        yield f"{_name(faster)}: {faster.time_text}"
        yield f"{_name(slower)}: {slower.time_text}, {more:+.0%}"
        if faster["main_stall"] or slower["main_stall"]:
            yield f"  waves mostly: {faster['main_stall'] or 'no stall'} | {slower['main_stall'] or 'no stall'}"
        words = dict(_ABOUT)
        for name, (one, other) in self.differences.items():
            yield f"  {words[name]}: {cell_text(one)} | {cell_text(other)}"


def _difference(one: float, other: float) -> float:
    """The difference of two numbers, as a fraction of the larger one."""
    return abs(one - other) / max(abs(one), abs(other), 1e-9)


def _name(row: Row) -> str:
    given = ", ".join(f"{name}={cell_text(value)}" for name, value in (row.shape | row.config.to_dict()).items())
    return f"{row.launcher}({given}) on {row.arch}"
