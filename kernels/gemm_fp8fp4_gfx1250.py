"""C = A B^T of fp8 and fp4 on gfx1250, with a scale for each 32 elements of a row (MX), or one for each row.

    launch = compile_mxfp4_gemm(N=4096, K=4096, tile_m=128, tile_n=256, tile_k=256, out_dtype="bf16")
    launch(C, A, shuffle_weight(B), tiled_scales(scale_a, 64, 2), tiled_scales(scale_b, 128, 2), M, N, lda, ldc)

data_format: fp8 (E4M3FN, of A and B), fp4 (E2M1, two to a byte), a8w4 (A in fp8, B in fp4). scale_mode:

- mxscale: scales are E8M0 bytes, for 32 elements of K each, in the order of `tiled_scales`; the matrix instruction
  multiplies by them. C = sum of a 2^(sa - 127) b 2^(sb - 127).
- ptpc: scales are f32, one for each row of A and of B; C = (A B^T) scale_b[n] scale_a[m].

A is as it is in memory, with rows of lda elements; B (N, K) is shuffled beforehand (`shuffles.shuffle_weight`). The
tensor data mover brings tiles of A, B and the scales (`gemm_common_gfx1250`). B is the first operand of the
instruction, so that a lane holds eight neighbours of a row of C, and of fp4 32 columns of C at a time. The fragments of
B for 128 columns of K are read first, those of A one ahead of their products.

128 x 256 x 128 of fp8 by 2 x 4 waves: 128 registers hold sums and 96 fragments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.rocdl import tdm_ops
from kernels.gemm_common_gfx1250 import (
    LANES,
    SIZE,
    ClusterShape,
    Loads,
    TileStream,
    WavePlan,
    chosen_by_wave,
    opaque,
    require_gfx1250,
    round_up,
    run_pipeline,
    scheduled,
)
from kernels.kernels_common import bytes_of, ceil_div, require, require_tensors
from kernels.launches import for_waves, launcher, tuned
from kernels.sizes import require_elements, require_pitch
from kernels.tensor_shim import GTensor, STensor
from kernels.wmma_gemm_gfx1250 import place_of_wave, store_by_lanes, store_by_mover
from kernels.wmma_pipeline import DTYPES

# data_format: bits of an element of A and of B.
FORMATS = {"fp8": (8, 8), "fp4": (4, 4), "a8w4": (8, 4)}
TENSORS = "C A B A_scale B_scale"
STEP = 128  # columns of K of an instruction
BLOCK = 32  # elements of a row that share a scale
PAD = 16  # bytes after a row of A in shared memory
ONE = 0x7F7F7F7F  # four scales of 1
_FORMAT_CODES = {8: 0, 4: 4}
# (M, N, K)
SHAPES = ((128, 256, 256), (33, 512, 512), (16, 256, 1024))


def reference(A: Any, B: Any, scale_a: Any, scale_b: Any) -> Any:
    """The result of torch in f32. A (M, K), B (N, K) as numbers; scales as numbers, (rows, K / 32) or (rows,)."""

    def scaled(x: Any, scale: Any) -> Any:
        return x.float() * (scale[:, None] if scale.ndim == 1 else scale.repeat_interleave(BLOCK, 1))

    return scaled(A, scale_a) @ scaled(B, scale_b).T


def tiled_scales(scale: Any, wave_rows: int, waves: int = 1) -> Any:
    """(rows, K/32) of E8M0 bytes in the order in which waves of `wave_rows` rows read them: one dimension.

    Rows are filled up to whole tiles of `waves` waves with 127, a scale of 1. With rep = wave_rows / 16
    and S = K / 32, scale (m, k) goes to row (m // wave_rows) 16 + m % 16, of rep S bytes, and there to byte
    (k // 4) 4 rep + (m % wave_rows // 16) 4 + k % 4. Raises ArgumentError for other sizes.
    """
    import torch

    rows, columns = scale.shape
    require(wave_rows > 0 and wave_rows % SIZE == 0, f"waves of {wave_rows} rows", "a multiple of 16")
    require(columns % 4 == 0, f"a row of {columns} scales", "a multiple of 4, one for 32 elements")
    tile = wave_rows * waves
    padded = torch.full((ceil_div(rows, tile) * tile, columns), 127, dtype=torch.uint8, device=scale.device)
    padded[:rows] = scale.view(torch.uint8)
    tiles = padded.view(-1, wave_rows // SIZE, SIZE, columns // 4, 4).permute(0, 2, 3, 1, 4)
    return tiles.contiguous().view(-1)


@dataclass(frozen=True, kw_only=True)
class Plan(WavePlan):
    """The compile-time parameters of a kernel. See `compile_fp8fp4_gemm`.

    shuffled: B lies in shared memory as `shuffle_weight` orders it, and not in rows like A.
    """

    data_format: str
    shuffled: bool
    has_blocks: bool
    n: int
    k: int
    tile: tuple[int, int, int]
    waves: tuple[int, int]
    out: Any
    buffers: int
    tdm_store: bool
    cluster: ClusterShape
    specialized: bool
    split_k: int

    @property
    def bits(self) -> tuple[int, int]:
        """The width of an element of A and of B."""
        return FORMATS[self.data_format]

    @property
    def step(self) -> int:
        """Columns of K of an instruction."""
        return STEP

    @property
    def pitch_b(self) -> int:
        """Bytes that a row of B's tile takes in shared memory."""
        return self.row_bytes[1] + (0 if self.shuffled else PAD)

    @property
    def wide(self) -> int:
        """Columns of C of an instruction."""
        return 2 * SIZE if self.data_format == "fp4" else SIZE

    @property
    def row_bytes(self) -> tuple[int, int]:
        """The bytes of a tile's row of A and of B."""
        a, b = (self.tile[2] * bits // 8 for bits in self.bits)
        return a, b

    @property
    def scale_bytes(self) -> tuple[int, int]:
        """The bytes of the 16 rows of scales of a wave: a row of A's, and of B's, in a tile."""
        a, b = (rows // SIZE * self.tile[2] // BLOCK for rows in self.wave_tile)
        return a, b

    @property
    def starts(self) -> tuple[int, int, int, int, int]:
        """The offsets in a buffer of A, B, the scales of A and of B, and the end of the last."""
        a, b = self.tile[0] * (self.row_bytes[0] + PAD), self.tile[1] * self.row_bytes[1]
        scales = [SIZE * w * s if self.has_blocks else 0 for w, s in zip(self.waves, self.scale_bytes, strict=True)]
        return 0, a, a + b, a + b + scales[0], a + b + sum(scales)

    @property
    def buffer_bytes(self) -> int:
        """Tiles of A, B and the scales."""
        return round_up(self.starts[-1])

    def check(self) -> None:
        """Raise ArgumentError where sizes do not fit."""
        self.check_sizes(STEP, self.tile[1], self.wide)
        streams = 4 if self.has_blocks else 2
        require(not self.specialized or self.threads >= streams * LANES, f"{self.threads // LANES} waves",
                f"at least {streams} for wave_specialized_tdm")  # fmt: skip


@flyc.kernel
def fp8fp4_kernel(
    tensors: Any, m: fx.Int32, lda: fx.Int32, ldc: fx.Int32, turns: fx.Int32, plan: fx.Constexpr[Plan]
) -> None:
    """One tile of C. tensors: by the names of TENSORS. turns: the plan's."""
    C, A, B, scale_a, scale_b = tensors.values()
    require_gfx1250("gemm_fp8fp4_gfx1250")
    fx.rocdl.disable_xdl_arb_stall()
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    block = fx.Int32(fx.block_idx.x), fx.Int32(fx.block_idx.y)
    streams = tile_streams(plan, (A, B, scale_a, scale_b), m, lda, block, shared)
    loads = Loads(plan.pipeline, streams, plan.buffer_bytes)
    compute = Compute(plan, shared)
    acc = run_pipeline(plan.pipeline, loads, plan.cluster, compute.compute_tile, compute.zeros(), turns)
    first = block[0] * plan.tile[0], block[1] * plan.tile[1]
    result = compute.by_columns(acc)
    if not plan.has_blocks:
        result = scaled_rows(plan, scale_a, scale_b, m, first, result)
    if plan.tdm_store and plan.split_k == 1:
        store_by_mover(plan, C, m, ldc, first, result, shared)
    else:
        store_by_lanes(plan, C, m, ldc, first, result)


def tile_streams(
    plan: Plan, operands: tuple[Any, Any, Any, Any], m: Any, lda: Any, block: tuple[Any, Any], shared: Any
) -> list[TileStream]:
    """The tiles that a wave asks for: its part of all, or all of one."""
    (tile_m, tile_n, _), (a_bytes, b_bytes), (a, b, scale_a, scale_b) = plan.tile, plan.row_bytes, operands
    masks, starts = plan.cluster.masks(), plan.starts
    parts = 1 if plan.specialized else plan.threads // LANES
    pitch_a, band = lda * plan.bits[0] // 8, SIZE * plan.k * plan.bits[1] // 8
    # The first tile along K, of those that the workgroups share.
    tile = fx.Int32(fx.block_idx.z) * plan.pipeline.tiles if plan.split_k > 1 else 0
    made = [
        TileStream(
            tdm_ops.make_tensor_descriptor_2d(
                a, shared, (block[0] * tile_m, tile * a_bytes), (tile_m, a_bytes), (pitch_a, 1), (tile_m, a_bytes),
                elem_bytes=1, pad_interval=a_bytes, pad_amount=PAD, num_warps=parts, workgroup_mask=masks[0],
                oob_outer_bound=m,
            ),
            a_bytes,
        ),
        TileStream(
            tdm_ops.make_tensor_descriptor_2d(
                b, shared, (block[1] * (tile_n // SIZE), tile * (SIZE * b_bytes)), (tile_n // SIZE, SIZE * b_bytes),
                (band, 1), (tile_n // SIZE, SIZE * b_bytes), elem_bytes=1, num_warps=parts, workgroup_mask=masks[1],
                lds_byte_offset=starts[1],
            ),
            SIZE * b_bytes,
        ),
    ]  # fmt: skip
    scales = zip(
        (scale_a, scale_b), block, plan.waves, plan.wave_tile, plan.scale_bytes, masks, starts[2:], strict=False
    )
    for scale, number, waves, rows, bytes_, mask, start in scales if plan.has_blocks else ():
        shape, pitch = (SIZE * waves, bytes_ // 4), rows // SIZE * plan.k // BLOCK // 4
        made.append(
            TileStream(
                tdm_ops.make_tensor_descriptor_2d(
                    scale, shared, (number * (SIZE * waves), tile * shape[1]), shape, (pitch, 1), shape, elem_bytes=4,
                    num_warps=fewer(parts, SIZE * waves), workgroup_mask=mask, lds_byte_offset=start,
                ),
                bytes_,
            )
        )  # fmt: skip
    return [chosen_by_wave(made, fx.rocdl.wave_id())] if plan.specialized else made


def fewer(waves: int, rows: int) -> int:
    """`waves`, which must divide the workgroup's rows evenly."""
    require(rows % waves == 0, f"{rows} rows of scales", f"a multiple of {waves} waves, or wave_specialized_tdm=True")
    return waves


class Compute:
    """A wave's products of a tile in shared memory."""

    def __init__(self, plan: Any, shared: Any) -> None:
        self.plan, self.shared = plan, shared
        lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
        self.half, inner = lane >> 4, lane & (SIZE - 1)
        self.pitch_a, self.band = plan.row_bytes[0] + PAD, SIZE * plan.pitch_b
        self.along = SIZE if plan.shuffled else 1  # between neighbours along K, where 16 rows of B lie together
        lds_a = (row + inner) * self.pitch_a + self.half * 16
        lds_b = column // SIZE * self.band + self.half * (16 * self.along)
        lds_b = lds_b + inner * (16 if plan.shuffled else plan.pitch_b)
        places = [lds_a, lds_b, *(self.lds_offsets_of_scales(row, column, inner) if plan.has_blocks else ())]
        self.lds_offsets = [
            [opaque(place + (start + stage * plan.buffer_bytes)) for stage in range(plan.buffers)]
            for place, start in zip(places, plan.starts, strict=False)
        ]
        self.rows, self.columns = plan.wave_tile[0] // SIZE, plan.wave_tile[1] // plan.wide

    def lds_offsets_of_scales(self, row: Any, column: Any, inner: Any) -> tuple[Any, Any]:
        """A lane's first scales of A and of B. row, column: of the wave; inner: the lane's row."""
        plan = self.plan
        waves = row // plan.wave_tile[0], column // plan.wave_tile[1]
        of_a, of_b = ((SIZE * w + inner) * s for w, s in zip(waves, plan.scale_bytes, strict=True))
        # The upper lanes have the second 16 columns.
        return of_a, of_b + self.half * 4 if plan.wide > SIZE else of_b

    def zeros(self) -> list[list[Any]]:
        """Sums to begin with."""
        count = self.plan.wide // 2
        return [[fx.Vector.filled(count, 0.0, fx.Float32) for _ in range(self.columns)] for _ in range(self.rows)]

    def words(self, operand: int, stage: int, first: int, distances: list[int]) -> Any:
        """16 bytes each from several places of an operand, as words."""
        tile = STensor(self.shared, fx.Int32, first=self.lds_offsets[operand][stage])
        pieces = [fx.Vector(tile.vec_load((first + distance) // 4, 4)) for distance in distances]
        result = pieces[0]
        for piece in pieces[1:]:
            result = result.shuffle(piece, list(range(result.numel + 4)))
        return result

    def load_a(self, stage: int, step: int, mi: int) -> Any:
        """A lane's part of 16 rows of A: every other 16 bytes."""
        bytes_ = self.plan.step * self.plan.bits[0] // 8
        first = SIZE * mi * self.pitch_a + bytes_ * step
        return self.words(0, stage, first, list(range(0, bytes_, 32)))

    def load_b(self, stage: int, step: int, ni: int, start: int = 0) -> Any:
        """A lane's part of the columns of an instruction: every other 16 bytes. start: of B's rows, in bytes."""
        bytes_, wide = self.plan.step * self.plan.bits[1] // 8, self.plan.wide // SIZE
        bands = range(ni * wide, (ni + 1) * wide)
        distances = [band * self.band + self.along * piece for band in bands for piece in range(0, bytes_, 32)]
        return self.words(1, stage, start + self.along * bytes_ * step, distances)

    def scales(self, side: int, stage: int, step: int) -> list[Any]:
        """The scales of the instructions along M (side 0) or N, a word each."""
        count, stride = (self.rows, 1) if side == 0 else (self.columns, self.plan.wide // SIZE)
        if not self.plan.has_blocks:
            return [fx.Int32(ONE)] * count
        tile = STensor(self.shared, fx.Int32, first=self.lds_offsets[2 + side][stage])
        first = step * (self.plan.wave_tile[side] // SIZE)
        at_once = 4 if count % 4 == 0 and stride == 1 else 2 if count % 2 == 0 and stride == 1 else 1
        words: list[Any] = []
        for i in range(0, count, at_once):
            loaded = tile.vec_load(first + i * stride, at_once)
            words += [loaded] if at_once == 1 else [fx.Vector(loaded)[j] for j in range(at_once)]
        return words

    def compute_tile(
        self, acc: Any, stage: int, between_steps: Callable[[], Any] | None
    ) -> tuple[list[list[Any]], Any]:
        """The sums with the products of the tile in a buffer added, and what `between_steps` gives."""
        acc, result, steps = [list(totals) for totals in acc], None, self.plan.tile[2] // self.plan.step
        for step in range(steps):
            scales = [self.scales(side, stage, step) for side in range(2)]
            frag_b, following = (
                [self.load_b(stage, step, ni) for ni in range(self.columns)],
                self.load_a(stage, step, 0),
            )
            for mi in range(self.rows):
                a = following
                if mi + 1 < self.rows:
                    following = self.load_a(stage, step, mi + 1)
                acc[mi] = [
                    self.multiply(frag_b[ni], a, total, scales[1][ni], scales[0][mi])
                    for ni, total in enumerate(acc[mi])
                ]
                if between_steps is not None and step * self.rows + mi == steps * self.rows // 2:
                    result = between_steps()
                fx.rocdl.sched_barrier(0)  # or every fragment would be read beforehand, into registers of its own
        return acc, result

    def multiply(self, b: Any, a: Any, total: Any, scale_b: Any, scale_a: Any) -> Any:
        """The sums of a tile of C, transposed."""
        kind = fx.T.vec(total.numel, fx.Float32.ir_type)
        if self.plan.wide > SIZE:
            return fx.Vector(fx.rocdl.wmma_scale_f32_32x16x128_f4(kind, b, a, total, scale_b, scale_a))
        codes = [_FORMAT_CODES[bits] for bits in self.plan.bits]
        product = fx.rocdl.wmma_scale_f32_16x16x128_f8f6f4(
            kind, b, a, total, scale_b, scale_a, fmtA=codes[1], fmtB=codes[0]
        )
        return fx.Vector(product)

    def by_columns(self, acc: Any) -> list[list[Any]]:
        """The sums by 16 columns."""
        if self.plan.wide == SIZE:
            return [list(totals) for totals in acc]
        return [
            [total.shuffle(total, list(range(first, first + 8))) for total in totals for first in (0, 8)]
            for totals in acc
        ]


def scaled_rows(plan: Plan, scale_a: Any, scale_b: Any, m: Any, first: tuple[Any, Any], acc: Any) -> list[list[Any]]:
    """The sums times the scales of their columns, then of their rows."""
    lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
    of_rows = GTensor(scale_a, fx.Float32, num_records_bytes=m * 4)
    of_columns = GTensor(scale_b, fx.Float32, num_records_bytes=plan.n * 4)
    columns = first[1] + column + (lane >> 4) * 8
    factors = [of_columns.vec_load(columns + SIZE * ni, 8) for ni in range(len(acc[0]))]
    result = []
    for mi, totals in enumerate(acc):
        factor = of_rows.load(first[0] + row + (lane & (SIZE - 1)) + SIZE * mi)
        result.append([total * factors[ni] * factor for ni, total in enumerate(totals)])
    return result


@cache
def compile_fp8fp4_gemm(
    *, data_format: str = "fp4", scale_mode: str = "mxscale", N: int, K: int, tile_m: int = 128, tile_n: int = 128,
    tile_k: int = 128, m_warp: int = 2, n_warp: int = 2, num_buffers: int = 2, waves_per_eu: int | None = None,
    l2_prefetch_distance: int = 2, cluster_m: int = 1, cluster_n: int = 1, use_tdm_store: bool = True,
    out_dtype: str = "f32", inst_prefetch: bool = False, wave_specialized_tdm: bool = False, split_k: int = 1,
    use_scale_opsel: bool = False, expert_sched_mode: bool = True, atomic_barrier_enable: bool = False,
    b_streaming: bool = False, scale_load_path: str = "tdm", fp8_schedule: str = "auto",
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, A_scale, B_scale, M, N, lda, ldc, stream).

    C (M, N) with rows of ldc elements, A (M, K) with rows of lda, B (N, K) shuffled, in one dimension or two; 4-bit
    elements are two to a byte, and their tensors of bytes. Scales: bytes in the order of `tiled_scales` for the rows of
    a wave, tile_m / m_warp of A and tile_n / n_warp of B, filled up to whole tiles; with ptpc f32 (M) and (N). N and K
    are known at compile time, and the launch's N is not used. out_dtype: f32, bf16, f16. split_k: workgroups that share
    a tile of C, along K; with more than one the caller clears C, to which each adds its sums, in pairs if C is of 16
    bits. One schedule serves all: l2_prefetch_distance, inst_prefetch, use_scale_opsel, b_streaming and fp8_schedule
    are accepted and have no effect. Unsupported: atomic_barrier_enable, scales without the tensor data mover
    (scale_load_path). Raises ArgumentError for these and where sizes do not fit, and at the launch on another GPU.
    """
    require(data_format in FORMATS, f"data_format={data_format!r}", f"one of {', '.join(FORMATS)}")
    require(scale_mode in ("mxscale", "ptpc"), f"scale_mode={scale_mode!r}", "mxscale or ptpc")
    require(scale_mode == "mxscale" or data_format != "fp4", "ptpc of fp4", "fp8 or a8w4")
    require(out_dtype in DTYPES, f"out_dtype={out_dtype!r}", f"one of {', '.join(DTYPES)}")
    require(not atomic_barrier_enable, "atomic_barrier_enable=True", "unsupported")
    require(scale_load_path == "tdm", f"scale_load_path={scale_load_path!r}", "tdm: others are unsupported")
    plan = Plan(
        data_format=data_format,
        shuffled=True,
        has_blocks=scale_mode == "mxscale",
        n=N,
        k=K,
        tile=(tile_m, tile_n, tile_k),
        waves=(m_warp, n_warp),
        out=DTYPES[out_dtype],
        buffers=num_buffers,
        tdm_store=use_tdm_store,
        cluster=ClusterShape(cluster_m, cluster_n),
        specialized=wave_specialized_tdm,
        split_k=split_k,
    )
    plan.check()
    return fp8fp4_launcher(plan, waves_per_eu, expert_sched_mode)


def fp8fp4_launcher(plan: Plan, waves_per_eu: int | None, expert: bool) -> Any:
    """The launcher of a plan; see `compile_fp8fp4_gemm`."""

    def launch(tensors: dict[str, Any], m: Any, n: Any, lda: Any, ldc: Any, stream: Any) -> None:
        launch_fp8fp4(plan, tensors, m, lda, ldc, stream, waves_per_eu)

    sizes = dict.fromkeys(("M", "N", "lda", "ldc"), fx.Int32)
    return scheduled(launcher("launch_fp8fp4_gemm", TENSORS, launch, **sizes), expert)


def launch_fp8fp4(
    plan: Plan, tensors: dict[str, Any], m: Any, lda: Any, ldc: Any, stream: Any, waves_per_eu: int | None = None
) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    a, b = (bytes_of(*((fx.Float8E4M3FN,) if bits == 8 else ())) for bits in plan.bits)
    scales = bytes_of() if plan.has_blocks else fx.Float32
    require_tensors(tensors, C=plan.out, A=a, B=b, A_scale=scales, B_scale=scales, rows=TENSORS)
    require_pitch("C", tensors["C"], m, plan.n, ldc)
    require_pitch("A", tensors["A"], m, plan.k, lda, bits=plan.bits[0])
    require_elements("B", tensors["B"], plan.n * plan.k, bits=plan.bits[1])
    for name, rows, tile in (("A_scale", m, plan.tile[0]), ("B_scale", plan.n, plan.tile[1])):
        in_blocks = (rows + tile - 1) // tile * (tile * plan.k // BLOCK)
        require_elements(name, tensors[name], in_blocks if plan.has_blocks else rows, or_more=True)
    kernel = fp8fp4_kernel(tensors, m, lda, ldc, plan.pipeline.turns, plan, value_attrs=for_waves(waves_per_eu))
    plan.launch(kernel, m, stream)


def compile_mxscale_gemm(**options: Any) -> Any:
    """`compile_fp8fp4_gemm` with scales of 32 elements."""
    return compile_fp8fp4_gemm(scale_mode="mxscale", **options)


def compile_mxfp4_gemm(**options: Any) -> Any:
    """`compile_fp8fp4_gemm` of fp4 with scales of 32 elements."""
    return compile_mxscale_gemm(data_format="fp4", **options)


def compile_mxfp8_gemm(**options: Any) -> Any:
    """`compile_fp8fp4_gemm` of fp8 with scales of 32 elements."""
    return compile_mxscale_gemm(data_format="fp8", **options)


def compile_a8w4_gemm(**options: Any) -> Any:
    """`compile_fp8fp4_gemm` of A in fp8 and B in fp4 with scales of 32 elements."""
    return compile_mxscale_gemm(data_format="a8w4", **options)


def compile_ptpc_gemm(**options: Any) -> Any:
    """`compile_fp8fp4_gemm` with a scale for each row of A and of B; bf16, with four buffers by default."""
    defaults = {"data_format": "fp8", "num_buffers": 4, "out_dtype": "bf16", "wave_specialized_tdm": True}
    return compile_fp8fp4_gemm(scale_mode="ptpc", **(defaults | {"l2_prefetch_distance": 0} | options))


def _launch(
    tensors: dict[str, Any], m: Any, n: int, k: int, data_format: str, tile: tuple[int, int, int],
    waves: tuple[int, int], buffers: int, stream: Any,
) -> None:  # fmt: skip
    """A launcher of (C, A, B, A_scale, B_scale, m, n, k, data_format, stream): the product of `compile_ptpc_gemm`, with
    a tile that is chosen by measurement. The order of scales of blocks depends on the tile: products with these have no
    such choice.
    """
    plan = Plan(
        data_format=data_format,
        shuffled=True,
        has_blocks=False,
        n=n,
        k=k,
        tile=tile,
        waves=waves,
        out=fx.BFloat16,
        buffers=buffers,
        tdm_store=True,
        cluster=ClusterShape(1, 1),
        specialized=False,
        split_k=1,
    )
    plan.check()
    launch_fp8fp4(plan, tensors, m, k, n, stream)


_TILES = (((128, 256, 128), (2, 4), 2), ((256, 256, 128), (2, 2), 2), ((128, 128, 256), (2, 2), 2))
fp8_gemm_of_rows = tuned(
    "fp8_gemm_of_rows", TENSORS, _launch, ["m", "n", "k", "data_format"],
    [{"tile": tile, "waves": waves, "buffers": buffers} for tile, waves, buffers in _TILES],
    m=fx.Int32, n=int, k=int, data_format=str,
)  # fmt: skip
