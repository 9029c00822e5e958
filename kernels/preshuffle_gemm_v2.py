"""C = A B^T with B shuffled beforehand, so that it goes from global memory straight into the registers of the MFMA.

    preshuffle_gemm(A, shuffle(B), C)                                                   # f16 or fp8, any M, N, K
    launch = compile_preshuffle_gemm_v2(N=5120, K=8192, tile_m=128, tile_n=128, tile_k=128)   # with scales
    launch(C, A, shuffle_weight(B), scale_a, scale_b, M, N)

A block of four waves computes a tile, of 128 x 128 by default. Each wave holds a quarter of its columns; all four need
the same rows of A, so A goes through shared memory, in two stages: while the matrix instructions work on one, the next
tile is on its way. Shared memory is swizzled so that its 128-bit accesses meet no bank conflict. B is different for
every wave, so nothing would be gained by sharing it; `shuffle` puts the 16 bytes that a lane needs side by side.

By default a stage is 128 bytes of K: 64 values of f16, or 128 of fp8. Written with tiled copies and a tiled MMA; what
the layouts of `fx` do not do by themselves, `preshuffle_gemm` does by hand, for more types. 128 x 128 x 64 of f16: 126
VGPRs, 64 of which hold sums and 32 two tiles of B; its shared memory lets two workgroups share a compute unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import const_expr, range_constexpr
from kernels.kernels_common import ceil_div, fp8_type, require
from kernels.launches import chosen, for_waves, launch_some, launcher
from kernels.mfma_preshuffle_pipeline import Tiling
from kernels.mfma_products import BITS, CHUNK_BYTES, THREADS, is_cdna4
from kernels.pipeline_utils import interleave
from kernels.preshuffle_gemm import OUT_TYPES, require_product
from kernels.shuffles import shuffle_weight
from kernels.tensor_shim import GTensor

BLOCK_M, BLOCK_N = 128, 128
BLOCK_K_BYTES = 128
STAGES = 2
TENSORS = "C A B scale_a scale_b"

# (M, N, K): a tile, several, and last tiles that are partial in M, in N, in K, and in all of them.
SHAPES = ((128, 128, 64), (256, 256, 256), (100, 128, 128), (128, 72, 192), (128, 128, 72), (130, 200, 328))
DTYPES = {"float16": fx.Float16, "float8_e4m3fnuz": fx.Float8E4M3FNUZ}
IN_TYPES = {fx.Float16: "fp16", fx.BFloat16: "bf16", fx.Float8E4M3FN: "fp8", fx.Float8E4M3FNUZ: "fp8"}


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
    padding = (0, -columns % BLOCK_K_BYTES, 0, -rows % BLOCK_N)
    return shuffle_weight(torch.nn.functional.pad(bytes_, padding)).view(B.dtype)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The facts about a product that are known at compile time.

    n, k: extents of B; dtype: the element type of A and B; out: of C. tile: along M, N and, in bytes, K. scaled: C is
    multiplied by scales of A's rows and B's. spread: put memory accesses between the matrix instructions.
    """

    n: int
    k: int
    dtype: Any
    out: Any = fx.Float16
    tile: tuple[int, int, int] = (BLOCK_M, BLOCK_N, BLOCK_K_BYTES)
    scaled: bool = False
    spread: bool = True

    @property
    def pack(self) -> int:
        """Values in 16 bytes."""
        return CHUNK_BYTES * 8 // int(self.dtype.width)

    @property
    def block_k(self) -> int:
        """Values of K a stage."""
        return self.tile[2] // CHUNK_BYTES * self.pack

    @property
    def groups(self) -> int:
        """Groups of 64 bytes of K a stage: 16 bytes for each of four lanes."""
        return self.tile[2] // (4 * CHUNK_BYTES)

    @property
    def tiles_k(self) -> int:
        """Stages that K takes; the last one may be partial."""
        return ceil_div(self.k, self.block_k)

    def calls(self) -> int:
        """Matrix instructions of a group: one on CDNA 4 for 16 bits, else two."""
        return 1 if is_cdna4() and self.dtype.width == 16 else 2

    def tiled_mma(self) -> fx.TiledMma:
        """Four waves side by side along N. A lane's values of a group lie side by side in memory."""
        calls = self.calls()
        part = self.pack // calls
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4 * part, self.dtype))
        order = (
            fx.make_layout((part, 4, 2), (1, self.pack, part)) if calls == 2 else fx.make_layout((part, 4), (1, part))
        )
        return fx.make_tiled_mma(atom, fx.make_layout((1, 4, 1), (0, 1, 0)), fx.make_tile(None, None, order))

    def copy_of_a(self) -> fx.TiledCopy:
        """Threads side by side copy a row of A's tile, 16 bytes each."""
        atom = fx.make_copy_atom(fx.UniversalCopy128b(), self.dtype)
        across = self.block_k // self.pack
        threads = fx.make_layout((THREADS // across, across), (across, 1))
        return fx.make_tiled_copy_tv(atom, threads, fx.make_layout((1, self.pack), (self.pack, 1)))

    def layout_of_shared_a(self) -> Any:
        """(M, K, stage), rows whose 16-byte packs are swizzled: eight rows at one place of K meet all banks."""
        across = self.tile[2] // CHUNK_BYTES
        bits, shift = min(3, across.bit_length() - 1), max(3, across.bit_length() - 1)
        swizzle = fx.Swizzle(bits, self.pack.bit_length() - 1, shift)
        return fx.make_composed_layout(swizzle, fx.make_ordered_layout((self.tile[0], self.block_k, STAGES), (1, 0, 2)))

    def layout_of_b(self) -> fx.Layout:
        """(N, K) -> index, of B as `shuffle` leaves it."""
        rows, columns = ceil_div(self.n, self.tile[1]) * self.tile[1], self.tiles_k * self.block_k
        return fx.make_layout(
            ((16, rows // 16), (self.pack, 4, columns // (4 * self.pack))),
            ((self.pack, 16 * columns), (1, 16 * self.pack, 64 * self.pack)),
        )


@flyc.kernel
def gemm_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, scale_a: fx.Tensor, scale_b: fx.Tensor, plan: fx.Constexpr[Plan]
) -> None:
    """One tile of C. A: (M, K), B: (N, K) shuffled, C: (M, N)."""
    block_m, block_n, _ = fx.block_idx
    tile_m, tile_n, _ = plan.tile
    rows = fx.get_scalar(C.shape[0])
    # Bounded by the hardware: rows after the end read 0, and are not written.
    A, B, C = (fx.rocdl.make_buffer_tensor(tensor, max_size=False) for tensor in (A, B, C))
    tile_a = fx.flat_divide(A, (tile_m, plan.block_k))[None, None, block_m, None]  # (M, K, k)
    tile_b = fx.flat_divide(B, (tile_n, plan.block_k))[None, None, block_n, None]  # (N, K, k)
    tile_c = fx.flat_divide(C, (tile_m, tile_n))[None, None, block_m, block_n]  # (M, N)

    part = Part(plan, tile_a, tile_b, tile_c)
    part.all_tiles()
    result = fx.make_fragment_like(part.frag_c, plan.out)
    if const_expr(plan.scaled):
        multiply_scales(part.frag_c, part.to_c, (scale_a, scale_b), rows, (block_m, block_n), plan)
    result.store(part.frag_c.load().to(plan.out))
    pred = None
    if const_expr(plan.n % tile_n):
        # Columns beyond C's are the next row's.
        pred = inside(part.to_c.partition_D, plan.tile[:2], plan.n - block_n * tile_n)
    store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), plan.out)
    fx.copy(store, part.to_c.retile(result), part.to_c.partition_D(tile_c), pred=pred)


class Part:
    """A thread's part of the tiles: in global memory, in shared memory, and in its registers.

    tile_a (M, K, k), tile_b (N, K, k), tile_c (M, N): of the workgroup.
    """

    def __init__(self, plan: Plan, tile_a: Any, tile_b: Any, tile_c: Any) -> None:
        tiled_mma = plan.tiled_mma()
        self.plan, self.tile_a, self.tile_b, self.tiled_mma = plan, tile_a, tile_b, tiled_mma
        self.from_memory = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), plan.dtype)
        self.within = fx.make_copy_atom(fx.UniversalCopy128b(), plan.dtype)
        thread = fx.thread_idx.x
        shared_a = fx.make_view(fx.get_dyn_shared(plan.dtype), plan.layout_of_shared_a())  # (M, K, stage)
        thr_mma, to_shared = tiled_mma.get_slice(thread), plan.copy_of_a().get_slice(thread)
        from_shared = fx.make_tiled_copy_A(self.within, tiled_mma).get_slice(thread)
        from_b = fx.make_tiled_copy_B(self.from_memory, tiled_mma).get_slice(thread)
        store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), plan.out)
        self.to_c = fx.make_tiled_copy_C(store, tiled_mma).get_slice(thread)

        self.global_a = to_shared.partition_S(tile_a)  # (values, M, K, k)
        self.written_a = to_shared.partition_D(shared_a)  # (values, M, K, stage)
        self.read_a = from_shared.partition_S(shared_a)
        self.global_b = from_b.partition_S(tile_b)

        self.next_a = fx.make_fragment_like(self.written_a[None, None, None, 0])
        self.frag_a = thr_mma.make_fragment_A(shared_a[None, None, 0])
        self.frag_b = thr_mma.make_fragment_B(tile_b[None, None, 0], stages=STAGES)
        self.frag_c = thr_mma.make_fragment_C(tile_c)
        self.frag_a_retiled = from_shared.retile(self.frag_a)
        self.frag_b_retiled = from_b.retile(self.frag_b)
        self.in_row, limit = None, plan.k % plan.block_k
        if limit:  # columns beyond it are the next row's
            self.in_row = inside(to_shared.partition_S, (plan.tile[0], plan.block_k), limit)

    def load(self, k: Any, stage: int, last: bool = False) -> None:
        """Load tile k: A's to registers, B's to those of a stage."""
        partial = last and self.in_row is not None
        if partial:
            self.next_a.fill(0)
        # The step from tile to tile is the same for all lanes: a scalar register holds it.
        step_a, step_b = (fx.Int32(k) * fx.Int32(fx.get_scalar(t.stride[2])) for t in (self.tile_a, self.tile_b))
        pred, of_b = self.in_row if partial else None, self.frag_b_retiled[None, None, None, stage]
        fx.copy(self.from_memory, self.global_a[None, None, None, 0], self.next_a, soffset=step_a, pred=pred)
        fx.copy(self.from_memory, self.global_b[None, None, None, 0], of_b, soffset=step_b)

    def share(self, stage: int) -> None:
        """Put A's tile into shared memory."""
        fx.copy(self.within, self.next_a, self.written_a[None, None, None, stage])

    def multiply(self, stage: int) -> None:
        """Add the products of a stage."""
        plan, c = self.plan, self.frag_c
        for group in range(plan.groups):
            fx.copy(self.within, self.read_a[None, None, group, stage], self.frag_a_retiled[None, None, group])
            of_k = (None, group) if plan.calls() == 2 else group
            a, b = self.frag_a[None, None, of_k], self.frag_b[None, None, of_k, stage]
            fx.gemm(self.tiled_mma, c, a, b, c, traversal_order=fx.GemmTraversalOrder.KNM)

    def step(self, stage: int, k: Any, last: bool = False) -> None:
        """Multiply one stage while tile k is loaded into the other."""
        self.load(fx.Int32(k), stage ^ 1, last)
        self.multiply(stage)
        self.share(stage ^ 1)
        fx.gpu.barrier()
        order(self.plan)

    @flyc.jit
    def all_tiles(self) -> None:
        """The sums over all of K."""
        tiles = const_expr(self.plan.tiles_k)
        pairs = const_expr((tiles - 2) // 2 if tiles > 1 else 0)
        self.load(0, 0, last=tiles == 1)
        self.share(0)
        self.frag_c.fill(0)
        fx.gpu.barrier()
        for k in range(1, 2 * pairs + 1, 2):
            self.step(0, k)
            self.step(1, k + 1)
        # One step or two; the last one loads the last tile, which may be partial.
        for k in range_constexpr(2 * pairs + 1, tiles):
            self.step((k - 1) % 2, k, last=k == tiles - 1)
        self.multiply((tiles - 1) % 2)
        order(self.plan)


def order(plan: Plan) -> None:
    """Tell the scheduler where memory accesses go."""
    if plan.spread:
        tile_m, tile_n, row_bytes = plan.tile
        copies = tile_m * row_bytes // (CHUNK_BYTES * THREADS)
        reads, of_b = plan.groups * tile_m // 16, plan.groups * tile_n // 64
        interleave(plan.groups * plan.calls() * tile_m * tile_n // 1024, reads, copies + of_b, copies)


def multiply_scales(frag_c: fx.Tensor, to_c: fx.ThrCopy, scales: Any, rows_of_a: Any, block: Any, plan: Plan) -> None:
    """Multiply the sums by the scales of their rows and columns."""
    coordinates = to_c.partition_D(fx.make_identity_tensor(plan.tile[:2]))
    _, rows, columns = coordinates.shape
    of_a, of_b = GTensor(scales[0], fx.Float32, num_records_bytes=rows_of_a * 4), GTensor(scales[1], fx.Float32)
    first_m, first_n = block[0] * plan.tile[0], block[1] * plan.tile[1]
    of_rows = [fx.Vector(of_a.vec_load(first_m + coordinates[0, row, 0][0], 4)) for row in range(rows)]
    for column in range_constexpr(columns):
        of_column = of_b.load(first_n + coordinates[0, 0, column][1])
        for row in range_constexpr(rows):
            part = frag_c[None, row, column]
            part.store(part.load() * of_rows[row] * of_column)


def inside(part: Any, extents: tuple[int, int], limit: Any) -> fx.Tensor:
    """For each access of a thread's part of a tile: true if its column is below the limit."""
    coordinates = part(fx.make_identity_tensor(extents))
    _, rows, columns = coordinates.shape
    result = fx.make_rmem_tensor((1, rows, columns), fx.Boolean)
    for row in range_constexpr(rows):
        for column in range_constexpr(columns):
            result[0, row, column] = coordinates[0, row, column][1] < limit
    return result


@flyc.jit
def launch(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, plan: fx.Constexpr[Plan], stream: fx.Stream = fx.Stream(None)
) -> None:
    """C = A B^T. A: (M, K), C: (M, N), B: what `shuffle` gives, as one mode."""
    launch_tiles(plan, None, A, B, C, (A, A), stream)


def launch_tiles(
    plan: Plan, waves_per_eu: int | None, A: Any, B: Any, C: Any, scales: tuple[Any, Any], stream: Any
) -> None:
    """Launch a workgroup for each tile of C, inside a launcher. A: (M, K), C: (M, N)."""
    shuffled = fx.make_view(fx.get_iter(B), plan.layout_of_b())
    rows = fx.get_scalar(C.shape[0])
    grid = ((rows + plan.tile[0] - 1) // plan.tile[0], ceil_div(plan.n, plan.tile[1]))
    kernel = gemm_kernel(A, shuffled, C, *scales, plan, value_attrs=for_waves(waves_per_eu))
    launch_some(kernel, rows, grid, THREADS, stream, smem=STAGES * plan.tile[0] * plan.tile[2])


def preshuffle_gemm(A: Any, B: Any, C: Any, stream: Any = None) -> None:
    """C = A B^T.

    A: (M, K), rows of 16-byte aligned length; B: what `shuffle` gives for (N, K), of A's type, float16 or
    float8_e4m3fnuz; C: (M, N) in float16. Raises ArgumentError where they do not fit.
    """
    (m, k), (rows, n) = A.shape, C.shape
    dtype = DTYPES.get(str(A.dtype).removeprefix("torch."))
    known = dtype is not None and B.dtype == A.dtype
    require(known, f"a preshuffled GEMM of {A.dtype} and {B.dtype}", f"types: {', '.join(DTYPES)}")
    plan = Plan(n=n, k=k, dtype=dtype)
    fits = rows == m and B.numel() == fx.size(plan.layout_of_b()) and k % plan.pack == 0
    require(fits, f"a preshuffled GEMM of A {tuple(A.shape)}, B of {B.numel()} values and C {tuple(C.shape)}",
            f"B is shuffle(B) of (N, K) = ({n}, {k}), and K is a multiple of {plan.pack}")  # fmt: skip
    launch(A, B, C, plan, fx.Stream(stream))


def launch_flat(sizes: Any, waves_per_eu: int | None, tensors: dict[str, Any], M: Any, N: int, stream: Any) -> None:
    """`launch_tiles` of operands in one dimension. sizes: as of `flat_plan`, the target's."""
    plan = flat_plan(*sizes)
    C, A, B, *scales = tensors.values()
    require(plan.n == N, f"N={N}", f"this launcher was compiled for N={plan.n}")
    require_product(IN_TYPES[plan.dtype], plan.out, tensors, M, N, plan.k, plan.scaled)
    a, b = (fx.recast_iter(plan.dtype, fx.get_iter(tensor)) for tensor in (A, B))
    A = fx.make_view(a, fx.make_layout((M, plan.k), (plan.k, 1)))
    C = fx.make_view(fx.get_iter(C), fx.make_layout((M, N), (N, 1)))
    launch_tiles(plan, waves_per_eu, A, fx.make_view(b, fx.make_layout(1, 1)), C, (scales[0], scales[1]), stream)


def flat_plan(
    N: int, K: int, tile: tuple[int, int, int], in_dtype: str, out_dtype: str, enable_scheduler: bool = True
) -> Plan:
    """The plan for the target. tile: in elements. Raises ArgumentError where sizes do not fit."""
    types = {name: dtype for dtype, name in IN_TYPES.items()} | {"fp8": fp8_type()}
    require(in_dtype in types, f"in_dtype={in_dtype!r}", f"one of {', '.join(types)}")
    require(out_dtype in OUT_TYPES, f"out_dtype={out_dtype!r}", f"one of {', '.join(OUT_TYPES)}")
    tile_m, tile_n, tile_k = tile
    row_bytes = Tiling(dtype=in_dtype, k=K, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k).row_bytes
    require(row_bytes & (row_bytes - 1) == 0, f"tile_k={tile_k}", f"{row_bytes} bytes, a power of two")
    require(N > 0 and N % tile_n == 0, f"N={N}", f"a multiple of tile_n={tile_n}")
    return Plan(
        n=N,
        k=K,
        dtype=types[in_dtype],
        out=OUT_TYPES[out_dtype],
        tile=(tile_m, tile_n, row_bytes),
        scaled=in_dtype == "fp8",
        spread=enable_scheduler,
    )


@cache
def compile_preshuffle_gemm_v2(
    *, N: int, K: int, tile_m: int, tile_n: int, tile_k: int, in_dtype: str = "fp8", out_dtype: str = "bf16",
    waves_per_eu: int | None = None, enable_scheduler: bool = True,
) -> Any:  # fmt: skip
    """A launcher of (C, A, B, scale_a, scale_b, M, N, stream), every tensor flattened to one dimension.

    in_dtype: fp8, the target's, with scales of A's rows and B's; or fp16, bf16, without. B: as `shuffle_weight` leaves
    it. N is a multiple of tile_n, K of tile_k. enable_scheduler: tell the scheduler where memory accesses go. The other
    arguments are those of `compile_preshuffle_gemm_a8`. Raises ArgumentError where sizes do not fit.
    """
    sizes = N, K, (tile_m, tile_n, tile_k), in_dtype, out_dtype, enable_scheduler
    flat_plan(*sizes)
    launch = partial(launch_flat, sizes, waves_per_eu)
    return launcher("launch_preshuffle_gemm_v2", TENSORS, launch, M=fx.Int32, N=int)


_TILES = ((16, 64, 512), (32, 64, 256), (64, 64, 256), (64, 128, 128), (128, 128, 128))


@chosen(TENSORS, "M N K in_dtype", _TILES)
def preshuffle_gemm_v2(
    tensors: dict[str, Any], M: fx.Int32, N: int, K: int, in_dtype: str, out_dtype: str, tile: Any, stream: Any
) -> None:
    """The product with a tile, in bytes along K, that is chosen by measurement."""
    tile_m, tile_n, row_bytes = tile
    in_elements = (tile_m, tile_n, row_bytes * 8 // BITS[in_dtype][0])
    launch_flat((N, K, in_elements, in_dtype, out_dtype), None, tensors, M, N, stream)
