"""Copy and MMA atoms, tiles and fragments that do not fit."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.kernels.wrong import Programs, atom, check, mma, tile_of

programs = Programs()


@programs.kernel("make_copy_atom takes a copy instruction, not 32")
def copy_atom_type(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_copy_atom(32, fx.Float32)  # here


@programs.kernel("make_copy_atom takes a copy instruction, not ")
def copy_atom_class(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_copy_atom(fx.UniversalCopy, fx.Float32)  # here


@programs.kernel("make_copy_atom() missing 1 required positional argument: 'element'")
def copy_atom_noelem(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_copy_atom(fx.UniversalCopy(32))  # here


@programs.kernel("UniversalCopy of 0 bits does not exist")
def copy_atom_bits0(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.UniversalCopy(0)  # here


@programs.kernel("UniversalCopy of 256 bits does not exist")
def copy_atom_bits256(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.UniversalCopy(256)  # here


@programs.kernel("UniversalCopy of 32 bits does not exist")
def copy_atom_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.UniversalCopy("32")  # here


@programs.kernel("copy() missing 1 required positional argument: 'target'")
def copy_noatom(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(tile_of(A, 4), tile_of(C, 4))  # here


@programs.kernel("copy: atom must be a copy atom, got Tensor(!fly.memref<f32, global, (4):")
def copy_order(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(tile_of(A, 4), tile_of(C, 4), atom())  # here


@programs.kernel("copy: atom must be a copy atom, got MmaAtom(!fly.mma_atom<!fly_rocdl.cdn")
def copy_mmaatom(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), tile_of(A, 4), tile_of(C, 4))  # here


@programs.kernel("copy takes a tensor, not Int32(?)")
def copy_number(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), n, tile_of(C, 4))  # here


@programs.kernel("copy takes a tensor, not 4:1")
def copy_layout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), fx.make_layout(4), tile_of(C, 4))  # here


@programs.kernel("copy: the source has 4 elements, the destination 8\n")
def copy_sizes(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), tile_of(C, 8))  # here


@programs.kernel("copy: a call of this atom copies 4 values, which do not divide the 6 of (6):(1)")
def copy_width(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(128), tile_of(A, 6), tile_of(C, 6))  # here


@programs.kernel("copy: the source has elements f32, the destination i32\n")
def copy_dtype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), tile_of(I, 4))  # here


@programs.kernel("copy: the atom copies 16-bit values, the source has f32\n")
def copy_dtype16(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float16), tile_of(A, 4), tile_of(C, 4))  # here


@programs.kernel("pred must be a comparison or a register tensor of fx.Boolean, got 3")
def copy_pred_int(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), tile_of(C, 4), pred=3)  # here


@programs.kernel("!fly.copy_atom<!fly.universal_copy<32>, 32> has no value 'mask' to set")
def copy_kw(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), tile_of(C, 4), mask=n > 3)  # here


@programs.kernel("!fly.copy_atom<!fly.universal_copy<32>, 32> has no value 'soffset' to set")
def copy_soffset(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), tile_of(C, 4), soffset=n)  # here


@programs.kernel(
    "copy: the atom copies between a buffer tensor and registers, and this is from global to global memory\n"
)
def buffer_atom_plain(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32), tile_of(A, 4), tile_of(C, 4))  # here


@programs.kernel("make_buffer_tensor takes a tensor, not 4:1")
def buf_of_layout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.make_buffer_tensor(fx.make_layout(4))  # here


@programs.kernel("make_buffer_tensor of !fly.memref<f32, register, 4:1>: it must lie in ")
def buf_of_rmem(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.make_buffer_tensor(fx.make_rmem_tensor(4, fx.Float32))  # here


@programs.kernel("make_buffer_tensor of !fly.memref<f32, shared, 4:1>: it must lie in gl")
def buf_of_lds(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(4)))  # here


@programs.kernel("make_buffer_tensor of !fly.memref<f32, #fly_rocdl.buffer_desc, (?,?):(")
def buf_twice(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.make_buffer_tensor(fx.rocdl.make_buffer_tensor(A))  # here


@programs.kernel("there is no MFMA 17x16x4 of f32 and f32 to f32")
def mfma_shape(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.MFMA(17, 16, 4, fx.Float32)  # here


@programs.kernel("'f32' is not an element type")
def mfma_type(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, "f32"))  # here


@programs.kernel("MFMA() missing 2 required positional arguments: 'k' and 'elem_ty_ab'")
def mfma_arity(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.MFMA(16, 16)  # here


@programs.kernel("make_mma_atom takes a matrix instruction, not UniversalCopy(bits=32)")
def mma_of_copy(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_mma_atom(fx.UniversalCopy(32))  # here


@programs.kernel("make_tiled_mma takes an MMA atom first, not MFMA(m=16, n=16, k=4, a='f")
def tiled_mma_noatom(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_tiled_mma(fx.rocdl.MFMA(16, 16, 4, fx.Float32), fx.make_layout((1, 1, 1)))  # here


@programs.kernel("TiledMma.get_slice() missing 1 required positional argument: 'thr_idx'")
def get_slice_missing(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice()  # here


@programs.kernel("'x' of type str is not a number")
def get_slice_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice("x")  # here


@programs.kernel("'TiledMma' object has no attribute 'partition_A'")
def partition_on_tiled(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().partition_A(tile_of(A, 16, 4))  # here


@programs.kernel("operand a of a tiled MMA has two modes; (16):(1) has 1")
def partition_wrong_rank(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(fx.thread_idx.x).partition_A(tile_of(A, 16))  # here


@programs.kernel("gemm() missing 3 required positional arguments: 'a', 'b', and 'c'")
def gemm_args(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.gemm(mma(), tile_of(C, 16, 16))  # here


@programs.kernel("gemm: mma must be an MMA atom or a tiled MMA, got CopyAtom(!fly.copy_at")
def gemm_notmma(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.gemm(atom(), C, A, A, C)  # here


@programs.kernel("raked_product((8,8):(1,8), 'x'): 'x' (str) cannot be a leaf of an int tuple")
def tiledcopy_sizes(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_tiled_copy_tv(atom(), fx.make_layout((8, 8)), "x")  # here


@programs.kernel("a thread holds 1 values of this copy, in (64,1):(1,0), which must be")
def retile_plain(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    tc = fx.make_tiled_copy_tv(atom(), fx.make_layout((8, 8)), fx.make_layout((1, 1)))
    tc.get_slice(fx.thread_idx.x).retile(A)  # here


@programs.kernel("type 'Vector' is not subscriptable")
def mfma_raw_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.mfma_f32_16x16x4f32(fx.Vector[fx.Float32](4), [A[0, 0], A[0, 0], A[0, 0], 0, 0, 0])  # here


@programs.kernel("operand c of mfma_f32_16x16x4f32: it takes vector<4xf32>, not i32")
def mfma_raw(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.mfma_f32_16x16x4f32(n, n, n)  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
