"""C = A B^T of f16 or bf16 with B as it is, (N, K), where K may be split among workgroups.

    launch = compile_hgemm_kernel("bf16", n, k, TILE_M=16, TILE_N=64, TILE_K=128, SPLIT_K=14, BLOCK_M_WARPS=1)
    launch(C, A, B, bias, m, semaphore, signal)

Tiles of A, and with B_TO_LDS of B, go from global memory straight to shared memory, into a ring of STAGES buffers:
while one is multiplied, STAGES - 1 are on their way, and a wave waits only for the oldest. Without B_TO_LDS the
fragments of B go to registers, one tile ahead. C leaves through shared memory, 16 bytes a thread.

With SPLIT_K a first kernel fills C with the bias or zeros, and every workgroup adds its part, a pair of elements at a
time: sums are rounded to C's type before they are added. The order of kernels on a stream replaces a signal that
workgroups would wait for, so it does not matter which of them run at the same time; `semaphore` and `signal` are
unused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import range_constexpr
from kernels.layout_utils import idx2crd
from kernels.mfma_epilogues import TileC
from kernels.mfma_preshuffle_pipeline import CHUNK_BYTES, WAVE, Product, TileA, is_cdna4
from kernels.pipeline_utils import interleave, vmcnt
from kernels.tensor_shim import GTensor

DTYPES = {"f16": "fp16", "fp16": "fp16", "bf16": "bf16"}
ELEMENTS = {"fp16": fx.Float16, "bf16": fx.BFloat16}
# (M, N, K)
SHAPES = ((1, 128, 256), (33, 128, 512), (130, 256, 384))
FILL_THREADS = 256


def reference(A: Any, B: Any, bias: Any = None) -> Any:
    """The result of torch in f32."""
    result = A.float() @ B.float().T
    return result if bias is None else result + bias.float()


@dataclass(frozen=True)
class Slab:
    """Rows of an operand in shared memory; the parts of `Tiling` that `TileA` needs."""

    dtype: str
    k: int
    tile_m: int
    tile_k: int
    stages: int
    threads: int

    @property
    def row_bytes(self) -> int:
        """A row of the tile."""
        return self.tile_k * 2

    @property
    def a_bytes(self) -> int:
        """One buffer."""
        return self.tile_m * self.row_bytes

    @property
    def load_bytes(self) -> int:
        """Bytes of a load through registers."""
        return CHUNK_BYTES

    @property
    def a_loads(self) -> int:
        """Loads of a thread past the registers, of a tile."""
        return self.a_bytes // (self.threads * (CHUNK_BYTES if is_cdna4() else 4))


@dataclass(frozen=True)
class Plan:
    """What a kernel is compiled for. See `compile_hgemm_kernel`."""

    dtype: str
    n: int
    k: int
    tile: tuple[int, int, int]
    stages: int
    split: int
    waves: tuple[int, int]
    b_to_lds: bool
    has_bias: bool

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.waves[0] * self.waves[1] * WAVE

    @property
    def wave_tile(self) -> tuple[int, int]:
        """Rows and columns of C of a wave."""
        return self.tile[0] // self.waves[0], self.tile[1] // self.waves[1]

    @property
    def tiles_k(self) -> int:
        """Tiles along K of a workgroup."""
        return self.k // self.split // self.tile[2]

    def ring_bytes(self, rows: int) -> int:
        """Shared memory of an operand's tiles."""
        return self.stages * rows * self.tile[2] * 2

    @property
    def lds_bytes(self) -> int:
        """Shared memory: of the tiles, and then of C."""
        rows = self.tile[0] + (self.tile[1] if self.b_to_lds else 0)
        return max(self.ring_bytes(rows), 2 * self.tile[0] * self.tile[1])

    def slab(self, rows: int) -> Slab:
        """The tiles of A or B."""
        return Slab(self.dtype, self.k, rows, self.tile[2], self.stages, self.threads)


