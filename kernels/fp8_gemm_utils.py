"""Common parts of row-scaled fp8 GEMMs: C = A B^T * scale_a[m] * scale_b[n] in bf16, both operands in shared memory.

Tiles of A and B, 128 columns of K, go straight to a ring of two buffers (`mfma_ring_pipeline`); B may be shuffled
beforehand, and then lies in shared memory as it does outside, without a swizzle. The number of waves and what each
computes is the only difference between `fp8_gemm_4wave` and `fp8_gemm_8wave`. M and N are any; rows and columns beyond
them are read as 0 and not written. Workgroups of one die get neighbouring tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import bf16, require
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.layout_utils import swizzled_blocks
from kernels.mfma_epilogues import TileC
from kernels.mfma_preshuffle_pipeline import TileA, require_types
from kernels.mfma_products import CHUNK_BYTES, WAVE, concat
from kernels.mfma_ring_pipeline import Ring, ring_sums
from kernels.preshuffle_gemm import reference
from kernels.sizes import require_elements, require_rows

__all__ = ["SHAPES", "fp8_gemm", "fp8_launcher", "fp8_plan", "reference"]

TENSORS = "A B_T C A_scale B_scale"
BLOCK_K = 128
TILES_OF_M = 4  # that the workgroups of a die take for each tile along N
# (M, N, K)
SHAPES = ((1, 128, 256), (33, 200, 384), (150, 330, 256))


@dataclass(frozen=True, kw_only=True)
class Plan(Ring):
    """The compile-time parameters of a kernel. See `compile_fp8_gemm_4w`."""

    remap: bool = True
    shuffled: bool = False


class ShuffledB(TileA):
    """A workgroup's rows of the shuffled B in shared memory, in the order in which lanes read them."""

    def _copied(self, first: int, bytes_: int, k: Any) -> tuple[Any, Any]:
        """(offset, soffset): 16 rows of a tile lie side by side, and 16 K bytes apart in memory."""
        place, band = self.thread * bytes_ + first, 16 * self.tiling.row_bytes
        return place // band * (16 * self.tiling.k) + place % band + k * band, 0

    def fragment(self, ni: int, group: int, stage: Any) -> Any:
        """A lane's bytes of 16 rows and one group of K, as words."""
        first = (self.first_row + ni * 16) * (self.tiling.row_bytes // 4) + self.lane * 4
        parts = self.product.lane_bytes[1] // CHUNK_BYTES
        places = [first + (group * parts + part) * WAVE * 4 for part in range(parts)]
        return concat([fx.Vector(self._shared(stage).vec_load(place, 4)) for place in places])


@flyc.kernel
def fp8_gemm_kernel(tensors: Any, m: fx.Int32, n: fx.Int32, tiles_k: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """One tile of C. tensors: by the names of TENSORS. tiles_k: the plan's."""
    A, B_T, C, A_scale, B_scale = tensors.values()
    tile_m, tile_n, _ = plan.tile
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    columns = (n + tile_n - 1) // tile_n
    block = fx.Int32(fx.block_idx.x)
    place = block // columns, block % columns
    if fx.const_expr(plan.remap):
        place = swizzled_blocks(block, fx.Int32(fx.grid_dim.x), columns, TILES_OF_M)
    # Shuffled rows up to a multiple of 16 are there as well.
    of_b = ((n + 15) & -16, place, shared, ShuffledB) if plan.shuffled else (n, place, shared)
    product, a, b = plan.operands(A, B_T, m, *of_b)
    acc: Any = ring_sums(plan, product, a, b, 0, tiles_k)
    store(TileC(C, fx.BFloat16, m, n, (tile_m, tile_n), place, plan.wave_tile), acc, A_scale, B_scale, m, n)


def store(c: TileC, acc: Any, A_scale: Any, B_scale: Any, m: Any, n: Any) -> None:
    """Write the sums times their scales; lanes beyond column n write nothing."""
    of_rows, of_columns = c.of_rows(A_scale, m), c.of_columns(B_scale, fx.Float32, n)
    for ni in range(c.num_acc_n):
        column = c.first_column + c.column + ni * 16
        for mi in range(c.m_repeat):
            values = bf16(acc[mi][ni] * of_rows[mi] * of_columns[ni])
            for ii in range(4):
                c.memory.store((c.row + (mi * 16 + ii), column), values[ii], mask=column < n)


def fp8_launcher(plan: Plan) -> Any:
    """The launcher of (A, B_T, C, A_scale, B_scale, m, n, stream)."""
    return launcher("launch_fp8_gemm", TENSORS, partial(launch_tiles, plan), m=fx.Int32, n=fx.Int32)


def launch_tiles(plan: Plan, tensors: dict[str, Any], m: Any, n: Any, stream: Any) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    tile_m, tile_n, _ = plan.tile
    blocks = ((m + tile_m - 1) // tile_m) * ((n + tile_n - 1) // tile_n)
    A, B_T, C, A_scale, B_scale = tensors.values()
    require_types("fp8", A, B_T)
    require_rows("A", A, m, plan.k)
    if plan.shuffled:
        require_elements("B_T", B_T, (n + 15) // 16 * 16 * plan.k)
    else:
        require_rows("B_T", B_T, n, plan.k)
    require_rows("C", C, m, n, fx.BFloat16)
    require_elements("A_scale", A_scale, m, fx.Float32, or_more=True)
    require_elements("B_scale", B_scale, n, fx.Float32, or_more=True)
    # Four waves of a workgroup are one on each SIMD, and may have all of its registers.
    attributes = for_waves(plan.threads // (4 * WAVE))
    kernel = fp8_gemm_kernel(tensors, m, n, plan.tiles_k, plan, value_attrs=attributes)
    launch_some(kernel, blocks, blocks, plan.threads, stream)


def fp8_plan(
    K: int, tile: tuple[int, int], waves: tuple[int, int], steps: tuple[int, int] = (64, 64), unroll: bool = False,
    **how: bool,
) -> Plan:  # fmt: skip
    """The plan of a tile (M, N). steps: what it must be a multiple of. how: remap, shuffled. Raises ArgumentError."""
    for name, extent, step in zip(("BLOCK_M", "BLOCK_N"), tile, steps, strict=True):
        require(extent > 0 and extent % step == 0, f"{name}={extent}", f"a multiple of {step}")
    require(K > 0 and K % BLOCK_K == 0, f"K={K}", f"a multiple of {BLOCK_K}")
    return Plan(dtype="fp8", k=K, tile=(*tile, BLOCK_K), waves=(*waves, 1), unroll=0 if unroll else 1, **how)


# Rows and columns of a tile, and waves along N.
_TILES = ((64, 64, 2), (64, 128, 2), (128, 128, 2), (128, 256, 4), (256, 256, 2), (256, 256, 4))


@chosen(TENSORS, "m n k shuffled", _TILES)
def fp8_gemm(tensors: dict[str, Any], m: fx.Int32, n: fx.Int32, k: int, shuffled: bool, tile: Any, stream: Any) -> None:
    """The product with a tile, and four or eight waves, that are chosen by measurement."""
    tile_m, tile_n, waves = tile
    launch_tiles(fp8_plan(k, (tile_m, tile_n), (2, waves), shuffled=shuffled), tensors, m, n, stream)
