"""The tiles that the model of time would choose, against those that AMD has measured to be the best.

python -m tests.benchmarks.tuning_accuracy [every nth [first]]

For rows of `kernels/tuned/preshuffle_gemm_gfx950.csv`, the tiles that AMD's tuner tries are timed by the model with our
kernel, with and without an order of workgroups, A going past the registers; and the row's own configuration. A tile
takes the time of its best options: how many waves the compiler is asked to make room for is not the tile's matter.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.timing_accuracy import modelled, rows

_TILES = (
    *((16, n, 256) for n in (64, 128, 192, 256, 512)), *((16, n, 512) for n in (64, 128, 256)),
    *((32, n, 128) for n in (64, 128, 192, 256)), *((32, n, 256) for n in (64, 128, 192, 256)), (32, 64, 512),
    *((m, n, 256) for m in (48, 80, 112) for n in (64, 128, 192, 256)),
    *((m, n, k) for m in (64, 96) for n in (64, 128, 192, 256) for k in (128, 256)),
    *((128, n, k) for n in (64, 128, 192) for k in (128, 256)), (128, 256, 128), (160, 192, 128),
    *((m, n, 128) for m in (192, 224) for n in (64, 128)), (224, 192, 128),
    *((256, n, 128) for n in (64, 128, 192, 256)),
)  # fmt: skip
"""Those of AMD's tuner of August 2026 with two buffers of A: `aiter/ops/flydsl/gemm_tune`."""
Configuration = tuple[int, ...]
"""The values of _NAMES."""
_NAMES = ("tile_m", "tile_n", "tile_k", "async_copy", "waves_per_eu", "xcd_swizzle", "lds_stage")


@dataclass(frozen=True)
class Searched:
    """What the model says of every tile that was tried for a size. measured: the one that AMD found best."""

    row: Mapping[str, str]
    measured: Configuration
    times_us: Mapping[Configuration, float]

    @property
    def best(self) -> Configuration:
        return min(self.times_us, key=self.times_us.__getitem__)

    @property
    def behind(self) -> float:
        """By which part the measured tile is slower than the model's best, by the model."""
        return self.times_us[self.measured] / self.times_us[self.best] - 1

    @property
    def rank(self) -> int:
        """The place of the measured tile, from 1 on."""
        return sorted(self.times_us.values()).index(self.times_us[self.measured]) + 1

    def __str__(self) -> str:
        m, n, k = (self.row[name] for name in "MNK")
        found, own = (" x ".join(map(str, one)) for one in (self.best, self.measured))
        times = f"{self.times_us[self.measured]:.1f} us of {own}, {self.times_us[self.best]:.1f} of {found}"
        return (
            f"{m} x {n} x {k}: measured {float(self.row['us']):.1f}, model {times}: {self.behind:.0%} behind, "
            f"place {self.rank} of {len(self.times_us)}"
        )


def space(m: int, n: int, k: int) -> Iterator[Configuration]:
    """The configurations that are tried for a size: tiles that fit, with at most half of their rows unused."""
    for tile_m, tile_n, tile_k in _TILES:
        if n % tile_n == 0 and k % tile_k == 0 and (tile_m == 16 or tile_m < 2 * m):
            yield from ((tile_m, tile_n, tile_k, 1, 0, swizzle, 2) for swizzle in ((0, 4) if m > tile_m else (0,)))


def searched(row: Mapping[str, str]) -> Searched:
    """Every tile of a size's space, with the time of its best options by the model."""
    m, n, k = (int(row[name]) for name in "MNK")
    measured = tuple(int(row[name]) for name in _NAMES)
    times = dict[Configuration, float]()
    for one in {measured, *space(m, n, k)}:
        names = dict(zip(_NAMES, map(str, one), strict=True))
        time_us = modelled("preshuffle_gemm", {**row, **names}).time_us
        times[one[:3]] = min(time_us, times.get(one[:3], time_us))
    return Searched(row, measured[:3], times)


def summary(found: Sequence[Searched]) -> str:
    behind = [one.behind for one in found]
    among = sum(one.rank <= 10 for one in found)
    median, most = np.median(behind), np.quantile(behind, 0.9)
    return f"{len(found)} sizes: {median:.0%} behind (median), 9 of 10 within {most:.0%}, {among} among the best ten"


def main(arguments: Sequence[str]) -> None:
    """Print each size, then all together."""
    start, found = time.perf_counter(), list[Searched]()
    for row in rows("preshuffle_gemm", *map(int, arguments)):
        found.append(searched(row))
        print(found[-1], f"[{time.perf_counter() - start:.0f} s]", flush=True)
    print(summary(found))


if __name__ == "__main__":
    main(sys.argv[1:])
