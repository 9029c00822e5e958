"""C = A B^T of fp8 whose scales belong to blocks: 1 x 128 of A, and 128 x 128 of B, which is shuffled beforehand.

    C[m, n] = sum over kb of (A[m, kb] . B[n, kb]) * (scale_a[kb, m] * scale_b[n // 128, kb])

where kb is a block of 128 along K. The matrix instructions sum up a block; then it is scaled and added to the total, in
f32. Everything else is as in `preshuffle_gemm`; scales are loaded one tile ahead.

    launch = compile_blockscale_preshuffle_gemm(N=7168, K=2304, tile_m=64, tile_n=128, tile_k=128)
    launch(C, A, shuffle_weight(B), scale_a, scale_b, M, N)

64 x 128 x 128: 162 VGPRs, 64 of which hold totals and a block's sums; three workgroups share a compute unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels import preshuffle_gemm
from kernels.kernels_common import ceil_div, require
from kernels.launches import chosen, launcher
from kernels.mfma_epilogues import TileC
from kernels.mfma_preshuffle_pipeline import TileB, Tiling, main_loop, multiply_groups
from kernels.mfma_products import WAVES, is_cdna4
from kernels.preshuffle_gemm import launch_tiles
from kernels.sizes import require_rows
from kernels.tensor_shim import GTensor

BLOCK = 128
TENSORS = "C A B scale_a scale_b"
# (M, N, K), and the tile that the documents take for it.
SHAPES = ((1, 128, 256), (33, 192, 256), (64, 256, 512))


def reference(A: Any, B: Any, scale_a: Any, scale_b: Any) -> Any:
    """The result of torch in f32. A (M, K), B (N, K), scale_a (K/128, M), scale_b (N/128, K/128)."""
    (_, k), n = A.shape, B.shape[0]
    of_a = scale_a.T.repeat_interleave(BLOCK, 1)
    of_b = scale_b.repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)
    return (A.float() * of_a[:, :k]) @ (B.float() * of_b[:, :k]).T


@dataclass(frozen=True, kw_only=True)
class Plan(preshuffle_gemm.Plan):
    """The compile-time parameters of a kernel; see `compile_blockscale_preshuffle_gemm`."""

    unroll: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        tile_n, tile_k = self.tiling.tile_n, self.tiling.tile_k
        require(tile_k % BLOCK == 0, f"tile_k={tile_k}", f"a multiple of {BLOCK}")
        require(BLOCK % (tile_n // WAVES) == 0, f"tile_n={tile_n}", "64, 128, 256 or 512")

    def require_tensors(self, tensors: dict[str, Any], M: Any, N: int) -> None:
        """Refuse tensors of other types and sizes than the launch's."""
        preshuffle_gemm.require_product("fp8", self.out, tensors, M, N, self.tiling.k)
        blocks_n, blocks_k = ceil_div(N, BLOCK), self.tiling.k // BLOCK
        require_rows("scale_a", tensors["scale_a"], blocks_k, M, fx.Float32)
        require_rows("scale_b", tensors["scale_b"], blocks_n, blocks_k, fx.Float32)


