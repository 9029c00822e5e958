"""The model of time against published measurements: `python -m tests.benchmarks.timing_accuracy [every nth [first]]`.

`measured/preshuffle_gemm_gfx950.csv` has times of FlyDSL's fp8 GEMM on an MI355X, from AMD's tuning tables. Our own
kernel with the same tiles and options is timed by the model. Nothing in the model is fitted to these rows.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from flydsl.simulator.timing import Trace

MEASURED = Path(__file__).parent / "measured" / "preshuffle_gemm_gfx950.csv"
GFX950 = {"ARCH": "gfx950", "FLYDSL_GPU_ARCH": "gfx950"}
"""What makes launchers compile for the GPU of the measurements."""
SHORT_US = 10.0
"""Below this, a launch is mostly fixed costs, which differ between machines."""


@dataclass(frozen=True)
class Compared:
    """A row of the measurements, and what the model says."""

    row: Mapping[str, str]
    modelled_us: float
    error_percent: float | None
    """What is printed with the estimate."""

    @property
    def measured_us(self) -> float:
        return float(self.row["us"])

    @property
    def error(self) -> float:
        """Relative: above 0 where the model is too slow."""
        return self.modelled_us / self.measured_us - 1

    @property
    def is_within(self) -> bool:
        """Whether the error is at most what is printed."""
        return self.error_percent is not None and 100 * abs(self.error) <= self.error_percent

    @property
    def kind(self) -> str:
        """What the launch is limited by: fixed costs, weights from memory, or the product."""
        if self.measured_us <= SHORT_US:
            return "short"
        return "few rows" if int(self.row["M"]) <= 128 else "some rows" if int(self.row["M"]) <= 1024 else "many rows"

    def __str__(self) -> str:
        row = self.row
        options = (
            f"async {row['async_copy']} waves {row['waves_per_eu']} xcd {row['xcd_swizzle']} stages {row['lds_stage']}"
        )
        shape = f"{row['M']} x {row['N']} x {row['K']}, {row['tile_m']} x {row['tile_n']} x {row['tile_k']}"
        return (
            f"{shape}, {options}: {self.measured_us:.1f} us, model {self.modelled_us:.1f} "
            f"({self.error:+.0%}, said +-{self.error_percent} %)"
        )


def modelled(row: Mapping[str, str]) -> Trace:
    """What the model says of a row."""
    import torch

    from flydsl import env
    from flydsl.simulator import tracing
    from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8

    m, n, k = (int(row[name]) for name in "MNK")
    launch = compile_preshuffle_gemm_a8(
        K=k,
        **{name: int(row[name]) for name in ("tile_m", "tile_n", "tile_k", "lds_stage", "xcd_swizzle")},
        use_async_copy=row["async_copy"] == "1",
        waves_per_eu=int(row["waves_per_eu"]) or None,
        in_dtype="fp8",
        out_dtype="bf16",
    )
    a, b = (torch.empty(size, dtype=torch.uint8).view(torch.float8_e4m3fn) for size in (m * k, n * k))
    c, bias = torch.empty(m * n, dtype=torch.bfloat16), torch.empty(0, dtype=torch.bfloat16)
    with env.replaced(GFX950), tracing() as traced:
        launch(c, a, b, torch.empty(m), torch.empty(n), bias, m, n)
    (launched,) = traced.launches
    return launched.trace


def rows(step: int = 1, first: int = 0) -> list[dict[str, str]]:
    """Every `step`-th of the measured rows, from row `first` on."""
    with MEASURED.open() as file:
        return list(csv.DictReader(file))[first::step]


def compared(chosen: Sequence[Mapping[str, str]]) -> Iterator[Compared]:
    """The rows with what the model says."""
    for row in chosen:
        trace = modelled(row)
        yield Compared(row, trace.time_us, trace.error_percent)


def rank_correlation(pairs: Sequence[Compared]) -> float:
    """Spearman's, between measured and modelled times."""
    ranks = [
        np.argsort(np.argsort(values)) for values in ([p.measured_us for p in pairs], [p.modelled_us for p in pairs])
    ]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def median_error(pairs: Sequence[Compared]) -> float:
    """The median of the absolute relative errors."""
    return float(np.median([abs(p.error) for p in pairs]))


def summary(pairs: Sequence[Compared]) -> list[str]:
    """A table: for all rows and for each kind, how many there are, the rank correlation and the errors."""
    long = [p for p in pairs if p.kind != "short"]
    groups: dict[str, Sequence[Compared]] = {"all": pairs, f"over {SHORT_US:g} us": long}
    for pair in pairs:
        groups[pair.kind] = [*groups.get(pair.kind, []), pair]
    lines = ["| rows | number | Spearman | median error | 9 of 10 are within | bias | within what is said |"]
    lines.append("|---" * 7 + "|")
    for name, group in groups.items():
        errors = np.abs([p.error for p in group])
        parts = [np.median(errors), np.quantile(errors, 0.9), np.mean([p.is_within for p in group])]
        median, most, within = (f"{part:.0%}" for part in parts)
        bias = np.median([p.error for p in group])
        figures = f"{rank_correlation(group):.3f} | {median} | {most} | {bias:+.0%} | {within}"
        lines.append(f"| {name} | {len(group)} | {figures} |")
    return lines


def main(arguments: Sequence[str]) -> None:
    """Print each row, then the table."""
    start, pairs = time.perf_counter(), list[Compared]()
    for pair in compared(rows(*map(int, arguments))):
        pairs.append(pair)
        print(pair, f"[{time.perf_counter() - start:.0f} s]", flush=True)
    print("\n".join(summary(pairs)))


if __name__ == "__main__":
    main(sys.argv[1:])
