"""The time of a product by its tile, roughly: what the options of a table are ranked by at a size that it has not.

A launch takes as long as what it needs longest for: the compute unit with most workgroups for reading operands, for
moving them through LDS, and for waiting for each step along K; all of them together for the products, at the clock that
they can sustain; the memory for what is read once; the Infinity Cache for what each die reads. The figures are those of
the model of time, the factors here are fitted to it. Of 420 products with tiles that are not far from the best, the
rough time differs from the model's by 3.5 % (median), 9 of 10 times by 13 % at most; it takes 10 us instead of seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd, prod

from flydsl.arch import get_arch
from flydsl.arch.timing import Timing, timing
from kernels.kernels_common import ceil_div

LAUNCH_US, GROUP_US = 2.8, 0.4
"""The least time of a launch whose tensors come from memory; what a workgroup takes to find its tile in a group."""
STEP_SHARE, LDS_SHARE = 0.9, 0.9
"""How long a step along K waits if nothing is on its way before it, and how long LDS works, of what the figures say."""
PARTS_US, ADDS_US = 0.45, 1.75e-6
"""Where parts of K are added: once, and for each part and element of C."""
SHARPNESS = 11
"""By which the longest of the bounds counts: with a larger one the others would count less."""
REGISTERS, SPARE_REGISTERS = 512, 64
"""Of a lane of a SIMD, and those of a wave that hold neither sums nor B."""
PRODUCT_BYTES = {"gfx942": 2048, "gfx950": 4096}
"""Products of a compute unit in a cycle, times the bytes of an element of A."""


@dataclass(frozen=True, kw_only=True)
class Workgroup:
    """The work of a workgroup of a product, and the order in which tiles go to the dies.

    tile: rows and columns of C. waves: along M, N and K. k_bytes: of its part of a row of A; step_bytes: those of a
    step of its loop. parts: workgroups that share a tile. ahead: steps whose operands are on their way at a time.
    b_to_lds: B goes through LDS like A, and not to registers. group: rows of tiles that a die takes column by column;
    with 0, tiles go to the dies in turn, by rows if by_rows.
    """

    tile: tuple[int, int]
    waves: tuple[int, int, int]
    k_bytes: int
    step_bytes: int
    parts: int
    ahead: float
    b_to_lds: bool
    lds_bytes: int
    group: int
    by_rows: bool

    @property
    def registers(self) -> int:
        """Of a lane: sums, and B where it goes to registers, twice."""
        (rows, columns), (waves_m, waves_n, waves_k) = self.tile, self.waves
        sums = rows * columns // (64 * waves_m * waves_n)
        b = 0 if self.b_to_lds else 2 * columns * self.step_bytes // (256 * waves_n * waves_k)
        return min(REGISTERS, sums + b + SPARE_REGISTERS)

    @property
    def lds_rows(self) -> tuple[int, int]:
        """Rows of operands that are written to LDS, and read from it by all waves together."""
        (rows, columns), (waves_m, waves_n, _) = self.tile, self.waves
        return (rows + columns, rows * waves_n + columns * waves_m) if self.b_to_lds else (rows, rows * waves_n)

    def at_a_time(self, arch: str) -> int:
        """Workgroups that a compute unit has room for."""
        waves = REGISTERS // self.registers * 4 // prod(self.waves)
        return max(1, min(get_arch(arch).lds_bytes_per_workgroup // self.lds_bytes, waves))

    def dies_that_read(self, grid: tuple[int, int], dies: int) -> tuple[float, float]:
        """The numbers of dies that read a row of A, and a row of B. grid: tiles along M and N."""
        tiles_m, tiles_n = grid
        if self.group:
            of_a, of_b = (dies * self.group / tiles_m, tiles_m / self.group) if tiles_m > self.group else (dies, 1)
            return min(of_a, dies, tiles_n), min(max(1, of_b), dies, tiles_m)
        inner, outer = (tiles_n, tiles_m) if self.by_rows else (tiles_m, tiles_n)
        of_outer, of_inner = min(dies, inner), min(outer, dies // gcd(dies, inner))
        return (of_outer, of_inner) if self.by_rows else (of_inner, of_outer)


@cache
def figures(arch: str) -> Timing:
    """The figures of the model of time for a GPU."""
    return timing(get_arch(arch))


def rough_time_us(size: tuple[int, int, int], element_bits: int, work: Workgroup, arch: str) -> float:
    """The time of a product of (M, N, K), whose elements of A have so many bits, on a GPU that has a table."""
    (m, n, k), (rows, columns), gpu = size, work.tile, figures(arch)
    dies, cycles_per_us = int(gpu.xcds.value), gpu.clock_mhz.value
    units = dies * int(gpu.compute_units_per_xcd.value)
    grid = ceil_div(m, rows), n // columns
    tiles, k_bytes = grid[0] * grid[1], k * element_bits // 8
    most = ceil_div(tiles * work.parts, units)
    rounds = ceil_div(most, min(most, work.at_a_time(arch)))
    byte_us = (rows + columns) / gpu.l1_fill_bytes_per_cycle.value / cycles_per_us  # for a byte of K
    step_us = gpu.memory_latency_ns.value / 1000 + work.step_bytes * byte_us
    (written, read), (of_a, of_b) = work.lds_rows, work.dies_that_read(grid, dies)
    sustained = gpu.sustained_matrix_rates["bf16" if element_bits == 16 else "8"].value
    bounds = (
        most * work.k_bytes * byte_us,
        most * work.k_bytes / cycles_per_us * LDS_SHARE
        * (written / gpu.lds_port_in_bytes.value + read / gpu.lds_bytes_per_cycle.value),
        rounds * work.k_bytes / work.step_bytes * step_us * STEP_SHARE / work.ahead,
        tiles * rows * columns * k_bytes / (units * PRODUCT_BYTES[arch] * sustained * cycles_per_us),
        ((m + n) * k_bytes + 2 * m * n) / gpu.memory_read_bytes_per_second.value * 1e6,
        (of_a * m + of_b * n) * k_bytes / gpu.infinity_cache_bytes_per_second.value * 1e6,
    )  # fmt: skip
    longest_us = sum(bound**SHARPNESS for bound in bounds) ** (1 / SHARPNESS)
    parts_us = PARTS_US + ADDS_US * m * n * work.parts if work.parts > 1 else 0
    return LAUNCH_US + longest_us + parts_us + (GROUP_US if work.group else 0)
