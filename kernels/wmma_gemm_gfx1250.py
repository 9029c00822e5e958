"""C = A B of f16 or bf16 on gfx1250, whose tensor data mover brings tiles of A (M, K) and B (K, N) as they are.

    launch = compile_wmma_gemm_tdm(N=4096, K=4096, tile_m=64, tile_n=256, in_dtype="bf16", num_buffers=3)
    launch(C, A, B, M, N)                                      # any M; C (M, N), A (M, K), B (K, N)

A workgroup of m_warp x n_warp waves computes tile_m x tile_n of C (`gemm_common_gfx1250` has the order of the tiles).
Rows of shared memory are padded by 16 bytes. B lies there with its rows along N, and comes to the registers through
loads that transpose. B is the first operand of the instruction, so that a lane holds eight neighbours of a row of C.
Fragments of B for the next 32 columns of K are read while this one's products are under way, those of A one ahead.

C leaves through shared memory and the tensor data mover, a part for each wave, or straight from the registers
(use_tdm_store=False). What lies beyond M or N is read as 0 and not written. With a cluster, workgroups that need the
same tile get it together; with wave_specialized_tdm wave 0 asks for A's tiles and wave 1 for B's.

64 x 256 x 128 by 2 x 4 waves: 64 registers hold sums and 80 fragments; two buffers are 168 KiB of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr.rocdl import tdm_ops
from flydsl.expr.rocdl.lds_address import lds_pointer
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
from kernels.kernels_common import require, require_tensors, rounded
from kernels.launches import for_waves, launcher, tuned
from kernels.sizes import require_rows
from kernels.tensor_shim import GTensor, STensor
from kernels.wmma_pipeline import DTYPES

PAD = 8  # elements after a row in shared memory: 16 bytes
STEP = 32  # columns of K of an instruction
# (M, N, K)
SHAPES = ((128, 128, 64), (256, 256, 256), (300, 400, 256))


def reference(A: Any, B: Any) -> Any:
    """The result of torch in f32. A (M, K), B (K, N)."""
    return A.float() @ B.float()


@dataclass(frozen=True, kw_only=True)
class Plan(WavePlan):
    """The compile-time parameters of a kernel. See `compile_wmma_gemm_tdm`."""

    n: int
    k: int
    tile: tuple[int, int, int]
    waves: tuple[int, int]
    dtype: Any
    out: Any
    buffers: int
    prefetch: int
    tdm_store: bool
    cluster: ClusterShape
    specialized: bool

    split_k = 1

    @property
    def a_bytes(self) -> int:
        """A tile of A in shared memory, with its padding."""
        return 2 * self.tile[0] * (self.tile[2] + PAD)

    @property
    def buffer_bytes(self) -> int:
        """A tile of A and one of B."""
        return round_up(self.a_bytes + 2 * self.tile[2] * (self.tile[1] + PAD))

    def check(self) -> None:
        """Raise ArgumentError where sizes do not fit."""
        n = self.tile[1]
        self.check_sizes(STEP, 8)
        require(not self.specialized or self.threads >= 2 * LANES, "one wave", "at least two for wave_specialized_tdm")
        require(n & (n - 1) == 0, f"tile_n={n}", "a power of two")


@flyc.kernel
def wmma_kernel(
    C: fx.Tensor, A: fx.Tensor, B: fx.Tensor, m: fx.Int32, turns: fx.Int32, plan: fx.Constexpr[Plan]
) -> None:
    """One tile of C. turns: the plan's."""
    require_gfx1250("wmma_gemm_gfx1250")
    fx.rocdl.disable_xdl_arb_stall()
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    first = fx.Int32(fx.block_idx.x) * plan.tile[0], fx.Int32(fx.block_idx.y) * plan.tile[1]
    streams = tile_streams(plan, A, B, m, first, shared)
    compute = Compute(plan, shared)

    loads = Loads(plan.pipeline, streams, plan.buffer_bytes, partial(prefetch, plan, A, B, first))
    acc = run_pipeline(plan.pipeline, loads, plan.cluster, compute.compute_tile, compute.zeros(), turns)
    if plan.tdm_store:
        store_by_mover(plan, C, m, plan.n, first, acc, shared)
    else:
        store_by_lanes(plan, C, m, plan.n, first, acc)


