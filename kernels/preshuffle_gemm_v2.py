"""C = A B^T with B shuffled beforehand, so that it goes from global memory straight into the registers of the MFMA.

A block of four waves computes a tile of 128 x 128. Each wave holds 128 x 32 of it; all four need the same rows of A, so
A goes through shared memory, in two stages: while the matrix instructions work on one, the next tile is on its way.
Shared memory is swizzled so that its 128-bit accesses meet no bank conflict. B is different for every wave, so nothing
would be gained by sharing it; `shuffle` puts the 16 bytes that a lane needs side by side.

Both variants move 128 bytes of K a stage: 64 values of f16, or 128 of fp8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr import const_expr, range_constexpr

BLOCK_M, BLOCK_N = 128, 128
BLOCK_K_BYTES = 128
THREADS = 256
STAGES = 2
SMEM_BYTES = STAGES * BLOCK_M * BLOCK_K_BYTES
# What a lane reads of one row at a time.
PACK_BYTES = 16

# (M, N, K): a tile, several, and last tiles that are partial in M, in N, in K, and in all of them.
SHAPES = ((128, 128, 64), (256, 256, 256), (100, 128, 128), (128, 72, 192), (128, 128, 72), (130, 200, 328))
DTYPES = ("float16", "float8_e4m3fnuz")


def reference(A: Any, B: Any) -> Any:
    """The result of torch, rounded once."""
    return (A.float() @ B.float().T).half()


def shuffle(B: Any) -> Any:
    """B (N, K) in the order in which lanes read it: (N/16, K/4P, 4, 16, P), where P values are 16 bytes.

    N is filled up to a multiple of BLOCK_N and K to one of 8P, with zeros.
    """
    import torch

    bytes_ = B.contiguous().view(torch.uint8)
    rows, columns = bytes_.shape
    padded = torch.zeros(
        _round_up(rows, BLOCK_N), _round_up(columns, BLOCK_K_BYTES), dtype=torch.uint8, device=B.device
    )
    padded[:rows, :columns] = bytes_
    blocks = padded.view(padded.shape[0] // 16, 16, -1, 4, PACK_BYTES).permute(0, 2, 3, 1, 4)
    return blocks.contiguous().view(-1).view(B.dtype)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


@dataclass(frozen=True)
class Plan:
    """The facts about a product that are known when compiling.

    n, k: extents of B; dtype: the element type of A and B.
    """

    n: int
    k: int
    dtype: Any

    @property
    def pack(self) -> int:
        """Values in 16 bytes."""
        return PACK_BYTES * 8 // int(self.dtype.width)

    @property
    def block_k(self) -> int:
        """Values of K a stage."""
        return 8 * self.pack

    @property
    def tiles_k(self) -> int:
        """Stages that K takes; the last one may be partial."""
        return -(-self.k // self.block_k)

    def tiled_mma(self) -> fx.TiledMma:
        """Four waves side by side along N. A lane's values of two instructions lie side by side in memory."""
        half = self.pack // 2
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4 * half, self.dtype))
        two_calls = fx.make_layout((half, 4, 2), (1, self.pack, half))
        return fx.make_tiled_mma(atom, fx.make_layout((1, 4, 1), (0, 1, 0)), fx.make_tile(None, None, two_calls))

    def copy_of_a(self) -> fx.TiledCopy:
        """Eight threads side by side copy a row of A's tile, 16 bytes each, all threads 32 rows."""
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), self.dtype)
        across = self.block_k // self.pack
        threads = fx.make_layout((THREADS // across, across), (across, 1))
        return fx.make_tiled_copy_tv(atom, threads, fx.make_layout((1, self.pack), (self.pack, 1)))

    def layout_of_shared_a(self) -> Any:
        """(M, K, stage), rows of 128 bytes whose 16-byte packs are swizzled."""
        swizzle = fx.Swizzle(3, self.pack.bit_length() - 1, 3)
        return fx.make_composed_layout(swizzle, fx.make_ordered_layout((BLOCK_M, self.block_k, STAGES), (1, 0, 2)))

    def layout_of_b(self) -> fx.Layout:
        """(N, K) -> index, of B as `shuffle` leaves it."""
        rows, columns = _round_up(self.n, BLOCK_N), self.tiles_k * self.block_k
        return fx.make_layout(
            ((16, rows // 16), (self.pack, 4, columns // (4 * self.pack))),
            ((self.pack, 16 * columns), (1, 16 * self.pack, 64 * self.pack)),
        )


@flyc.kernel
def gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    plan: fx.Constexpr[Plan],
    tiled_mma: fx.TiledMma,
    copy_of_a: fx.TiledCopy,
) -> None:
    """One tile of C. A: (M, K), B: (N, K) shuffled, C: (M, N)."""
    thread = fx.thread_idx.x
    block_m, block_n, _ = fx.block_idx
    block_k = const_expr(plan.block_k)

    # Bounded by the hardware: rows behind the end read 0, and are not written.
    A, B, C = (fx.rocdl.make_buffer_tensor(tensor, max_size=False) for tensor in (A, B, C))
    tile_a = fx.flat_divide(A, (BLOCK_M, block_k))[None, None, block_m, None]  # (M, K, k)
    tile_b = fx.flat_divide(B, (BLOCK_N, block_k))[None, None, block_n, None]  # (N, K, k)
    tile_c = fx.flat_divide(C, (BLOCK_M, BLOCK_N))[None, None, block_m, block_n]  # (M, N)
    shared_a = fx.make_view(fx.get_dyn_shared(plan.dtype), plan.layout_of_shared_a())  # (M, K, stage)

    load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), plan.dtype)
    move = fx.make_copy_atom(fx.UniversalCopy128b(), plan.dtype)
    store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)

    thr_mma = tiled_mma.get_slice(thread)
    to_shared = copy_of_a.get_slice(thread)
    from_shared = fx.make_tiled_copy_A(move, tiled_mma).get_slice(thread)
    from_b = fx.make_tiled_copy_B(load, tiled_mma).get_slice(thread)
    to_c = fx.make_tiled_copy_C(store, tiled_mma).get_slice(thread)

    global_a = to_shared.partition_S(tile_a)  # (values, M, K, k)
    written_a = to_shared.partition_D(shared_a)  # (values, M, K, stage)
    read_a = from_shared.partition_S(shared_a)
    global_b = from_b.partition_S(tile_b)

    next_a = fx.make_fragment_like(written_a[None, None, None, 0])
    frag_a = thr_mma.make_fragment_A(shared_a[None, None, 0])
    frag_b = thr_mma.make_fragment_B(tile_b[None, None, 0], stages=STAGES)
    frag_c = thr_mma.make_fragment_C(tile_c)
    frag_a_retiled = from_shared.retile(frag_a)
    frag_b_retiled = from_b.retile(frag_b)

    in_row = columns_in_row(to_shared, plan)

    def load_tiles(k: Any, stage: int, last: bool = False) -> None:
        partial = const_expr(last and plan.k % block_k != 0)
        if partial:
            next_a.fill(0)
        # The step from tile to tile is the same for all lanes: a scalar register holds it.
        step_a, step_b = (fx.Int32(k) * fx.Int32(fx.get_scalar(tile.stride[2])) for tile in (tile_a, tile_b))
        pred = in_row if partial else None
        fx.copy(load, global_a[None, None, None, 0], next_a, soffset=step_a, pred=pred)
        fx.copy(load, global_b[None, None, None, 0], frag_b_retiled[None, None, None, stage], soffset=step_b)

    def multiply(stage: int) -> None:
        for half in range_constexpr(2):
            fx.copy(move, read_a[None, None, half, stage], frag_a_retiled[None, None, half])
            fx.gemm(
                tiled_mma,
                frag_c,
                frag_a[None, None, (None, half)],
                frag_b[None, None, (None, half), stage],
                frag_c,
                traversal_order=fx.GemmTraversalOrder.MNK,
            )

    def step(stage: int, k: Any, last: bool = False) -> None:
        """Multiply one stage while tile k is loaded into the other."""
        load_tiles(fx.Int32(k), stage ^ 1, last)
        multiply(stage)
        fx.copy(move, next_a, written_a[None, None, None, stage ^ 1])
        fx.gpu.barrier()
        interleave()

    tiles = const_expr(plan.tiles_k)
    pairs = const_expr((tiles - 2) // 2 if tiles > 1 else 0)
    load_tiles(0, 0, last=tiles == 1)
    fx.copy(move, next_a, written_a[None, None, None, 0])
    frag_c.fill(0)
    fx.gpu.barrier()
    for k in range(1, 2 * pairs + 1, 2):
        step(0, k)
        step(1, k + 1)
    # One step or two, of which the last one loads the last tile, which may be partial.
    for k in range_constexpr(2 * pairs + 1, tiles):
        step((k - 1) % 2, k, last=k == tiles - 1)
    multiply((tiles - 1) % 2)
    interleave()

    result = fx.make_fragment_like(frag_c, fx.Float16)
    result.store(frag_c.load().to(fx.Float16))
    inside = columns_inside(to_c, plan.n - block_n * BLOCK_N) if plan.n % BLOCK_N else None
    fx.copy(store, to_c.retile(result), to_c.partition_D(tile_c), pred=inside)


def interleave() -> None:
    """Put one memory access between each pair of matrix instructions."""
    fx.rocdl.sched_dsrd(2)
    fx.rocdl.sched_mfma(2)
    fx.rocdl.sched_dsrd(1)
    fx.rocdl.sched_mfma(1)
    fx.rocdl.sched_dsrd(1)
    fx.rocdl.sched_mfma(2)
    for group in range_constexpr(16):
        if group < 8:
            fx.rocdl.sched_vmem(1)
        fx.rocdl.sched_mfma(2)
        fx.rocdl.sched_dsrd(1)
        fx.rocdl.sched_mfma(2)
        if group > 8:
            fx.rocdl.sched_dswr(1)
    fx.rocdl.sched_barrier(0)


def columns_in_row(to_shared: fx.ThrCopy, plan: Plan) -> fx.Tensor | None:
    """For each load of A's last tile: true if its columns are A's. Columns beyond them belong to the next row."""
    limit = plan.k % plan.block_k
    if not limit:
        return None
    coordinates = to_shared.partition_S(fx.make_identity_tensor((BLOCK_M, plan.block_k)))
    _, rows, _ = coordinates.shape
    inside = fx.make_rmem_tensor((1, rows, 1), fx.Boolean)
    for row in range_constexpr(rows):
        inside[0, row, 0] = coordinates[0, row, 0][1] < limit
    return inside


def columns_inside(to_c: fx.ThrCopy, limit: Any) -> fx.Tensor:
    """For each group of stores: true if its column is one of C's."""
    coordinates = to_c.partition_D(fx.make_identity_tensor((BLOCK_M, BLOCK_N)))
    _, rows, columns = coordinates.shape
    inside = fx.make_rmem_tensor((rows, columns), fx.Boolean)
    for row in range_constexpr(rows):
        for column in range_constexpr(columns):
            inside[row, column] = coordinates[0, row, column][1] < limit
    return inside


@flyc.jit
def launch(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, plan: fx.Constexpr[Plan], stream: fx.Stream = fx.Stream(None)
) -> None:
    """C = A B^T. B: what `shuffle` gives, as one mode."""
    shuffled = fx.make_view(fx.get_iter(B), plan.layout_of_b())
    rows = fx.get_scalar(C.shape[0])
    grid = ((rows + BLOCK_M - 1) // BLOCK_M, _round_up(plan.n, BLOCK_N) // BLOCK_N)
    gemm_kernel(A, shuffled, C, plan, plan.tiled_mma(), plan.copy_of_a()).launch(
        grid=grid, block=THREADS, smem=SMEM_BYTES, stream=stream
    )


@cache
def _plan(n: int, k: int, dtype: str) -> Plan:
    return Plan(n, k, {"float16": fx.Float16, "float8_e4m3fnuz": fx.Float8E4M3FNUZ}[dtype])


def preshuffle_gemm(A: Any, B: Any, C: Any, stream: Any = None) -> None:
    """C = A B^T.

    A: (M, K), rows of 16-byte aligned length; B: what `shuffle` gives for (N, K), of A's type, float16 or
    float8_e4m3fnuz; C: (M, N) in float16. Raises ArgumentError where they do not fit.
    """
    (m, k), (rows, n) = A.shape, C.shape
    dtype = str(A.dtype).removeprefix("torch.")
    if dtype not in DTYPES or B.dtype != A.dtype:
        raise ArgumentError(f"a preshuffled GEMM of {A.dtype} and {B.dtype}", hint=f"types: {', '.join(DTYPES)}")
    plan = _plan(n, k, dtype)
    if rows != m or B.numel() != fx.size(plan.layout_of_b()) or k % plan.pack:
        raise ArgumentError(
            f"a preshuffled GEMM of A {tuple(A.shape)}, B of {B.numel()} values and C {tuple(C.shape)}",
            hint=f"B is shuffle(B) of (N, K) = ({n}, {k}), and K is a multiple of {plan.pack}",
        )
    launch(A, B, C, plan, fx.Stream(stream))
