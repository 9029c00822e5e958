"""The fastest tile for each size on an MI355X, as AMD measured them: from its public tuning tables (August 2026).

A file for each family of kernels; its column `us` is the time of a launch. For the decode step of the gated delta rule,
each batch is about a third larger than the one before. The model of time is compared with these rows
(`tests.benchmarks.timing_accuracy`), and a kernel without an explicit tile takes that of the nearest size.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def measured(family: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a family, as in its file."""
    with (Path(__file__).parent / f"{family}_gfx950.csv").open() as file:
        return tuple(csv.DictReader(file))


def nearest(family: str, **sizes: int) -> list[dict[str, int]]:
    """The rows of a family without their times, nearest sizes first, by ratio.

    >>> row = nearest("hgemm", M=1, N=64, K=7168)[0]
    >>> row["M"], row["N"], row["K"], row["split_k"]
    (1, 64, 7168, 8)
    """

    def distance(row: Mapping[str, int]) -> float:
        return sum(abs(math.log2(size / row[name])) for name, size in sizes.items())

    rows = ({name: int(value) for name, value in row.items() if name != "us"} for row in measured(family))
    return sorted(rows, key=distance)