class BlockScales:
    """The factors of the rows and the columns of a wave's tile of C."""

    def __init__(self, plan: Plan, c: TileC, scale_a: Any, scale_b: Any, rows: Any, columns: int) -> None:
        self.plan, self.rows, self.blocks = plan, rows, plan.tiling.tile_k // BLOCK  # of a tile, along K
        blocks_k, blocks_n = plan.tiling.k // BLOCK, ceil_div(columns, BLOCK)
        self.a = GTensor(scale_a, fx.Float32, num_records_bytes=rows * (blocks_k * 4))
        self.b = GTensor(scale_b, fx.Float32, num_records_bytes=blocks_n * blocks_k * 4)
        self.first_a = c.first_row + (c.lane >> 4) * 4
        column = c.first_column + (c.thread >> 6) * (plan.tiling.tile_n // WAVES)
        self.first_b = (column // BLOCK) * blocks_k

    def load(self, k: Any, stage: int, before: Any) -> Any:
        """([block][mi]: four rows of A, [block]: of B) of tile k."""
        blocks = self.blocks
        first = k * blocks
        of_a = [
            [fx.Vector(self.a.vec_load(self.first_a + mi * 16, 4, soffset_bytes=(first + block) * self.rows * 4))
             for mi in range(self.plan.tiling.m_repeat)]
            for block in range(blocks)
        ]  # fmt: skip
        of_b = self.b.vec_load(self.first_b + first, blocks)
        return of_a, [of_b] if blocks == 1 else [fx.Vector(of_b)[block] for block in range(blocks)]


def multiply_blocks(
    b: TileB, acc: Any, now_b: Any, scales: Any, fragment: Any, *, rows_at_a_time: int | None = None
) -> Any:
    """[mi][ni]: the totals after a tile.

    scales: ([block][mi] four rows of A, [block] of the columns); of the columns also [block][ni]. rows_at_a_time: tiles
    of 16 rows whose sums of a block take registers at the same time, by default all.
    """
    groups, count = b.groups // len(scales[0]), rows_at_a_time or len(acc)
    for block, (of_a, of_b) in enumerate(zip(*scales, strict=True)):
        of_columns = of_b if isinstance(of_b, list) else [of_b] * b.tiling.num_acc_n
        of_block, totals = range(block * groups, (block + 1) * groups), []
        for first in range(0, len(acc), count):
            zeros = b.product.tile_of_zeros(b.tiling)[first : first + count]
            parts = multiply_groups(b, zeros, now_b, fragment, groups=of_block, first_row=first)
            for part, rows, total in zip(parts, of_a[first:], acc[first:], strict=False):
                factors = [rows * column for column in of_columns]
                totals.append([fx.math.fma(*terms) for terms in zip(part, factors, total, strict=True)])
        acc = totals
    return acc


@flyc.kernel
def blockscale_preshuffle_gemm_kernel(
    tensors: Any, M: fx.Int32, N: fx.Constexpr[int], plan: fx.Constexpr[Plan]
) -> None:
    """One tile of C. tensors: by the names of TENSORS."""
    product, _, a, b, c = plan.operands(tensors, M, N)
    scales = BlockScales(plan, c, tensors["scale_a"], tensors["scale_b"], M, N)

    def multiply(acc: Any, now_b: Any, now_scales: Any, fragment: Any, stage: int) -> Any:
        return multiply_blocks(b, acc, now_b, now_scales, fragment)

    acc = main_loop(
        a, b, product.tile_of_zeros(plan.tiling), multiply,
        scales=scales.load, extra_loads=plan.tiling.m_repeat * scales.blocks + 1, asynchronous=plan.asynchronous,
        unroll=plan.unroll, ahead=(2 if is_cdna4() else 1, 0),
    )  # fmt: skip
    c.store(lambda mi, ni, ii: acc[mi][ni][ii], a.buffer if plan.cshuffle else None)


@cache
def compile_blockscale_preshuffle_gemm(
    *, M: int = 0, N: int, K: int, tile_m: int, tile_n: int, tile_k: int, scale_block_k: int = BLOCK,
    out_dtype: str = "bf16", use_cshuffle_epilog: bool = False, waves_per_eu: int | None = None,
    use_async_copy: bool = False, unroll: bool = False,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, M, N, stream), every tensor flattened to one dimension.

    The arguments are those of `compile_preshuffle_gemm_a8`. scale_block_k: 128. unroll: no loop over K on the device.
    """
    require(scale_block_k == BLOCK, f"scale_block_k={scale_block_k}", str(BLOCK))
    require(N > 0, f"N={N}", f"a multiple of tile_n={tile_n}")
    tiling = Tiling(dtype="fp8", k=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    plan = Plan(
        tiling=tiling,
        n=N,
        out_dtype=out_dtype,
        cshuffle=use_cshuffle_epilog,
        asynchronous=use_async_copy,
        unroll=unroll,
    )
    launch = partial(launch_tiles, blockscale_preshuffle_gemm_kernel, plan, waves_per_eu)
    return launcher("launch_blockscale_preshuffle_gemm", TENSORS, launch, M=fx.Int32, N=int)


_TILES = ((16, 64, 256), (16, 128, 256), (32, 64, 256), (32, 128, 128), (64, 64, 128), (64, 128, 128), (64, 256, 128))


@chosen(TENSORS, "m_in N K", _TILES)
def blockscale_preshuffle_gemm(
    tensors: dict[str, Any], m_in: fx.Int32, N: int, K: int, out_dtype: str, tile: Any, stream: Any
) -> None:
    """The product with a tile that is chosen by measurement."""
    tile_m, tile_n, tile_k = tile
    tiling = Tiling(dtype="fp8", k=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    plan = Plan(tiling=tiling, n=N, out_dtype=out_dtype)
    launch_tiles(blockscale_preshuffle_gemm_kernel, plan, None, tensors, m_in, N, stream)
