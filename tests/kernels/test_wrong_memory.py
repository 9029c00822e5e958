"""Vectors, pointers, shared memory, buffers and instructions with the wrong operands."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.kernels.wrong import Programs, check

programs = Programs()


@programs.kernel("Vector.load() missing 2 required positional arguments: 'memref' and 'i")
def load_bad(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Vector.load(A)  # here


@programs.kernel("arith.addf of vector<4xf32> and vector<3xf32>: the types differ")
def ops(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x.fill(0)
    y = fx.make_rmem_tensor(3, fx.Float32)
    y.fill(0)
    z = x.load() + y.load()  # here


@programs.kernel("element 7 of a vector of 4")
def index(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x.fill(0)
    A[0, 0] = x.load()[7]  # here


@programs.kernel("reduce by 'foo'")
def reduce(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x.fill(0)
    A[0, 0] = x.load().reduce("foo")  # here


@programs.kernel("a store of vector<4xf32> to a tensor of f32")
def store(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x.fill(0)
    A[0, 0] = x.load()  # here


@programs.kernel("Float32('x'): str is not a number")
def fill_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_rmem_tensor(4, fx.Float32).fill("x")  # here


@programs.kernel("!fly.memref<f32, global, (?,?):(?{i64},1)> as a vector: its layout is ")
def fill_global(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A.fill(0)  # here


@programs.kernel("!fly.memref<f32, global, (?,?):(?{i64},1)> as a vector: its layout is ")
def load_global(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A.load()  # here


@programs.kernel("Float32(Pointer(!fly.ptr<f32, global>)): Pointer is not a number")
def deref(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.get_iter(A)  # here


@programs.kernel("a shape, stride or coordinate must consist of integers, got 1.5")
def add(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.get_iter(A) + 1.5  # here


@programs.kernel("'x' of type str is not a number")
def addoff(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.add_offset(fx.get_iter(A), "x")  # here


@programs.kernel("ptr_load takes a pointer, not 3")
def load(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.ptr_load(3)  # here


@programs.kernel("recast_iter takes a pointer, not 'f16'")
def recast(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.recast_iter(fx.get_iter(A), "f16")  # here


@programs.kernel("Float32('x'): str is not a number")
def atomic_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.atomic_add(fx.get_iter(A), "x")  # here


@programs.kernel("atomic_add takes a pointer to global or shared memory, not Tensor(!fly")
def atomic_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.atomic_add(A, 1.0)  # here


@programs.kernel("there is no atomic_and of Float32")
def atomic_and_f(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.atomic_and(fx.get_iter(A), 1)  # here


@programs.kernel("the size of fx.Array must be a positive Python int, got -4")
def lds_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.SharedAllocator().allocate(fx.Array[fx.Float32, -4])  # here


@programs.kernel("allocate takes a type or a number of bytes, not 'x'")
def lds_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.SharedAllocator().allocate("x")  # here


@programs.kernel("allocate takes a type or a number of bytes, not torch.float32")
def lds_type(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.SharedAllocator().allocate(torch.float32)  # here


@programs.kernel("'f32' is not an element type")
def dyn_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.get_dyn_shared("f32")  # here


@programs.kernel("the resource of raw_ptr_buffer_load: it takes a buffer resource, not ")
def load_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.buffer_ops.buffer_load(A, 0, 4)  # here


@programs.kernel("create_buffer_resource takes a tensor in global memory, not 3")
def create(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.buffer_ops.create_buffer_resource(3)  # here


@programs.kernel("the dtype of buffer_load: 'f32' is not a type")
def load_dtype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    r = fx.buffer_ops.create_buffer_resource(A)
    fx.buffer_ops.buffer_load(r, n, vec_width=3, dtype="f32")  # here


@programs.kernel("the vec_width of buffer_load")
def load_width(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    r = fx.buffer_ops.create_buffer_resource(A)
    fx.buffer_ops.buffer_load(r, n, vec_width=65)  # here


@programs.kernel("the data of buffer_store: 'x' is not a value of the program")
def b_store(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    r = fx.buffer_ops.create_buffer_resource(A)
    fx.buffer_ops.buffer_store("x", r, n)  # here


@programs.kernel("the offset of buffer_load must be an integer, got Float32(?)")
def off(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    r = fx.buffer_ops.create_buffer_resource(A)
    fx.buffer_ops.buffer_load(r, A[0, 0], vec_width=1)  # here


@programs.kernel("the lane of readlane: 'x' is not a value of the program")
def readlane(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.readlane(n, "x")  # here


@programs.kernel("the predicate of ballot: it takes i1, not f32")
def ballot(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.ballot(A[0, 0])  # here


@programs.kernel("ds_bpermute(res, index, src): missing a required argument: 'src'")
def bperm(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.ds_bpermute(n)  # here


@programs.kernel("the index of ds_bpermute: it takes i32, not f32")
def bperm_f(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.ds_bpermute(A[0, 0], A[0, 0])  # here


@programs.kernel("s_waitcnt: Int32(?) is part of the instruction and must be known at compile time")
def waitcnt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.s_waitcnt(n)  # here


@programs.kernel("s_setprio: 99999 is outside of 0 to 3")
def setprio(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.s_setprio(99999)  # here


@programs.kernel("s_sleep: 'x' is part of the instruction and must be known at compile time")
def sleep(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.s_sleep("x")  # here


@programs.kernel("sched_group_barrier() missing 1 required positional argument: 'size'")
def sgb(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.sched_group_barrier(1)  # here


@programs.kernel("dpp_ctrl of update_dpp: 4095 is outside of 0 to 511")
def dpp(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.update_dpp(n, n, 0xFFF, 15, 15, True)  # here


@programs.kernel("shuffle() missing 1 required positional argument: 'width'")
def shuffle_w(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.gpu.shuffle(A[0, 0], 1)  # here


@programs.kernel("the width of shuffle: 65 is outside of 1 to 64")
def shuffle_m(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A[0, 0].shuffle_xor(1, 65)  # here


@programs.kernel("cvt_scalef32_pk_f32_fp4")
def arch(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.cvt_scalef32_pk_f32_fp4(n, A[0, 0], 0)  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
