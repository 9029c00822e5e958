"""Small kernels as users write them, each at sizes that its blocks divide and at others, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.expr import buffer_ops, const_expr, gpu, range_constexpr, rocdl
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator

WAVE = 64


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def unwritten(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, torch.nan, dtype=dtype)


# --- through shared memory -------------------------------------------------------------------------------------------

TILE = 32


@flyc.kernel
def swizzled_copy_kernel(A: fx.Tensor, B: fx.Tensor, copy: fx.TiledCopy):
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    gA = fx.flat_divide(A, (TILE, 2 * TILE))[None, None, bid_m, bid_n]
    gB = fx.flat_divide(B, (TILE, 2 * TILE))[None, None, bid_m, bid_n]

    # 16-byte rows of eight f16 change places, each row of the tile in its own way
    row_major = fx.make_ordered_layout((TILE, 2 * TILE), (1, 0))
    swizzled = fx.make_composed_layout(fx.static(fx.SwizzleType.get(3, 3, 3)), row_major)
    sA = fx.make_view(fx.get_dyn_shared(fx.Float16), swizzled)

    thr_copy = copy.get_slice(tid)
    fragment = fx.make_fragment_like(thr_copy.partition_S(gA))
    fx.copy(copy.atom, thr_copy.partition_S(gA), fragment)
    fx.copy(copy.atom, fragment, thr_copy.partition_D(sA))
    gpu.barrier()
    # Another thread's part, so that the data really passes through
    other = copy.get_slice(tid ^ 37)
    fx.copy(copy.atom, other.partition_S(sA), fragment)
    fx.copy(copy.atom, fragment, other.partition_D(gB))


@flyc.jit
def swizzled_copy(A: fx.Tensor, B: fx.Tensor, m: fx.Int32, n: fx.Int32):
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
    copy = fx.make_tiled_copy_tv(atom, fx.make_layout((16, 8), (8, 1)), fx.make_layout((1, 8)))
    swizzled_copy_kernel(A, B, copy).launch(
        grid=(m // TILE, n // (2 * TILE)), block=fx.size(copy.tiled_tv_layout) // 8, smem=TILE * 2 * TILE * 2
    )


@pytest.mark.parametrize("shape", [(32, 64), (96, 192)])
def test_copy_through_swizzled_shared_memory(shape: tuple[int, int]) -> None:
    A, B = random(*shape, dtype=torch.float16), unwritten(*shape, dtype=torch.float16)
    swizzled_copy(A, B, *shape)
    assert torch.equal(B, A)


@fx.struct
class TransposeStorage:
    tile: fx.Array[fx.Float32, TILE * (TILE + 1), 16]


@flyc.kernel
def transpose_kernel(A: fx.Tensor, B: fx.Tensor, m: fx.Int32, n: fx.Int32):
    storage = fx.SharedAllocator().allocate(TransposeStorage).peek()
    # One more element a row: a column meets every bank
    tile = storage.tile.view(fx.make_layout((TILE, TILE), (TILE + 1, 1)))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    row, column = fx.block_idx.y * TILE, fx.block_idx.x * TILE
    for i in range_constexpr(0, TILE, 8):
        if row + y + i < m and column + x < n:
            tile[y + i, x] = A[row + y + i, column + x]
    gpu.barrier()
    for i in range_constexpr(0, TILE, 8):
        if column + y + i < n and row + x < m:
            B[column + y + i, row + x] = tile[x, y + i]


@flyc.jit
def transpose(A: fx.Tensor, B: fx.Tensor):
    m, n = fx.get_scalar(A.shape[0]), fx.get_scalar(A.shape[1])
    transpose_kernel(A, B, m, n).launch(grid=(fx.ceil_div(n, TILE), fx.ceil_div(m, TILE)), block=(TILE, 8))


@pytest.mark.checked
@pytest.mark.parametrize("shape", [(32, 32), (64, 96), (33, 65), (1, 100)])
@pytest.mark.diagonal(2)
def test_transpose_through_shared_memory(shape: tuple[int, int]) -> None:
    A, B = random(*shape), unwritten(*reversed(shape))
    transpose(A, B)
    assert torch.equal(B, A.T)


# --- reductions ------------------------------------------------------------------------------------------------------


def wave_reduce(value: Any, combine: Any) -> Any:
    """Combine the values of all lanes of a wave; every lane has the result."""
    for distance in (32, 16, 8, 4, 2, 1):
        value = combine(value, value.shuffle_xor(distance, WAVE))
    return value


@flyc.kernel
def softmax_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32, dtype: fx.Constexpr):
    """One wave for each row, which is read twice."""
    lane, row = fx.thread_idx.x, fx.block_idx.x
    log2e = 1.4426950408889634
    largest = fx.Float32(float("-inf"))
    for i in range(lane, n, WAVE):
        largest = largest.maximumf(X[row, i].to(fx.Float32))
    largest = wave_reduce(largest, lambda a, b: a.maximumf(b))
    total = fx.Float32(0.0)
    for i in range(lane, n, WAVE):
        total += fx.exp2((X[row, i].to(fx.Float32) - largest) * log2e)
    total = wave_reduce(total, lambda a, b: a + b)
    for i in range(lane, n, WAVE):
        Y[row, i] = (fx.exp2((X[row, i].to(fx.Float32) - largest) * log2e) * rocdl.rcp(T.f32, total)).to(dtype)


@flyc.jit
def softmax(X: fx.Tensor, Y: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    rows, n = fx.get_scalar(X.shape[0]), fx.get_scalar(X.shape[1])
    softmax_kernel(X, Y, n, Y.dtype).launch(grid=(rows,), block=(WAVE,), stream=stream)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(3, 64), (2, 1000), (1, 1), (4, 65)])
@pytest.mark.diagonal(2)
def test_softmax(shape: tuple[int, int], dtype: torch.dtype) -> None:
    X, Y = random(*shape, dtype=dtype), unwritten(*shape, dtype=dtype)
    softmax(X, Y)
    torch.testing.assert_close(Y, torch.softmax(X.float(), -1).to(dtype))


def make_layernorm(width: int, threads: int = 256, eps: float = 1e-5) -> Any:
    """A layernorm of rows of `width`, in the style of a function that builds a kernel."""
    waves = threads // WAVE
    allocator = SmemAllocator(None, arch="gfx942", global_sym_name="layernorm_smem")
    of_sums = allocator.allocate_array(T.f32, waves)
    of_squares = allocator.allocate_array(T.f32, waves)

    @flyc.kernel
    def layernorm_kernel(X: fx.Tensor, weight: fx.Tensor, bias: fx.Tensor, Y: fx.Tensor):
        tid, row = gpu.thread_idx.x, gpu.block_idx.x
        wave, lane = tid // WAVE, tid % WAVE
        base = allocator.get_base()
        sums, squares = of_sums(base), of_squares(base)

        def block_sum(value, shared):
            value = wave_reduce(value, lambda a, b: a + b)
            if lane == 0:
                shared.store(value, [wave])
            gpu.barrier()
            total = fx.Float32(0.0)
            for i in range_constexpr(waves):
                total = total + shared.load([fx.Index(i)])
            return total

        total = fx.Float32(0.0)
        for i in range(tid, width, threads):
            total += X[row, i]
        mean = block_sum(total, sums) / width
        total = fx.Float32(0.0)
        for i in range(tid, width, threads):
            difference = X[row, i] - mean
            total += difference * difference
        scale = fx.rsqrt(block_sum(total, squares) / width + eps)
        for i in range(tid, width, threads):
            Y[row, i] = (X[row, i] - mean) * scale * weight[i] + bias[i]

    @flyc.jit
    def layernorm(X: fx.Tensor, weight: fx.Tensor, bias: fx.Tensor, Y: fx.Tensor):
        with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
            allocator.finalize()
        layernorm_kernel(X, weight, bias, Y).launch(grid=(fx.get_scalar(X.shape[0]),), block=(threads,))

    return layernorm


@pytest.mark.checked
@pytest.mark.parametrize("width", [256, 1000, 7])
@pytest.mark.diagonal(2)
def test_layernorm(width: int) -> None:
    X, weight, bias, Y = random(3, width), random(width), random(width) / 2, unwritten(3, width)
    make_layernorm(width)(X, weight, bias, Y)
    torch.testing.assert_close(Y, torch.nn.functional.layer_norm(X, (width,), weight, bias), rtol=1e-5, atol=1e-5)


@flyc.kernel
def dot_kernel(A: fx.Tensor, B: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    """Each wave adds what it has found to one number in memory."""
    tid = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    total = fx.Float32(0.0)
    for i in range(tid, n, fx.grid_dim.x * fx.block_dim.x):
        total = fx.fma(A[i], B[i], total)
    total = wave_reduce(total, lambda a, b: a + b)
    if fx.thread_idx.x % WAVE == 0:
        resource = buffer_ops.create_buffer_resource(out, max_size=False)
        rocdl.raw_ptr_buffer_atomic_fadd(total, resource, 0, 0, 0)


@flyc.jit
def dot(A: fx.Tensor, B: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    dot_kernel(A, B, out, n).launch(grid=3, block=128)


@pytest.mark.checked
@pytest.mark.parametrize("n", [384, 10_000, 1, 65])
@pytest.mark.diagonal(2)
def test_dot_product_with_atomics(n: int) -> None:
    A, B, out = random(n), random(n) / 3, torch.zeros(1)
    dot(A, B, out, n)
    torch.testing.assert_close(out[0], A @ B, rtol=1e-4, atol=1e-4)


# --- a product, two tiles of K on their way --------------------------------------------------------------------------


@flyc.kernel
def buffered_gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, tiles: fx.Int32, tiled_mma: fx.TiledMma):
    """C = A B^T for bf16. While one pair of fragments is multiplied, the next one is loaded."""
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    bm, bn, bk = tiled_mma.tile_size_mnk
    A, B, C = (fx.rocdl.make_buffer_tensor(tensor, max_size=False) for tensor in (A, B, C))
    gA = fx.flat_divide(A, (bm, bk))[None, None, bid_m, None]
    gB = fx.flat_divide(B, (bn, bk))[None, None, bid_n, None]
    gC = fx.flat_divide(C, (bm, bn))[None, None, bid_m, bid_n]

    load = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.BFloat16)
    store = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    thr_mma = tiled_mma.get_slice(tid)
    copy_A = fx.make_tiled_copy_A(load, tiled_mma).get_slice(tid)
    copy_B = fx.make_tiled_copy_B(load, tiled_mma).get_slice(tid)
    frag_A = thr_mma.make_fragment_A(gA[None, None, 0], stages=2)
    frag_B = thr_mma.make_fragment_B(gB[None, None, 0], stages=2)
    frag_C = thr_mma.make_fragment_C(gC)
    part_A, part_B = copy_A.partition_S(gA), copy_B.partition_S(gB)
    into_A, into_B = copy_A.retile(frag_A), copy_B.retile(frag_B)

    def fetch(k, stage):
        fx.copy(load, part_A[None, None, None, k], into_A[None, None, None, stage])
        fx.copy(load, part_B[None, None, None, k], into_B[None, None, None, stage])

    def multiply(stage):
        a, b = frag_A[None, None, None, stage], frag_B[None, None, None, stage]
        fx.gemm(tiled_mma, frag_C, a, b, frag_C, traversal_order=fx.GemmTraversalOrder.MNK_SERPENTINE)

    frag_C.fill(0.0)
    fetch(0, 0)
    for k in range(1, tiles - 1, 2):
        fetch(k, 1)
        multiply(0)
        fetch(k + 1, 0)
        multiply(1)
    if tiles % 2 == 0:
        fetch(tiles - 1, 1)
        multiply(0)
        multiply(1)
    else:
        multiply(0)
    fx.copy(store, frag_C, thr_mma.partition_C(gC))


@flyc.jit
def buffered_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.BFloat16))
    tiled_mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)), fx.make_tile(64, 64, 32))
    bm, bn, bk = tiled_mma.tile_size_mnk
    grid = (fx.ceil_div(fx.get_scalar(A.shape[0]), bm), fx.ceil_div(fx.get_scalar(B.shape[0]), bn))
    buffered_gemm_kernel(A, B, C, fx.get_scalar(A.shape[1]) // bk, tiled_mma).launch(grid=grid, block=(256, 1, 1))


@pytest.mark.parametrize("shape", [(64, 64, 32), (64, 128, 64), (64, 64, 96), (50, 64, 128), (65, 64, 160)])
@pytest.mark.diagonal(2)
def test_gemm_with_two_stages_in_registers(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    A, B, C = random(m, k, dtype=torch.bfloat16), random(n, k, dtype=torch.bfloat16), unwritten(m, n)
    buffered_gemm(A, B, C)
    torch.testing.assert_close(C, A.float() @ B.float().T, rtol=1e-4, atol=1e-3)


# --- element by element ----------------------------------------------------------------------------------------------


@flyc.kernel
def gather_kernel(table: fx.Tensor, indices: fx.Tensor, out: fx.Tensor, n: fx.Int32, width: fx.Constexpr[int]):
    """Rows of a table; those whose index is -1 are 0. Four values at a time."""
    rsrc_table = buffer_ops.create_buffer_resource(table, max_size=False)
    rsrc_indices = buffer_ops.create_buffer_resource(indices, max_size=False)
    rsrc_out = buffer_ops.create_buffer_resource(out, max_size=False)
    row = fx.block_idx.x * fx.block_dim.y + fx.thread_idx.y
    column = fx.thread_idx.x * 4
    here = (row < n) & (column < width)
    index = fx.Int32(buffer_ops.buffer_load(rsrc_indices, row, vec_width=1, dtype=T.i32, mask=here))
    values = buffer_ops.buffer_load(
        rsrc_table, index * width + column, vec_width=4, dtype=T.f32, mask=here & (index >= 0)
    )
    buffer_ops.buffer_store(values, rsrc_out, row * width + column, mask=here)


@flyc.jit
def gather(table: fx.Tensor, indices: fx.Tensor, out: fx.Tensor, n: fx.Int32, width: fx.Constexpr[int]):
    gather_kernel(table, indices, out, n, width).launch(grid=fx.ceil_div(n, 8), block=(32, 8))


@pytest.mark.parametrize(("n", "width"), [(8, 128), (13, 20), (1, 4)])
def test_gather_with_masks(n: int, width: int) -> None:
    table, out = random(10, width), unwritten(n, width)
    indices = torch.randint(-1, 10, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32)
    gather(table, indices, out, n, width)
    assert torch.equal(out, torch.where((indices >= 0)[:, None], table[indices.clamp(min=0).long()], 0))


@flyc.kernel
def gelu_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32, out_dtype: fx.Constexpr):
    """gelu(x) in f32 for eight bf16 values at a time; the last ones of the tensor one by one."""
    vector = const_expr(8)
    start = (fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x) * vector

    def gelu(x):
        return 0.5 * x * (1.0 + fx.erf(x * 0.7071067811865476))

    if start + vector <= n:
        tiles_x, tiles_y = (fx.logical_divide(t, fx.make_layout(vector)) for t in (X, Y))
        atom_x = fx.make_copy_atom(fx.UniversalCopy128b(), X.dtype)
        atom_y = fx.make_copy_atom(fx.UniversalCopy(min(vector * out_dtype.width, 128)), out_dtype)
        x, y = fx.make_rmem_tensor(vector, X.dtype), fx.make_rmem_tensor(vector, out_dtype)
        fx.copy(atom_x, tiles_x[None, start // vector], x)
        y.store(gelu(x.load().to(fx.Float32)).to(out_dtype))
        fx.copy(atom_y, y, tiles_y[None, start // vector])
    else:
        for i in range(start, n):
            Y[i] = gelu(X[i].to(fx.Float32)).to(out_dtype)


@flyc.jit
def gelu(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    gelu_kernel(X, Y, n, Y.dtype).launch(grid=fx.ceil_div(n, 512), block=64)


@pytest.mark.parametrize("out", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fnuz], ids=str)
@pytest.mark.parametrize("n", [512, 1001, 3])
@pytest.mark.diagonal(2)
def test_elementwise_with_vectors_and_casts(n: int, out: torch.dtype) -> None:
    X, Y = random(n, dtype=torch.bfloat16), unwritten(n).to(out)
    gelu(X, Y, n)
    expected = torch.nn.functional.gelu(X.float())
    tolerance = {"rtol": 2 * torch.finfo(out).eps, "atol": max(1e-6, float(torch.finfo(out).smallest_normal))}
    torch.testing.assert_close(Y.float(), expected, **tolerance)
