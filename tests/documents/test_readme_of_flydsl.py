"""What the README of FlyDSL 0.2.2 shows."""

from __future__ import annotations

import importlib

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import gpu


def test_the_packages() -> None:
    for name in ("autotune", "compiler.backends", "expr.math", "expr.mem_ops", "runtime", "utils.logger", "_mlir"):
        importlib.import_module(f"flydsl.{name}")


def test_the_layout_system() -> None:
    layout = fx.make_layout(fx.make_shape(4, 8), fx.make_stride(1, 4))
    coordinate = fx.make_coord(3, 5)
    assert fx.crd2idx(coordinate, layout) == 23
    assert fx.idx2crd(23, layout) == coordinate
    assert (fx.size(layout), fx.cosize(layout), fx.rank(layout)) == (32, 32, 2)
    assert str(fx.composition(layout, fx.make_layout((2, 2), (4, 1)))) == "(2,2):(4,1)"
    assert str(fx.logical_product(layout, fx.make_layout(2, 1))) == "((4,8),2):((1,4),32)"
    assert str(fx.logical_divide(layout, fx.make_tile(2, 4))) == "((2,2),(4,2)):((1,2),(4,16))"


@flyc.kernel
def my_kernel(arg_a: fx.Tensor, arg_b: fx.Tensor, n: fx.Constexpr[int]):
    tid = gpu.thread_idx.x
    bid = gpu.block_idx.x
    layout = fx.make_layout((256, n), (1, 256))
    i = fx.crd2idx((tid, bid), layout)
    arg_b[i] = arg_a[i] - 1


@flyc.jit
def launch(arg_a: fx.Tensor, arg_b: fx.Tensor, n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    my_kernel(arg_a, arg_b, n).launch(grid=(n, 1, 1), block=(256, 1, 1), stream=stream)


def test_kernel_and_launcher() -> None:
    a, b = torch.randn(768), torch.zeros(768)
    launch(a, b, 3)
    assert torch.equal(b, a - 1)


THR_M, THR_N, VAL_M, VAL_N = 4, 16, 4, 2


@flyc.kernel
def tiled_kernel(A: fx.Tensor, B: fx.Tensor):
    tid = fx.thread_idx.x
    thr_layout = fx.make_layout((THR_M, THR_N), (1, THR_M))
    val_layout = fx.make_layout((VAL_M, VAL_N), (1, VAL_M))
    copy_atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    layout_thr_val = fx.raked_product(thr_layout, val_layout)
    tile_mn = fx.make_tile(fx.make_layout(THR_M * VAL_M, 1), fx.make_layout(THR_N * VAL_N, 1))
    tiled_copy = fx.make_tiled_copy(copy_atom, fx.make_layout_tv(thr_layout, val_layout)[1], tile_mn)
    assert fx.size(layout_thr_val) == THR_M * THR_N * VAL_M * VAL_N
    thr_copy = tiled_copy.get_slice(tid)
    block_tile_A, block_tile_B = (
        fx.slice(fx.zipped_divide(X, (THR_M * VAL_M, THR_N * VAL_N)), (None, fx.block_idx.x)) for X in (A, B)
    )
    partition_src = thr_copy.partition_S(block_tile_A)
    register_fragment = fx.make_fragment_like(partition_src)
    partition_dst = thr_copy.partition_D(block_tile_B)
    fx.copy(copy_atom, partition_src, register_fragment)
    fx.copy(copy_atom, register_fragment, partition_dst)


@flyc.jit
def tiled(A: fx.Tensor, B: fx.Tensor):
    tiled_kernel(A, B).launch(grid=(2,), block=(64,))


def test_a_hierarchy_of_tiles() -> None:
    a, b = torch.randn(16, 64), torch.zeros(16, 64)
    tiled(a, b)
    assert torch.equal(a, b)


@flyc.kernel
def vector_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, block_dim: fx.Constexpr[int]):
    bid, tid = fx.block_idx.x, fx.thread_idx.x
    by_block = fx.make_layout(block_dim, 1)
    tiles = [fx.slice(fx.logical_divide(X, by_block), (None, bid)) for X in (A, B, C)]
    tA, tB, tC = (fx.slice(fx.logical_divide(tile, fx.make_layout(1, 1)), (None, tid)) for tile in tiles)
    copyAtom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    rA, rB, rC = (fx.make_rmem_tensor(1, fx.Float32) for _ in range(3))
    fx.copy_atom_call(copyAtom, tA, rA)
    fx.copy_atom_call(copyAtom, tB, rB)
    vC = fx.arith.addf(fx.memref_load_vec(rA), fx.memref_load_vec(rB))
    fx.memref_store_vec(vC, rC)
    fx.copy_atom_call(copyAtom, rC, tC)


@flyc.jit
def vector_add(
    A: fx.Tensor, B: fx.Tensor, C, n: fx.Int32, const_n: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)
):
    block_dim = 64
    grid_x = (n + block_dim - 1) // block_dim
    vector_add_kernel(A, B, C, block_dim).launch(grid=(grid_x, 1, 1), block=[block_dim, 1, 1], stream=stream)


def test_adding_vectors() -> None:
    n = 128
    a, b = (torch.randint(0, 10, (n,), generator=torch.Generator().manual_seed(s)).float() for s in (1, 2))
    c = torch.zeros(n)
    vector_add(a, b, c, n, n + 1, stream=fx.Stream(None))
    assert torch.equal(c, a + b)