class DirectB:
    """A wave's rows of B (N, K): global memory -> registers."""

    def __init__(self, plan: Plan, product: Product, B: Any, block: Any, first_row: Any) -> None:
        self.plan = plan
        self.groups = plan.tile[2] // product.group
        k_bytes = plan.k * 2
        first = fx.Int64(block) * (plan.tile[1] * k_bytes)
        self.memory = GTensor(B, fx.Int32, base_byte_offset=first, num_records_bytes=plan.tile[1] * k_bytes)
        lane = fx.Int32(fx.thread_idx.x) & (WAVE - 1)
        self.first = ((lane & 15) + first_row) * (k_bytes // 4) + (lane >> 4) * 4

    def load(self, k: Any) -> Any:
        """[group][ni]: this lane's part of tile k."""
        first = self.first + k * (self.plan.tile[2] // 2)
        columns = range(self.plan.wave_tile[1] // 16)
        return [
            [fx.Vector(self.memory.vec_load(first + group * 16, 4, soffset_bytes=ni * 32 * self.plan.k))
             for ni in columns]
            for group in range(self.groups)
        ]  # fmt: skip

    @property
    def loads(self) -> int:
        """Loads of a lane for a tile."""
        return self.groups * self.plan.wave_tile[1] // 16


@flyc.kernel
def fill_kernel(C: fx.Tensor, bias: fx.Tensor, m: fx.Int32, plan: fx.Constexpr[Plan]) -> None:
    """Rows of C become the bias, or zeros."""
    element = ELEMENTS[plan.dtype]
    out = GTensor(C, element, (-1, plan.n), num_records_bytes=m * (plan.n * 2))
    column = (fx.block_idx.x * FILL_THREADS + fx.thread_idx.x) * 2
    value = fx.Vector.filled(2, 0, element)
    if fx.const_expr(plan.has_bias):
        value = fx.Vector(GTensor(bias, element, num_records_bytes=plan.n * 2).vec_load(column, 2))
    if column < plan.n:
        out.vec_store((fx.block_idx.y, column), value)


@flyc.kernel
def hgemm_kernel(
    C: fx.Tensor,
    A: fx.Tensor,
    B: fx.Tensor,
    bias: fx.Tensor,
    m: fx.Int32,
    tiles_k: fx.Int32,
    plan: fx.Constexpr[Plan],
) -> None:
    """One tile of C, or a part of its sums. tiles_k: the plan's; as an argument it keeps a short loop a loop."""
    product = Product.of(plan.dtype)
    tile_m, tile_n, _ = plan.tile
    place = (fx.block_idx.x // (plan.n // tile_n), fx.block_idx.x % (plan.n // tile_n))
    wave = fx.Int32(fx.rocdl.readfirstlane(fx.T.i32, fx.Int32(fx.thread_idx.x) >> 6))
    wave_m, wave_n = idx2crd(wave, (-1, plan.waves[1]))
    rows, columns = plan.wave_tile
    shared = fx.SharedAllocator().allocate(plan.lds_bytes, 128).peek().ptr
    a = TileA(plan.slab(tile_m), product, A, m, place[0], wave_m * rows, shared)
    if fx.const_expr(plan.b_to_lds):
        b: Any = TileA(
            plan.slab(tile_n), product, B, plan.n, place[1], wave_n * columns, shared + plan.ring_bytes(tile_m)
        )
    else:
        b = DirectB(plan, product, B, place[1], wave_n * columns)
    c = TileC(C, ELEMENTS[plan.dtype], m, plan.n, (tile_m, tile_n), place, plan.wave_tile)
    first_k = fx.Int32(fx.block_idx.y) * plan.tiles_k if plan.split > 1 else 0

    sums: Any = ring(plan, product, a, b, first_k, tiles_k if plan.stages == 2 else plan.tiles_k)
    biases: list[Any] = []
    if fx.const_expr(plan.has_bias and plan.split == 1):
        biases = [value.to(fx.Float32) for value in c.of_columns(bias, ELEMENTS[plan.dtype])]

    def result(mi: int, ni: int, ii: int) -> Any:
        return sums[mi][ni][ii] + biases[ni] if biases else sums[mi][ni][ii]

    def add(row: Any, column: Any, values: Any) -> None:
        add_pairs(C, m, plan.n, c.first_row + row, column, fx.Vector(values))

    c.store_through(shared, result, threads=plan.threads, e_vec=8, put=add if plan.split > 1 else None)


@flyc.jit
def add_pairs(C: Any, m: Any, n: int, row: Any, column: Any, values: Any) -> None:
    """Add consecutive elements of a row to C, if it is one of C's."""
    if row < m:
        first = fx.get_iter(C) + (fx.Int64(row) * n + fx.Int64(column))
        for pair in range_constexpr(values.numel // 2):
            fx.atomic_add(first + 2 * pair, values.shuffle(values, [2 * pair, 2 * pair + 1]))


@flyc.jit
def ring(plan: Plan, product: Product, a: TileA, b: Any, first_k: Any, tiles_k: Any) -> Any:
    """The sums after all tiles of a workgroup, whose buffers are a ring.

    A wave waits for its own copies; the barrier behind that, for those of all waves, and it says that the buffer of the
    last tile is free.
    """
    stages, tiles = plan.stages, plan.tiles_k
    in_flight = a.tiling.a_loads + (b.tiling.a_loads if plan.b_to_lds else b.loads)
    rows, columns = plan.wave_tile
    sums = [[product.zeros() for _ in range_constexpr(columns // 16)] for _ in range_constexpr(rows // 16)]

    def fetch(k: Any, stage: Any) -> Any:
        a.copy(first_k + k, stage)
        if plan.b_to_lds:
            b.copy(first_k + k, stage)
            return ()
        fx.rocdl.sched_barrier(0)
        return b.load(first_k + k)

    def wait(copies: int) -> None:
        fx.rocdl.s_waitcnt(vmcnt(copies))
        fx.gpu.barrier()

    def tile(state: Any, stage: Any, now_b: Any, loads: int) -> Any:
        result = multiply(plan, product, a, b, state, stage, now_b)
        if plan.b_to_lds and stages == 2:
            groups = plan.tile[2] // product.group
            reads = groups * (rows + columns) // 16
            interleave(groups * product.calls * rows * columns // 256, reads, loads, ahead=1)
        return result

    held = ()
    for k in range_constexpr(stages - 1):
        held = fetch(k, k)
    read = fx.Int32(0)
    for k in range(tiles_k - (stages - 1)):
        # What a lane loads to its registers does not count: the wait is for shared memory.
        wait((stages - 2) * in_flight if plan.b_to_lds else b.loads)
        write = (read == 0).select(fx.Int32(stages - 1), read - 1)
        ahead = fetch(fx.Int32(k) + (stages - 1), write)
        sums = tile(sums, read, held, in_flight)
        held = ahead
        read = (read == stages - 1).select(fx.Int32(0), read + 1)
    for left in range_constexpr(stages - 1):
        wait((stages - 2 - left) * in_flight if plan.b_to_lds else b.loads)
        sums = tile(sums, (tiles - (stages - 1) + left) % stages, held, 0)
    return sums


def multiply(plan: Plan, product: Product, a: TileA, b: Any, sums: Any, stage: Any, now_b: Any) -> Any:
    """[mi][ni]: the sums after a tile."""
    result = [list(row) for row in sums]
    for group in range(plan.tile[2] // product.group):
        columns = range(len(result[0]))
        packs = [b.fragment(ni, group, stage) for ni in columns] if plan.b_to_lds else now_b[group]
        for mi, row in enumerate(result):
            pack_a = a.fragment(mi, group, stage)
            for call in range(product.calls):
                for ni, pack_b in enumerate(packs):
                    row[ni] = product(pack_a, pack_b, row[ni], call)
    return result


@cache
def compile_hgemm_kernel(
    dtype: str,
    n: int,
    k: int,
    TILE_M: int = 128,
    TILE_N: int = 128,
    TILE_K: int = 64,
    STAGES: int = 2,
    SPLIT_K: int = 1,
    BLOCK_M_WARPS: int = 2,
    BLOCK_N_WARPS: int = 2,
    BLOCK_K_WARPS: int = 1,
    B_TO_LDS: bool = False,
    HAS_BIAS: bool = False,
) -> Any:
    """A launcher of (C, A, B, bias, m, semaphore, signal, stream).

    dtype: f16 or bf16, of all. C (m, n), A (m, k), B (n, k), bias (n), each in one dimension or two. TILE_*: of a
    workgroup. BLOCK_M_WARPS, BLOCK_N_WARPS: its waves along M and N; BLOCK_K_WARPS: 1, others are unsupported.
    Raises ArgumentError where sizes do not fit.
    """
    _require(dtype in DTYPES, f"dtype={dtype!r}", f"one of {', '.join(DTYPES)}")
    _require(BLOCK_K_WARPS == 1, f"BLOCK_K_WARPS={BLOCK_K_WARPS}", "unsupported; 1 is supported")
    plan = Plan(DTYPES[dtype], n, k, (TILE_M, TILE_N, TILE_K), STAGES, SPLIT_K, (BLOCK_M_WARPS, BLOCK_N_WARPS),
                B_TO_LDS, HAS_BIAS)  # fmt: skip
    _check(plan)

    @flyc.jit
    def launch_hgemm(
        C: fx.Tensor,
        A: fx.Tensor,
        B: fx.Tensor,
        bias: fx.Tensor,
        m: fx.Int32,
        semaphore: fx.Tensor,
        signal: fx.Tensor,
        stream: fx.Stream = fx.Stream(None),
    ) -> None:
        if SPLIT_K > 1:
            columns = -(-n // (2 * FILL_THREADS))
            fill_kernel(C, bias, m, plan).launch(grid=(columns, m), block=FILL_THREADS, stream=stream)
        tiles = (m + TILE_M - 1) // TILE_M * (n // TILE_N)
        hgemm_kernel(C, A, B, bias, m, plan.tiles_k, plan).launch(
            grid=(tiles, SPLIT_K), block=plan.threads, stream=stream
        )

    return launch_hgemm


def _check(plan: Plan) -> None:
    (tile_m, tile_n, tile_k), (waves_m, waves_n) = plan.tile, plan.waves
    _require(1 <= waves_m * waves_n <= 16, f"{waves_m} x {waves_n} waves", "at most 16")
    _require(tile_m % (16 * waves_m) == 0, f"TILE_M={tile_m}", f"a multiple of {16 * waves_m}")
    _require(tile_n % (16 * waves_n) == 0, f"TILE_N={tile_n}", f"a multiple of {16 * waves_n}")
    _require(tile_k % 32 == 0, f"TILE_K={tile_k}", "a multiple of 32")
    _require(plan.n % tile_n == 0, f"n={plan.n}", f"a multiple of TILE_N={tile_n}")
    _require(
        plan.k % (plan.split * tile_k) == 0, f"k={plan.k}", f"a multiple of SPLIT_K * TILE_K={plan.split * tile_k}"
    )
    _require(plan.stages >= 2 and (plan.b_to_lds or plan.stages == 2), f"STAGES={plan.stages}",
             "2, or with B_TO_LDS more")  # fmt: skip
    _require(plan.tiles_k >= plan.stages, f"{plan.tiles_k} tiles along K", f"at least STAGES={plan.stages}")
    for name, rows in (("TILE_M", tile_m), ("TILE_N", tile_n)):
        _require((name == "TILE_N" and not plan.b_to_lds) or rows * tile_k * 2 % (plan.threads * CHUNK_BYTES) == 0,
                 f"{name}={rows} with TILE_K={tile_k}", f"16 bytes for each of {plan.threads} threads")  # fmt: skip
    rows_at_a_time = plan.threads * 8 // tile_n
    _require(tile_n % 8 == 0 and plan.threads * 8 % tile_n == 0 and tile_m % max(1, rows_at_a_time) == 0,
             f"a tile of {tile_m} x {tile_n}", f"rows that {plan.threads} threads store, {rows_at_a_time}")  # fmt: skip


def hgemm_splitk_(
    c: Any, a: Any, b: Any, bias: Any = None, hgemm_kwargs: dict[str, Any] | None = None, stream: Any = None
) -> Any:
    """c = a b^T (+ bias), with the tile that `hgemm_kwargs` gives or one that fits. c (m, n), a (m, k), b (n, k)."""
    (m, k), n = a.shape, b.shape[0]
    dtype = {"torch.bfloat16": "bf16", "torch.float16": "f16"}.get(str(a.dtype), str(a.dtype))
    _require(b.dtype == c.dtype == a.dtype and b.shape[1] == k and c.shape == (m, n),
             f"a product of A {tuple(a.shape)} of {a.dtype}, B {tuple(b.shape)} of {b.dtype} and C {tuple(c.shape)} "
             f"of {c.dtype}", "A (m, k), B (n, k) and C (m, n) of one type")  # fmt: skip
    chosen = dict(hgemm_kwargs or default_tile(m, n, k))
    launch = compile_hgemm_kernel(dtype, n, k, **chosen, HAS_BIAS=bias is not None)
    unused = c.view(-1)[:1]
    launch(c.view(-1), a.view(-1), b.view(-1), unused if bias is None else bias, m, unused, unused, stream)
    return c


def default_tile(m: int, n: int, k: int) -> dict[str, Any]:
    """A tile for these sizes: small along M where m is, and then K is split."""
    if m <= 32 and n % 64 == 0 and k % 128 == 0:
        split = next(s for s in (16, 14, 8, 7, 4, 3, 2, 1) if (k % (128 * s) == 0 and k // (128 * s) >= 2) or s == 1)
        return {"TILE_M": 16 if m <= 16 else 32, "TILE_N": 64, "TILE_K": 128, "SPLIT_K": split, "BLOCK_M_WARPS": 1,
                "BLOCK_N_WARPS": 2, "B_TO_LDS": True}  # fmt: skip
    return {"TILE_M": 128, "TILE_N": 128 if n % 128 == 0 else 64, "TILE_K": 64, "B_TO_LDS": True}


def _require(holds: bool, what: str, wanted: str) -> None:
    if not holds:
        raise ArgumentError(what, hint=wanted)
