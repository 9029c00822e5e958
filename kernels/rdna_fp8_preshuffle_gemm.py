"""C = A B * scale_a[m] * scale_b[n] in bf16 on Radeon RX 9000 (RDNA 4), A and B of fp8 (E4M3FN), B shuffled beforehand.

    launch = compile_fp8_gemm(M=1024, N=4096, K=4096)
    launch(C, A, preshuffle_b_fp8(B), scale_a, scale_b)        # C (M, N), A (M, K), B (K, N)

Both operands go from memory straight into the registers of the matrix instruction, without shared memory and without a
barrier: `preshuffle_b_fp8` puts what 16 lanes need side by side, and of A a lane takes 16 bytes of a row, which are its
part of two instructions. The next `tile_k` columns of K are on their way while the instructions work on the last ones;
a turn of the loop has `k_unroll` such steps. B comes first in the instruction, so that a lane holds eight neighbours of
a row of C.

Sums are f32; each is multiplied by its row's scale, then by its column's, and rounded. 32 x 256 x 32 by two waves: 128
registers hold sums and 80 two tiles of A and B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import bf16, bytes_of, require, require_tensors
from kernels.launches import launcher, tuned
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor
from kernels.wmma_pipeline import LANES, SIZE, Wave, place_of_wave, require_wave, tile_of_block

LARGEST = 448.0
TENSORS = "C A B scale_a scale_b"
# (M, N, K)
SHAPES = ((32, 128, 128), (256, 256, 128), (64, 384, 192))


def reference(A: Any, B: Any, scale_a: Any, scale_b: Any) -> Any:
    """The result of torch in f32. A (M, K) and B (K, N) as numbers; scales of A's rows and of B's columns."""
    return A.float() @ B.float() * scale_a[:, None] * scale_b


def quantize(x: Any, dim: int) -> tuple[Any, Any]:
    """A matrix in fp8, and the scales of its rows (dim 1) or columns (dim 0): the largest number becomes 448."""
    import torch

    scale = x.float().abs().amax(dim, keepdim=True).clamp(min=1e-12) / LARGEST
    return (x.float() / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn), scale.flatten()


def preshuffle_b_fp8(B: Any) -> Any:
    """B (K, N) in the order in which lanes read it: (N/16, K/16, 2, 16, 8), for each of 16 columns two runs of 8.

    Raises ArgumentError unless K and N are multiples of 16.
    """
    import torch

    k, n = B.shape
    require(k % SIZE == 0 and n % SIZE == 0, f"B of {tuple(B.shape)}", "multiples of 16")
    runs = B.contiguous().view(torch.uint8).T.reshape(n // SIZE, SIZE, k // SIZE, 2, 8)
    return runs.permute(0, 2, 3, 1, 4).contiguous().view(-1).view(B.dtype)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The compile-time parameters. tile: of a workgroup along M, N and K. k_unroll: steps of a turn of the loop."""

    size: tuple[int, int, int]
    tile: tuple[int, int, int]
    k_unroll: int
    group_m: int

    @property
    def waves(self) -> tuple[int, int]:
        """Waves of a workgroup along M and N."""
        m, n, _ = self.tile
        if m >= 64 and n >= 128:
            return 2, 2
        return (2, 1) if m >= 64 and n < 128 else (1, 2 if n >= 128 else 1)

    @property
    def turns(self) -> int:
        """Turns of the loop along K; the last one's products follow it."""
        return self.size[2] // (self.tile[2] * self.k_unroll)

    @property
    def regs(self) -> tuple[int, int]:
        """Tiles of 16 x 16 of a wave along M and N."""
        return self.tile[0] // (SIZE * self.waves[0]), self.tile[1] // (SIZE * self.waves[1])

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return LANES * self.waves[0] * self.waves[1]

    def check(self) -> None:
        """Raise ArgumentError where sizes do not fit."""
        least = min(*self.tile, self.k_unroll, self.group_m)
        given = f"a tile of {self.tile}, k_unroll={self.k_unroll}, group_m={self.group_m}"
        require(least > 0, given, "at least 1 each")
        depth = self.tile[2] * self.k_unroll
        for name, size, tile in zip("MNK", self.size, (*self.tile[:2], depth), strict=True):
            require(size > 0 and size % tile == 0, f"{name}={size}", f"a multiple of the tile's {tile}")
        require(self.turns > 1, f"K={self.size[2]}", f"at least two times {depth}")
        for name, extent, waves in zip("mn", self.tile, self.waves, strict=False):
            require(extent % (SIZE * waves) == 0, f"tile_{name}={extent}", f"a multiple of {SIZE * waves}")
        require(self.tile[2] % 32 == 0, f"tile_k={self.tile[2]}", "a multiple of 32")