def tile_streams(plan: Plan, A: Any, B: Any, m: Any, first: tuple[Any, Any], shared: Any) -> list[TileStream]:
    """The tiles of A and B that a wave asks for: its part of both, or all of one."""
    tile_m, tile_n, tile_k = plan.tile
    waves, (mask_a, mask_b) = plan.threads // LANES, plan.cluster.masks()
    parts = 1 if plan.specialized else waves
    a = tdm_ops.make_tensor_descriptor_2d(
        A, shared, (first[0], 0), (tile_m, tile_k), (plan.k, 1), (tile_m, tile_k), pad_interval=tile_k, pad_amount=PAD,
        num_warps=parts, workgroup_mask=mask_a, oob_outer_bound=m,
    )  # fmt: skip
    columns = tile_n if plan.n % tile_n == 0 else plan.n - first[1]
    b = tdm_ops.make_tensor_descriptor_2d(
        B, shared, (0, first[1]), (tile_k, columns), (plan.n, 1), (tile_k, tile_n), pad_interval=tile_n, pad_amount=PAD,
        num_warps=parts, workgroup_mask=mask_b, lds_byte_offset=plan.a_bytes,
    )  # fmt: skip
    streams = [TileStream(a, 2 * tile_k), TileStream(b, 2 * tile_k * plan.n)]
    return [chosen_by_wave(streams, fx.rocdl.wave_id())] if plan.specialized else streams


def prefetch(plan: Plan, A: Any, B: Any, first: tuple[Any, Any], tile: Any) -> None:
    """Bring the tiles that follow in some steps into the cache, in the loop."""
    if plan.prefetch <= 0:
        return
    tile_m, tile_n, tile_k = plan.tile
    columns, thread = (fx.Int32(tile) + plan.prefetch) * tile_k, fx.Int32(fx.thread_idx.x)
    for tensor, place, shape, stride, step in (
        (A, (first[0], 0), (tile_m, tile_k), plan.k, 1), (B, (0, first[1]), (tile_k, tile_n), plan.n, plan.n),
    ):  # fmt: skip
        # What differs from tile to tile is the same in all lanes: it moves the address that they share.
        start = fx.Int64(fx.ptrtoint(fx.get_iter(tensor))) + fx.Int64(columns) * (2 * step)
        tdm_ops.l2_prefetch_tile(start, place, shape, (stride, 1), thread_id=thread, block_threads=plan.threads)


