"""What the row-scaled fp8 GEMMs share: C = A B^T * scale_a[m] * scale_b[n] in bf16, both operands in shared memory.

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
from flydsl.expr.buffer_ops import buffer_store
from kernels.kernels_common import bf16, require, require_tensors
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.layout_utils import swizzled_blocks
from kernels.mfma_epilogues import TileC
from kernels.mfma_preshuffle_pipeline import CHUNK_BYTES, WAVE, Product, concat, is_cdna4, require_types
from kernels.mfma_ring_pipeline import Ring, ring_sums
from kernels.sizes import require_elements, require_rows
from kernels.tensor_shim import GTensor, STensor

TENSORS = "A B_T C A_scale B_scale"
BLOCK_K = 128
TILES_OF_M = 4  # that the workgroups of a die take for each tile along N
# (M, N, K)
SHAPES = ((1, 128, 256), (33, 200, 384), (150, 330, 256))


@dataclass(frozen=True)
class Plan:
    """What a kernel is compiled for. See `compile_fp8_gemm_4w`."""

    ring: Ring
    remap: bool
    shuffled: bool


def reference(A: Any, B: Any, scale_a: Any, scale_b: Any) -> Any:
    """The result of torch in f32. A (M, K) and B (N, K) as numbers; scales of A's rows and of B's."""
    return A.float() @ B.float().T * scale_a[:, None] * scale_b


class ShuffledB:
    """A workgroup's rows of the shuffled B in shared memory, in the order in which lanes read them; see `TileA`.

    rows: of B; those up to a multiple of 16 are there as well.
    """

    def __init__(self, ring: Ring, product: Product, B: Any, rows: Any, block: Any, wave: Any, buffer: Any) -> None:
        self.tiling, self.product, self.buffer = ring.slab(ring.tile[1]), product, buffer
        self.first_band = wave * (ring.wave_tile[1] // 16)
        first, rows = block * ring.tile[1], (rows + 15) & -16
        here = (rows - first < ring.tile[1]).select(rows - first, fx.Int32(ring.tile[1]))
        self.memory = GTensor(B, fx.Int32, base_byte_offset=fx.Int64(first) * ring.k, num_records_bytes=here * ring.k)
        self.thread = fx.Int32(fx.thread_idx.x)

    def copy(self, k: Any, stage: Any) -> None:
        """Copy tile k to a buffer, past the registers: 16 rows are 16 K bytes apart in memory."""
        tiling, bytes_ = self.tiling, CHUNK_BYTES if is_cdna4() else 4
        band, at_a_time = 16 * tiling.row_bytes, tiling.threads * bytes_
        wave = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, self.thread >> 6))
        first = self.buffer + (wave * (WAVE * bytes_) + stage * tiling.a_bytes)
        for done in range(0, tiling.a_bytes, at_a_time):
            place = self.thread * bytes_ + done
            inside = place // band * (16 * tiling.k) + place % band + k * band
            fx.rocdl.raw_ptr_buffer_load_lds(self.memory.rsrc, first + done, bytes_, inside, 0)

    def fragment(self, ni: int, group: int, stage: Any) -> Any:
        """A lane's bytes of 16 rows and one group of K, as words."""
        tiling, bytes_ = self.tiling, self.product.lane_bytes[1]
        shared = STensor(self.buffer, fx.Int32, first=stage * tiling.a_bytes)
        first = (self.first_band + ni) * (4 * tiling.row_bytes) + (self.thread & (WAVE - 1)) * 4
        parts = [(group * bytes_ // CHUNK_BYTES + part) * WAVE * 4 for part in range(bytes_ // CHUNK_BYTES)]
        return concat([fx.Vector(shared.vec_load(first + part, 4)) for part in parts])


@flyc.kernel
def fp8_gemm_kernel(tensors: Any, m: fx.Int32, n: fx.Int32, tiles_k: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """One tile of C. tensors: by the names of TENSORS. tiles_k: the plan's."""
    A, B_T, C, A_scale, B_scale = tensors.values()
    require_types("fp8", A, B_T)
    require_tensors(tensors, C=fx.BFloat16, A_scale=fx.Float32, B_scale=fx.Float32, rows="C")
    ring = plan.ring
    tile_m, tile_n, _ = ring.tile
    shared = fx.SharedAllocator().allocate(ring.lds_bytes, 128).peek().ptr
    columns = (n + tile_n - 1) // tile_n
    block = fx.Int32(fx.block_idx.x)
    place = block // columns, block % columns
    if fx.const_expr(plan.remap):
        place = swizzled_blocks(block, fx.Int32(fx.grid_dim.x), columns, TILES_OF_M)
    product, a, b = ring.operands(A, B_T, m, n, place, shared)
    _, _, wave_n = ring.place_of_wave()
    if fx.const_expr(plan.shuffled):
        b = ShuffledB(ring, product, B_T, n, place[1], wave_n, b.buffer)
    sums: Any = ring_sums(ring, product, a, b, 0, tiles_k)
    store(TileC(C, fx.BFloat16, m, n, (tile_m, tile_n), place, ring.wave_tile), sums, A_scale, B_scale, m, n)


def store(c: TileC, sums: Any, A_scale: Any, B_scale: Any, m: Any, n: Any) -> None:
    """Write the sums times their scales; lanes beyond column n write nothing."""
    of_rows, of_columns = c.of_rows(A_scale, m), c.of_columns(B_scale, fx.Float32, n)
    for ni in range(c.num_acc_n):
        column = c.first_column + c.column + ni * 16
        for mi in range(c.m_repeat):
            values = bf16(sums[mi][ni] * of_rows[mi] * of_columns[ni])
            for ii in range(4):
                place = (c.row + (mi * 16 + ii)) * n + column
                buffer_store(values[ii], c.memory.rsrc, place, mask=column < n)


def fp8_launcher(ring: Ring, remap: bool, shuffled: bool) -> Any:
    """The launcher of (A, B_T, C, A_scale, B_scale, m, n, stream)."""
    ring.check()
    launch = partial(launch_tiles, Plan(ring, remap, shuffled))
    return launcher("launch_fp8_gemm", TENSORS, launch, m=fx.Int32, n=fx.Int32)


def launch_tiles(plan: Plan, tensors: dict[str, Any], m: Any, n: Any, stream: Any) -> None:
    """Launch a workgroup for each tile of C, inside of a launcher."""
    ring = plan.ring
    tile_m, tile_n, _ = ring.tile
    blocks = ((m + tile_m - 1) // tile_m) * ((n + tile_n - 1) // tile_n)
    A, B_T, C, A_scale, B_scale = tensors.values()
    require_rows("A", A, m, ring.k)
    if plan.shuffled:
        require_elements("B_T", B_T, (n + 15) // 16 * 16 * ring.k)
    else:
        require_rows("B_T", B_T, n, ring.k)
    require_rows("C", C, m, n)
    require_elements("A_scale", A_scale, m, or_more=True)
    require_elements("B_scale", B_scale, n, or_more=True)
    # Four waves of a workgroup are one on each SIMD, and may have all of its registers.
    attributes = for_waves(ring.threads // (4 * WAVE))
    kernel = fp8_gemm_kernel(tensors, m, n, ring.tiles_k, plan, value_attrs=attributes)
    launch_some(kernel, blocks, blocks, ring.threads, stream)


def fp8_ring(
    K: int, tile: tuple[int, int], waves: tuple[int, int], steps: tuple[int, int] = (64, 64), unroll: bool = False
) -> Ring:
    """The ring of a tile (M, N). steps: what the tile must be a multiple of. Raises ArgumentError."""
    for name, extent, step in zip(("BLOCK_M", "BLOCK_N"), tile, steps, strict=True):
        require(extent > 0 and extent % step == 0, f"{name}={extent}", f"a multiple of {step}")
    require(K > 0 and K % BLOCK_K == 0, f"K={K}", f"a multiple of {BLOCK_K}")
    return Ring("fp8", K, (*tile, BLOCK_K), (*waves, 1), unroll=0 if unroll else 1)


# Rows and columns of a tile, and waves along N.
_TILES = ((64, 64, 2), (64, 128, 2), (128, 128, 2), (128, 256, 4), (256, 256, 2), (256, 256, 4))


@chosen(TENSORS, "m n k shuffled", _TILES)
def fp8_gemm(tensors: dict[str, Any], m: fx.Int32, n: fx.Int32, k: int, shuffled: bool, tile: Any, stream: Any) -> None:
    """The product with a tile, and four or eight waves, that are chosen by measurement."""
    tile_m, tile_n, waves = tile
    launch_tiles(Plan(fp8_ring(k, (tile_m, tile_n), (2, waves)), True, shuffled), tensors, m, n, stream)
