"""Kernels of the project's documents: the README's vector add, the authoring guide's first, and examples 02 and 03."""

from __future__ import annotations

from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import gpu

COPIES = {16: fx.UniversalCopy16b, 32: fx.UniversalCopy32b}
SCALARS = {torch.float32: fx.Float32, torch.float16: fx.Float16, torch.bfloat16: fx.BFloat16, torch.int32: fx.Int32}


@flyc.kernel
def vectorAddKernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, block_dim: fx.Constexpr[int], dtype: fx.Constexpr):
    bid = fx.block_idx.x
    tid = fx.thread_idx.x

    # Partition tensors by block
    tA = fx.logical_divide(A, fx.make_layout(block_dim, 1))
    tB = fx.logical_divide(B, fx.make_layout(block_dim, 1))
    tC = fx.logical_divide(C, fx.make_layout(block_dim, 1))

    tA = fx.slice(tA, (None, bid))
    tB = fx.slice(tB, (None, bid))
    tC = fx.slice(tC, (None, bid))

    tA = fx.logical_divide(tA, fx.make_layout(1, 1))
    tB = fx.logical_divide(tB, fx.make_layout(1, 1))
    tC = fx.logical_divide(tC, fx.make_layout(1, 1))

    # Load to registers, compute, store via copy atoms
    copyAtom = fx.make_copy_atom(COPIES[dtype.width](), dtype)
    rA = fx.make_rmem_tensor(1, dtype)
    rB = fx.make_rmem_tensor(1, dtype)
    rC = fx.make_rmem_tensor(1, dtype)

    fx.copy_atom_call(copyAtom, fx.slice(tA, (None, tid)), rA)
    fx.copy_atom_call(copyAtom, fx.slice(tB, (None, tid)), rB)

    add = fx.arith.addf if dtype.is_float else fx.arith.addi
    vC = add(fx.memref_load_vec(rA), fx.memref_load_vec(rB))
    fx.memref_store_vec(vC, rC)
    fx.copy_atom_call(copyAtom, rC, fx.slice(tC, (None, tid)))


@flyc.jit
def vectorAdd(
    A: fx.Tensor,
    B: fx.Tensor,
    C,
    n: fx.Int32,  # dynamic int32
    const_n: fx.Constexpr[int],  # static int32, affects JIT cache-key
    dtype: fx.Constexpr = fx.Float32,
    stream: fx.Stream = fx.Stream(None),
):
    block_dim = 64
    grid_x = (n + block_dim - 1) // block_dim
    vectorAddKernel(A, B, C, block_dim, dtype).launch(grid=(grid_x, 1, 1), block=[block_dim, 1, 1], stream=stream)


@flyc.kernel
def vec_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int]):
    tid = gpu.thread_idx.x
    bid = gpu.block_idx.x
    idx = bid * 256 + tid
    C[idx] = A[idx] + B[idx]


@flyc.jit
def vec_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, N: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    vec_add_kernel(A, B, C, N).launch(grid=(N // 256,), block=(256,), stream=stream)


def vectors(n: int, dtype: Any, stride: int = 1) -> tuple[Any, Any, Any]:
    """Two random vectors and one of zeros."""
    generator = torch.Generator().manual_seed(n)
    a, b = (torch.randint(-1000, 1000, (n * stride,), generator=generator) for _ in range(2))
    scale = 8 if dtype.is_floating_point else 1
    return (
        (a / scale).to(dtype)[::stride],
        (b / scale).to(dtype)[::stride],
        torch.zeros(n * stride, dtype=dtype)[::stride],
    )


@flyc.kernel
def copy_kernel(A: fx.Tensor, B: fx.Tensor):
    tid = fx.thread_idx.x
    bid = fx.block_idx.x

    # Tensors that buffer instructions reach, and this block's tile of each
    tile = fx.make_tile(8, 24)
    bA = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(A), tile), (None, bid))
    bB = fx.slice(fx.zipped_divide(fx.rocdl.make_buffer_tensor(B), tile), (None, bid))

    # Four threads below one another, each with eight values side by side
    copy_atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
    tile_mn, layout_tv = fx.make_layout_tv(fx.make_layout((4, 1), (1, 1)), fx.make_layout((1, 8), (1, 1)))
    thr_copy = fx.make_tiled_copy(copy_atom, layout_tv, tile_mn).get_slice(tid)

    # Through registers
    src = thr_copy.partition_S(bA)
    dst = thr_copy.partition_D(bB)
    frag = fx.make_fragment_like(src)
    fx.copy(copy_atom, src, frag)
    fx.copy(copy_atom, frag, dst)


@flyc.jit
def tiledCopy(A: fx.Tensor, B: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    copy_kernel(A, B).launch(grid=(15, 1, 1), block=(4, 1, 1), stream=stream)


@flyc.kernel
def tile_product_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    tid = fx.thread_idx.x
    bid = fx.block_idx.x

    # This block's tiles: A (64, 8), B (64, 8), C (64, 64)
    A, B, C = (fx.rocdl.make_buffer_tensor(tensor) for tensor in (A, B, C))
    bA = fx.slice(fx.zipped_divide(A, fx.make_tile(64, 8)), (None, bid))
    bB = fx.slice(fx.zipped_divide(B, fx.make_tile(64, 8)), (None, bid))
    bC = fx.slice(fx.zipped_divide(C, fx.make_tile(64, 64)), (None, bid))

    # Four waves, two along M and two along N; each copies what its instructions multiply
    mma_atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))
    tiled_mma = fx.make_tiled_mma(mma_atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    copy_atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    copy_A = fx.make_tiled_copy_A(copy_atom, tiled_mma).get_slice(tid)
    copy_B = fx.make_tiled_copy_B(copy_atom, tiled_mma).get_slice(tid)
    copy_C = fx.make_tiled_copy_C(copy_atom, tiled_mma).get_slice(tid)

    thr_mma = tiled_mma.thr_slice(tid)
    frag_A = thr_mma.make_fragment_A(bA)
    frag_B = thr_mma.make_fragment_B(bB)
    frag_C = thr_mma.make_fragment_C(bC)

    fx.copy(copy_atom, copy_A.partition_S(bA), copy_A.retile(frag_A))
    fx.copy(copy_atom, copy_B.partition_S(bB), copy_B.retile(frag_B))
    frag_C.fill(0)
    fx.gemm(mma_atom, frag_C, frag_A, frag_B, frag_C)
    fx.copy(copy_atom, copy_C.retile(frag_C), copy_C.partition_D(bC))


@flyc.jit
def tiledMma(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    tile_product_kernel(A, B, C).launch(grid=(1, 1, 1), block=(256, 1, 1), stream=stream)
