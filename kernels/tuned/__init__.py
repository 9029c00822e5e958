"""The fastest tiles for some sizes: by the model of time, and on an MI355X as AMD measured them.

FAMILY.json has what a product takes that is launched without a tile: for each GPU and kind of elements the best options
of some sizes, by the model of time (`python -m tools.tune` writes it). At another size, the options of all of them are
ranked by a rough time (`fitting`, `fastest`); mixtures take those of the nearest size (`nearest_that_fits`).

At 1 x 7168 x 2048, 32 x 1280 x 8192, 96 x 4608 x 7168 and 640 x 5120 x 2880, which no table has, what is taken on an
MI355X is 0, 3, 0 and 0 % behind the best of a short search by the model (fp8), and for the first three 6, 1 and 0 %
(bf16 of `hgemm`). The tile of the nearest size was 0, 7, 12 and 65 %, and 4, 7 and 14 %, behind. The factors of the
rough time were fitted to some tiles of these sizes, too.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any, Generic, TypeVar

from flydsl.errors import ArgumentError
from kernels.tuned.rough_time import Workgroup, rough_time_us

Size = tuple[int, int, int]
LEAST_ROWS = 16
"""Rows of the smallest tile: products of fewer take the same time."""
PARTS = (1, 2, 3, 4, 5, 7, 8, 14, 16)
"""Numbers of workgroups that may share a tile, along K."""
DOUBT = 0.003
"""By this part a tile counts as slower for each unit of distance from the sizes for which it was found."""
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


def distance(size: Sequence[int], row: Mapping[str, Any]) -> float:
    """The distance of a row's size from (M, N, K), 0 if it is the same. The size of C counts, too.

    With a fourth number, of experts, M is the rows of each.

    >>> distance((32, 128, 64), {"M": 16, "N": 128, "K": 256})
    4.0
    """
    rows, *others = size
    wanted = zip("MNKE", (max(rows, LEAST_ROWS), *others), strict=False)
    m, n, k, *e = (math.log2(x / max(row[name], LEAST_ROWS if name == "M" else 1)) for name, x in wanted)
    return sum(map(abs, (m, n, k, *e, m + n + sum(e))))


def size_of_experts(rows: int, n: int, k: int, experts: int) -> tuple[int, int, int, int]:
    """(M, N, K, E) of so many rows that go to experts at random: of each that has any, and how many have.

    >>> size_of_experts(8, 2048, 7168, experts=256)
    (1, 2048, 7168, 8)
    """
    busy = max(1, min(rows, experts))
    return -(-rows // busy), n, k, busy


def divisor_near(count: int, wanted: int) -> int:
    """The divisor of a count that is nearest to another number, by ratio.

    >>> divisor_near(16, 7)
    8
    """
    divisors = (x for x in range(1, min(count, 2 * wanted) + 1) if count % x == 0)
    return min(divisors, key=lambda x: abs(math.log2(x / wanted)))


def part_of(count: int, wanted: int, unit: int) -> int:
    """The largest divisor of a count that is not above another number and a multiple of a unit, or their gcd.

    >>> part_of(2880, 512, 64), part_of(2048, 512, 64), part_of(2880, 512, 128)
    (320, 512, 64)
    """
    return next((x for x in range(wanted, 0, -unit) if x % unit == 0 and count % x == 0), gcd(count, wanted))


@cache
def modelled(family: str) -> Mapping[str, Mapping[str, tuple[Mapping[str, Any], ...]]]:
    """By GPU and kind of elements, the sizes that were searched: M, N, K, us, and under `options` the best options."""
    tables = json.loads((Path(__file__).parent / f"{family}.json").read_text())
    return {arch: {kind: tuple(rows) for kind, rows in kinds.items()} for arch, kinds in tables.items()}


def nearest_that_fits(
    family: str, arch: str, kind: str, size: Sequence[int], fit: Callable[[dict[str, Any]], Fitted]
) -> Fitted:
    """The result of `fit` for the options of the nearest size of a mixture that can be made to fit (M, N, K, E).

    See `size_of_experts`; a GPU without a table takes the first one. fit: returns a tile narrowed to what divides the
    size, or raises ArgumentError where the options do not fit. Raises ArgumentError for a size that none of them fits.
    """
    for row in sorted(table(family, arch)[kind], key=partial(distance, size)):
        with suppress(ArgumentError):
            return fit(dict(row["options"]))
    raise no_tile(size)


def no_tile(size: Sequence[int]) -> ArgumentError:
    """The error for a size that no tile fits."""
    return ArgumentError(
        f"no default tile fits a product of {' x '.join(map(str, size))}",
        hint="take an N that is a multiple of 64 and a K that is one of 128, or name a tile",
    )


@dataclass(frozen=True, kw_only=True)
class Candidate(Generic[Fitted]):
    """A tile that fits. rows: those of the table whose options it is made of."""

    tile: Fitted
    work: Workgroup
    rows: Sequence[Mapping[str, Any]]


def fitting(
    family: str, arch: str, kind: str, parts: str, fit: Callable[[dict[str, Any]], tuple[Fitted, Workgroup]]
) -> tuple[Candidate[Fitted], ...]:
    """The tiles that `fit` makes of a table's options, each once, with every number of parts of K.

    A GPU without a table takes the first one. parts: the name of that option. fit: returns a tile narrowed to what
    divides the size, and what its workgroups do, or raises ArgumentError where the options do not fit.
    """
    rows_of = dict[str, list[Mapping[str, Any]]]()
    for row in table(family, arch)[kind]:
        rows_of.setdefault(json.dumps({**row["options"], parts: 0}), []).append(row)
    works, made_of = dict[Fitted, Workgroup](), dict[Fitted, list[Mapping[str, Any]]]()
    for (options, rows), count in product(rows_of.items(), PARTS):
        with suppress(ArgumentError):
            tile, works[tile] = fit({**json.loads(options), parts: count})
            made_of.setdefault(tile, []).extend(rows)
    return tuple(Candidate(tile=tile, work=work, rows=made_of[tile]) for tile, work in works.items())


def table(family: str, arch: str) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """The table of a GPU, by kind of elements; the first one for a GPU that has none."""
    return modelled(family)[timed_as(family, arch)]


def timed_as(family: str, arch: str) -> str:
    """The GPU whose table another one takes."""
    return arch if arch in modelled(family) else next(iter(modelled(family)))


def fastest(
    family: str, arch: str, kind: str, size: Size, element_bits: int, candidates: Sequence[Candidate[Fitted]]
) -> Fitted:
    """The tile of some (`fitting`) that is roughly the fastest for a size (M, N, K).

    Of such that are as fast, it is the one that was found for the nearest size. Tiles of more than twice the rows of C
    do not count. element_bits: of A. Raises ArgumentError if there is none.
    """
    gpu, most = timed_as(family, arch), max(LEAST_ROWS, 2 * size[0] - 1)
    distances = {id(row): distance(size, row) for row in table(family, arch)[kind]}

    def cost(candidate: Candidate[Fitted]) -> float:
        time_us = rough_time_us(size, element_bits, candidate.work, gpu)
        return time_us * (1 + DOUBT * min(distances[id(row)] for row in candidate.rows))

    possible = [candidate for candidate in candidates if candidate.work.tile[0] <= most]
    if not possible:
        raise no_tile(size)
    return min(possible, key=cost).tile


def searched(family: str, arch: str, kind: str, size: Size) -> dict[str, Any] | None:
    """The options of a size that was searched, where 1 to 16 rows are the same; None for others."""
    rows = (row for row in table(family, arch)[kind] if distance(size, row) == 0)
    return next((dict(row["options"]) for row in rows), None)