class Compute:
    """A wave's products of a tile in shared memory."""

    def __init__(self, plan: Plan, shared: Any) -> None:
        self.plan, self.shared = plan, shared
        lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
        inner, half = lane & (SIZE - 1), lane >> 4
        self.pitch_a, self.pitch_b = plan.tile[2] + PAD, plan.tile[1] + PAD
        lds_a = 2 * ((row + inner) * self.pitch_a + half * 8)
        lds_b = 2 * ((half * 8 + (lane & 7)) * self.pitch_b + column + (inner >> 3) * 8) + plan.a_bytes
        starts = [stage * plan.buffer_bytes for stage in range(plan.buffers)]
        self.lds_a, self.lds_b = ([opaque(place + start) for start in starts] for place in (lds_a, lds_b))
        self.counts = tuple(extent // SIZE for extent in plan.wave_tile)

    def zeros(self) -> list[list[Any]]:
        """Sums to begin with."""
        return [[fx.Vector.filled(8, 0.0, fx.Float32) for _ in range(self.counts[1])] for _ in range(self.counts[0])]

    def load_a(self, stage: int, step: int, mi: int) -> Any:
        """A lane's elements of 16 rows of A and 32 columns of K: two pieces of 8."""
        tile = STensor(self.shared, self.plan.dtype, first=self.lds_a[stage])
        first = SIZE * mi * self.pitch_a + STEP * step
        pieces = [fx.Vector(tile.vec_load(first + 16 * piece, 8)) for piece in range(2)]
        return pieces[0].shuffle(pieces[1], list(range(16)))

    def load_b(self, stage: int, step: int, ni: int) -> Any:
        """A lane's elements of 16 columns of B and 32 rows of K, which the load transposes."""
        kind, first = fx.T.vec(8, self.plan.dtype.ir_type), 2 * (STEP * step * self.pitch_b + SIZE * ni)
        pieces = [
            fx.Vector(
                fx.rocdl.ds_load_tr16_b128(kind, lds_pointer("load_b", self.shared, self.lds_b[stage] + first + far))
            )
            for far in (0, 2 * 16 * self.pitch_b)
        ]
        return pieces[0].shuffle(pieces[1], list(range(16)))

    def compute_tile(
        self, acc: Any, stage: int, between_steps: Callable[[], Any] | None
    ) -> tuple[list[list[Any]], Any]:
        """The sums with the products of the tile in a buffer added, and what `between_steps` gives."""
        rows, columns = self.counts
        groups = [(step, first) for step in range(self.plan.tile[2] // STEP) for first in range(0, rows, self.at_once)]
        acc, result = [list(totals) for totals in acc], None
        frag_b, following = [self.load_b(stage, 0, ni) for ni in range(columns)], self.of_rows(stage, *groups[0])
        next_frag_b = frag_b
        for number, (step, first) in enumerate(groups):
            frag_b, frag_a = next_frag_b if first == 0 else frag_b, following
            if number + 1 < len(groups):
                following = self.of_rows(stage, *groups[number + 1])
            if first == 0 and step + 1 < self.plan.tile[2] // STEP:
                next_frag_b = [self.load_b(stage, step + 1, ni) for ni in range(columns)]
            for mi, a in enumerate(frag_a, start=first):
                acc[mi] = [self.multiply(a, frag_b[ni], total) for ni, total in enumerate(acc[mi])]
            if between_steps is not None and number == len(groups) // 2:
                result = between_steps()
            fx.rocdl.sched_barrier(0)  # or every fragment would be read beforehand, into registers of its own
        return acc, result

    @property
    def at_once(self) -> int:
        """Rows of fragments of A that are read together."""
        return max(1, self.counts[0] // 2) if self.counts[0] % 2 == 0 and self.counts[0] > 2 else 1

    def of_rows(self, stage: int, step: int, first: int) -> list[Any]:
        """The fragments of A of some rows."""
        return [self.load_a(stage, step, mi) for mi in range(first, first + self.at_once)]

    def multiply(self, a: Any, b: Any, total: Any) -> Any:
        """The sums of a tile of C, transposed."""
        name = "bf16" if self.plan.dtype is fx.BFloat16 else "f16"
        instruction = getattr(fx.rocdl, f"wmma_f32_16x16x32_{name}")
        return fx.Vector(instruction(fx.T.vec(8, fx.Float32.ir_type), b, a, total))


def place_of_wave(plan: Any) -> tuple[Any, Any]:
    """The first row and column of a wave's part of the workgroup's tile."""
    wave, (m, n) = fx.rocdl.wave_id(), plan.wave_tile
    return wave // plan.waves[1] * m, wave % plan.waves[1] * n


def store_by_mover(plan: Any, C: Any, m: Any, pitch: Any, first: tuple[Any, Any], acc: Any, shared: Any) -> None:
    """Write a wave's part of C to shared memory, and from there to C, whose rows are `pitch` elements apart."""
    fx.gpu.barrier()  # no wave needs the buffers any more
    (rows, columns), width = plan.wave_tile, int(plan.out.width) // 8
    lane, wave = fx.Int32(fx.thread_idx.x) & (LANES - 1), fx.rocdl.wave_id()
    start = wave * (rows * plan.out_pitch * width)
    part = STensor(shared, plan.out, first=start)
    place = (lane & (SIZE - 1)) * plan.out_pitch + (lane >> 4) * 8
    for mi, totals in enumerate(acc):
        for ni, total in enumerate(totals):
            for offset, values in pieces(plan, total):
                part.vec_store(place + (SIZE * mi * plan.out_pitch + SIZE * ni + offset), values)
    fx.rocdl.s_wait_dscnt(0)
    row, column = (a + b for a, b in zip(first, place_of_wave(plan), strict=True))
    descriptor = tdm_ops.make_tensor_descriptor_2d(
        C, shared, (row, column), (rows, columns_left(plan, column)), (pitch, 1), (rows, columns), elem_bytes=width,
        pad_interval=columns, pad_amount=plan.out_pitch - columns, lds_byte_offset=start, for_store=True,
        oob_outer_bound=m,
    )  # fmt: skip
    tdm_ops.tensor_store_2d(descriptor)
    tdm_ops.tensor_wait(0)


def columns_left(plan: Any, column: Any) -> Any:
    """The columns of a wave's part that C has."""
    columns = plan.wave_tile[1]
    if plan.n % columns == 0 and plan.n % plan.tile[1] == 0:
        return columns
    left = plan.n - column
    return (left < columns).select((left > 0).select(left, fx.Int32(0)), fx.Int32(columns))


def pieces(plan: Any, total: Any) -> list[tuple[int, Any]]:
    """A lane's eight neighbours of C in pieces of 16 bytes, each with its first element."""
    values, count = rounded(total, plan.out), min(8, 128 // int(plan.out.width))
    return [(i, values.shuffle(values, list(range(i, i + count)))) for i in range(0, 8, count)]


def store_by_lanes(plan: Any, C: Any, m: Any, pitch: Any, first: tuple[Any, Any], acc: Any) -> None:
    """Write a wave's part of C, whose rows are `pitch` elements apart, from its registers; or add it to C, if several
    workgroups share a tile."""
    width = int(plan.out.width) // 8
    memory = GTensor(
        C, plan.out, base_byte_offset=(fx.Int64(first[0]) * pitch + fx.Int64(first[1])) * width,
        num_records_bytes=((m - first[0]) * pitch - first[1]) * width,
    )  # fmt: skip
    lane, (row, column) = fx.Int32(fx.thread_idx.x) & (LANES - 1), place_of_wave(plan)
    column = column + (lane >> 4) * 8
    place, is_ragged = (row + (lane & (SIZE - 1))) * pitch + column, plan.n % plan.tile[1] != 0
    for ni in range(len(acc[0])):
        start = place + SIZE * ni
        if is_ragged:  # a column that does not exist is a place beyond the end
            start = (first[1] + column + SIZE * ni < plan.n).select(start, fx.Int32(1 << 28))
        for mi, totals in enumerate(acc):
            for offset, values in pieces(plan, totals[ni]):
                distance = SIZE * mi * pitch * width
                if plan.split_k == 1:
                    memory.vec_store(start + offset, values, soffset_bytes=distance)
                else:
                    add(memory, start + offset, values, distance)


def add(memory: GTensor, place: Any, values: Any, distance: Any) -> None:
    """Add a vector to memory atomically: pairs of 16 bits, or numbers of 32. distance: in bytes, the same in all lanes.

    What lies beyond the memory is not added, though a distance alone would count as inside.
    """
    at_once = 32 // int(memory.dtype.width)
    for i in range(0, values.numel, at_once):
        part = values[i : i + at_once] if at_once > 1 else values[i]
        fx.rocdl.raw_ptr_buffer_atomic_fadd(part, memory.rsrc, (place + i) * memory.bytes + distance)


@cache
def compile_wmma_gemm_tdm(
    *, M: int = 0, N: int = 0, K: int, tile_m: int = 256, tile_n: int = 256, tile_k: int = 128, m_warp: int = 2,
    n_warp: int = 4, in_dtype: str = "fp16", out_dtype: str | None = None, num_buffers: int = 2,
    waves_per_eu: int | None = None, l2_prefetch_distance: int = 2, use_tdm_store: bool = True, cluster_m: int = 1,
    cluster_n: int = 1, inst_prefetch: bool = False, wave_specialized_tdm: bool = False, expert_sched_mode: bool = True,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, M, N, stream).

    C (M, N), A (M, K), B (K, N), in one or two dimensions. N and K are known at compile time; M is the launch's, and
    the builder's is not used. in_dtype: fp16 or bf16; out_dtype: those, or f32; by default in_dtype. num_buffers: 2 to
    4. l2_prefetch_distance: tiles of K ahead of those that are loaded; at most 0 for none. cluster_*: workgroups of a
    cluster; the grid must be a multiple of it. inst_prefetch is accepted and has no effect. Raises ArgumentError
    where sizes do not fit, and at the launch on another GPU.
    """
    shape = ClusterShape(cluster_m, cluster_n)
    out = out_dtype or in_dtype
    require(in_dtype in DTYPES and in_dtype != "f32", f"in_dtype={in_dtype!r}", "one of fp16, bf16")
    require(out in DTYPES, f"out_dtype={out!r}", f"one of {', '.join(DTYPES)}")
    plan = Plan(
        n=N,
        k=K,
        tile=(tile_m, tile_n, tile_k),
        waves=(m_warp, n_warp),
        dtype=DTYPES[in_dtype],
        out=DTYPES[out],
        buffers=num_buffers,
        prefetch=l2_prefetch_distance,
        tdm_store=use_tdm_store,
        cluster=shape,
        specialized=wave_specialized_tdm,
    )
    plan.check()
    return wmma_launcher(plan, waves_per_eu if shape.is_one or waves_per_eu else 1, expert_sched_mode)


def wmma_launcher(plan: Plan, waves_per_eu: int | None, expert: bool) -> Any:
    """The launcher of a plan; see `compile_wmma_gemm_tdm`."""

    def launch(tensors: dict[str, Any], m: Any, n: Any, stream: Any) -> None:
        launch_wmma(plan, tensors, m, stream, waves_per_eu)

    return scheduled(launcher("launch_wmma_gemm", "C A B", launch, M=fx.Int32, N=fx.Int32), expert)


def launch_wmma(plan: Plan, tensors: dict[str, Any], m: Any, stream: Any, waves_per_eu: int | None = None) -> None:
    """Launch a workgroup for each tile of C, inside a launcher."""
    require_tensors(tensors, C=plan.out, A=plan.dtype, B=plan.dtype, rows="C A B")
    for name, rows, columns in (("C", m, plan.n), ("A", m, plan.k), ("B", plan.k, plan.n)):
        require_rows(name, tensors[name], rows, columns)
    kernel = wmma_kernel(*tensors.values(), m, plan.pipeline.turns, plan, value_attrs=for_waves(waves_per_eu))
    plan.launch(kernel, m, stream)


def _launch(
    tensors: dict[str, Any], m: Any, n: int, k: int, dtype: str, tile: tuple[int, int, int], waves: tuple[int, int],
    buffers: int, stream: Any,
) -> None:  # fmt: skip
    """A launcher of (C, A, B, m, n, k, dtype, stream), with tile, waves and buffers chosen by measurement."""
    kind = DTYPES[dtype]
    plan = Plan(
        n=n,
        k=k,
        tile=tile,
        waves=waves,
        dtype=kind,
        out=kind,
        buffers=buffers,
        prefetch=2,
        tdm_store=True,
        cluster=ClusterShape(1, 1),
        specialized=False,
    )
    plan.check()
    launch_wmma(plan, tensors, m, stream)


_TILES = (
    ((64, 256, 128), (2, 4), 2), ((128, 256, 64), (2, 4), 3), ((256, 256, 128), (2, 4), 2), ((64, 128, 32), (2, 4), 2),
    ((16, 128, 128), (1, 4), 2),
)  # fmt: skip
gemm_gfx1250 = tuned(
    "gemm_gfx1250", "C A B", _launch, ["m", "n", "k", "dtype"],
    [{"tile": tile, "waves": waves, "buffers": buffers} for tile, waves, buffers in _TILES],
    m=fx.Int32, n=int, k=int, dtype=str,
)  # fmt: skip