class Operands:
    """A wave's rows of A and columns of B: what a lane holds of a tile along K, as words."""

    def __init__(self, plan: Plan, A: Any, B: Any, first: tuple[Any, Any]) -> None:
        self.plan, k = plan, plan.size[2]
        self.a = GTensor(A, fx.Int32, base_byte_offset=fx.Int64(first[0]) * k, num_records_bytes=plan.tile[0] * k)
        self.b = GTensor(B, fx.Int32, base_byte_offset=fx.Int64(first[1]) * k, num_records_bytes=plan.tile[1] * k)
        lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
        inner, half = lane & (SIZE - 1), lane >> 4
        self.in_a = (row + inner) * (k // 4) + half * 4
        self.in_b = column * (k // 4) + half * 64 + inner * 2

    def load(self, step: Any) -> Any:
        """The words of tile `step`: of each 16 rows of A and of each 16 columns of B, for each pair of instructions."""
        plan, k = self.plan, self.plan.size[2]
        pairs = range(plan.tile[2] // 32)
        first = fx.Int32(step) * plan.tile[2]
        # Distances are what all lanes share: each in a vector register would take one of its own.
        a = [
            [self.load_a(first + (SIZE * mi * k + 32 * pair)) for pair in pairs]
            for mi in range(plan.regs[0])
        ]  # fmt: skip
        b = [
            [
                self.load_b(first * SIZE + (SIZE * (ni * k + 32 * pair) + 128 * part))
                for pair in pairs
                for part in range(2)
            ]
            for ni in range(plan.regs[1])
        ]
        return a, b

    def load_a(self, distance: Any) -> Any:
        """16 bytes of A, `distance` bytes past the lane's first."""
        return fx.Vector(self.a.vec_load(self.in_a, 4, soffset_bytes=distance))

    def load_b(self, distance: Any) -> Any:
        """8 bytes of B, `distance` bytes past the lane's first."""
        return fx.Vector(self.b.vec_load(self.in_b, 2, soffset_bytes=distance))


@flyc.kernel
def fp8_kernel(tensors: Any, turns: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """One tile of C. tensors: of the launcher. turns: the plan's; as an argument it keeps a short loop a loop."""
    C, A, B, scale_a, scale_b = tensors.values()
    require_wave(Wave.RDNA4)
    tile_m, tile_n, _ = plan.tile
    row, column = tile_of_block(plan.size[0] // tile_m, plan.size[1] // tile_n, plan.group_m)
    first = row * tile_m, column * tile_n
    acc = all_steps(plan, Operands(plan, A, B, first), turns)
    fx.rocdl.sched_barrier(0)  # the scales have registers only when the last products are under way
    store_tile(plan, C, scale_a, scale_b, first, acc)


@flyc.jit
def all_steps(plan: Plan, operands: Operands, turns: Any) -> Any:
    """The sums over all of K: tile k is computed while the next one is loaded."""
    acc = [[fx.Vector.filled(8, 0.0, fx.Float32) for _ in range_constexpr(plan.regs[1])]
            for _ in range_constexpr(plan.regs[0])]  # fmt: skip
    here = operands.load(0)
    for turn in range(turns - 1):
        for step in range_constexpr(plan.k_unroll):
            following = operands.load(fx.Int32(turn) * plan.k_unroll + (step + 1))
            fx.rocdl.sched_barrier(0)  # or the loads would wait for products that free their registers
            acc = one_tile(plan, here, acc)
            here = following
    last = (turns - 1) * plan.k_unroll
    for step in range_constexpr(plan.k_unroll - 1):
        following = operands.load(last + (step + 1))
        acc = one_tile(plan, here, acc)
        here = following
    return one_tile(plan, here, acc)


def one_tile(plan: Plan, operands: Any, acc: Any) -> list[list[Any]]:
    """The sums with a tile's products added."""
    a, b = operands
    acc, result = [list(totals) for totals in acc], fx.T.vec(8, fx.Float32.ir_type)
    for number in range(plan.tile[2] // SIZE):
        pair, part = divmod(number, 2)
        for mi, totals in enumerate(acc):
            words = a[mi][pair].shuffle(a[mi][pair], [2 * part, 2 * part + 1])
            for ni, total in enumerate(totals):
                product = fx.rocdl.wmma_f32_16x16x16_fp8_fp8(result, b[ni][number], words, total)
                totals[ni] = fx.Vector(product)
    return acc


def store_tile(plan: Plan, C: Any, scale_a: Any, scale_b: Any, first: tuple[Any, Any], acc: Any) -> None:
    """Scale a workgroup's tile, whose first row and column are `first`, and write it."""
    _, n, _ = plan.size
    base = (fx.Int64(first[0]) * n + fx.Int64(first[1])) * 2
    memory = GTensor(C, fx.BFloat16, base_byte_offset=base, num_records_bytes=2 * plan.tile[0] * n)
    of_rows, of_columns = (
        GTensor(scales, fx.Float32, base_byte_offset=fx.Int64(start) * 4, num_records_bytes=4 * extent)
        for scales, start, extent in zip((scale_a, scale_b), first, plan.tile, strict=False)
    )
    lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
    row, column = row + (lane & (SIZE - 1)), column + (lane >> 4) * 8
    factors = [of_columns.vec_load(column + SIZE * ni, 8) for ni in range(plan.regs[1])]
    for mi, totals in enumerate(acc):
        factor = of_rows.load(row + SIZE * mi)
        for ni, total in enumerate(totals):
            values = bf16(total * factor * factors[ni])
            memory.vec_store(row * n + column + SIZE * ni, values, soffset_bytes=2 * SIZE * mi * n)


@cache
def compile_fp8_gemm(
    *,
    M: int,
    N: int,
    K: int,
    tile_m: int = 32,
    tile_n: int | None = None,
    tile_k: int = 32,
    k_unroll: int | None = None,
    group_m: int = 8,
) -> Any:
    """A launcher of (C, A, B, scale_a, scale_b, stream).

    C (M, N) bf16, A (M, K), B as `preshuffle_b_fp8` gives it, in one dimension or two and as fp8, bytes or words of
    Float32; scale_a (M), scale_b (N) f32. M, N and K are multiples of the tile, and K at least two of `tile_k *
    k_unroll`. tile_n: 256 from M = 256 on, else 128; k_unroll: 1 then, else 2. Raises ArgumentError where sizes do not
    fit, and at the launch on a GPU that is no RDNA 4.
    """
    is_large = M >= 256
    tile = (tile_m, tile_n or (256 if is_large else 128), tile_k)
    return fp8_launcher(Plan(size=(M, N, K), tile=tile, k_unroll=k_unroll or (1 if is_large else 2), group_m=group_m))


def fp8_launcher(plan: Plan) -> Any:
    """The launcher of a plan; see `compile_fp8_gemm`."""
    plan.check()

    def launch(tensors: dict[str, Any], stream: Any) -> None:
        launch_fp8(plan, tensors, stream)

    return launcher("launch_fp8_gemm", TENSORS, launch)


def launch_fp8(plan: Plan, tensors: dict[str, Any], stream: Any) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    operand = bytes_of(fx.Float8E4M3FN, fx.Float32)
    require_tensors(tensors, A=operand, B=operand, C=fx.BFloat16, scale_a=fx.Float32, scale_b=fx.Float32, rows=TENSORS)
    m, n, k = plan.size
    require_rows("C", tensors["C"], m, n)
    require_rows("A", tensors["A"], m, k, bits=8)
    require_elements("B", tensors["B"], k * n, bits=8)
    require_elements("scale_a", tensors["scale_a"], m)
    require_elements("scale_b", tensors["scale_b"], n)
    blocks = plan.size[0] // plan.tile[0] * (plan.size[1] // plan.tile[1])
    fp8_kernel(tensors, plan.turns, plan).launch(grid=(blocks,), block=(plan.threads,), stream=stream)


def _launch(
    tensors: dict[str, Any], m: int, n: int, k: int, tile: tuple[int, int, int], k_unroll: int, stream: Any
) -> None:
    """A launcher of (C, A, B, scale_a, scale_b, m, n, k, stream), with a tile that is chosen by measurement."""
    plan = Plan(size=(m, n, k), tile=tile, k_unroll=k_unroll, group_m=8)
    plan.check()
    launch_fp8(plan, tensors, stream)


_TILES = (((32, 128, 32), 2), ((32, 256, 32), 1), ((64, 128, 32), 1), ((64, 256, 32), 1), ((16, 128, 32), 2))
fp8_gemm = tuned(
    "fp8_gemm", TENSORS, _launch, ["m", "n", "k"], [{"tile": tile, "k_unroll": unroll} for tile, unroll in _TILES],
    m=int, n=int, k=int,
)  # fmt: skip
