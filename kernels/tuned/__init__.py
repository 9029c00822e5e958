"""The fastest tiles for some sizes: by the model of time, and on an MI355X as AMD measured them.

FAMILY.json has what a product takes that is launched without a tile: for each GPU and kind of elements the best options
of some sizes, by the model of time (`python -m tools.tune` writes it). `nearest_that_fits` finds those of another size.

FAMILY_gfx950.csv is from AMD's public tuning tables (August 2026); its column `us` is the time of a launch. For the
decode step of the gated delta rule, each batch is about a third larger than the one before. The model is compared with
these rows (`tests.benchmarks.timing_accuracy`), and the decode step takes its options from them. Of mixtures of experts
the rows are those whose options `mixed_moe_gemm_2stage` has, for tokens that go to experts at random; tile_n counts
rows of the weights where those of gate and up are interleaved, and without accumulate a second launch adds up.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from flydsl.errors import ArgumentError

LEAST_ROWS = 16
"""Rows of the smallest tile: products of fewer take the same time."""
Fitted = TypeVar("Fitted")


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


def distance(size: tuple[int, int, int], row: Mapping[str, Any]) -> float:
    """The distance of a row's size from (M, N, K), 0 if it is the same. The size of C counts, too.

    >>> distance((32, 128, 64), {"M": 16, "N": 128, "K": 256})
    4.0
    """
    wanted = (max(x, least) for x, least in zip(size, (LEAST_ROWS, 1, 1), strict=True))
    m, n, k = (math.log2(x / row[name]) for name, x in zip("MNK", wanted, strict=True))
    return abs(m) + abs(n) + abs(k) + abs(m + n)


def divisor_near(count: int, wanted: int) -> int:
    """The divisor of a count that is nearest to another number, by ratio.

    >>> divisor_near(16, 7)
    8
    """
    divisors = (x for x in range(1, min(count, 2 * wanted) + 1) if count % x == 0)
    return min(divisors, key=lambda x: abs(math.log2(x / wanted)))


@cache
def modelled(family: str) -> Mapping[str, Mapping[str, tuple[Mapping[str, Any], ...]]]:
    """By GPU and kind of elements, the sizes that were searched: M, N, K, us, and under `options` the best options."""
    tables = json.loads((Path(__file__).parent / f"{family}.json").read_text())
    return {arch: {kind: tuple(rows) for kind, rows in kinds.items()} for arch, kinds in tables.items()}


def nearest_that_fits(
    family: str, arch: str, kind: str, size: tuple[int, int, int], fit: Callable[[dict[str, Any]], Fitted]
) -> Fitted:
    """The result of `fit` for the options of the nearest size that can be made to fit this one, (M, N, K).

    The nearest is the one with the least sum of |log2| of the ratios of M, N, K and M N, where 1 to 16 rows are the
    same. A GPU without a table takes the first one.
    fit: returns a tile narrowed to what divides the size, or raises ArgumentError where the options do not fit.
    Raises ArgumentError for a size that none of them fits.
    """
    tables = modelled(family)
    for row in sorted(tables.get(arch, next(iter(tables.values())))[kind], key=partial(distance, size)):
        try:
            return fit(dict(row["options"]))
        except ArgumentError:
            continue
    raise ArgumentError(
        f"no default tile fits a product of {' x '.join(map(str, size))}",
        hint="take an N that is a multiple of 64 and a K that is one of 128, or name a tile",
    )
