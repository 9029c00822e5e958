"""Launches that no device accepts, and launchers that do what only a kernel can."""

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


@flyc.kernel
def kk(A: fx.Tensor, n: fx.Int32):
    A[fx.thread_idx.x, 0] = fx.Float32(n)


@flyc.kernel
def kc(A: fx.Tensor, n: fx.Constexpr[int]):
    A[fx.thread_idx.x, 0] = fx.Float32(n)


@programs.launcher("kernel kk_0 is called, and not launched")
def nolaunch(A: fx.Tensor, n: fx.Int32):
    kk(A, n)  # here


@programs.launcher("returns Int32(?); a launcher returns nothing")
def uses_return(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=64)
    return n  # here


@programs.launcher("kk misses n")
def arity(A: fx.Tensor, n: fx.Int32):
    kk(A).launch(grid=1, block=64)  # here


@programs.launcher("kk takes 2 arguments, got 3")
def arity2(A: fx.Tensor, n: fx.Int32):
    kk(A, n, n).launch(grid=1, block=64)  # here


@programs.launcher("kk has no parameter 'm'")
def kw(A: fx.Tensor, n: fx.Int32):
    kk(A, m=n).launch(grid=1, block=64)  # here


@programs.launcher("A takes a tensor, got Int32(?) (Int32)")
def swapped(A: fx.Tensor, n: fx.Int32):
    kk(n, A).launch(grid=1, block=64)  # here


@programs.launcher("n must be known at compile time (fx.Constexpr), got the runtime value Int32(?)")
def constexpr(A: fx.Tensor, n: fx.Int32):
    kc(A, n).launch(grid=1, block=64)  # here


@programs.launcher("n must be Int32, got 'x' (str)")
def uses_str(A: fx.Tensor, n: fx.Int32):
    kk(A, "x").launch(grid=1, block=64)  # here


@programs.launcher("KernelLauncher.launch() missing 1 required positional argument: 'block")
def noblock(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1)  # here


@programs.launcher("KernelLauncher.launch() missing 2 required positional arguments: 'grid")
def nogrid(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch()  # here


@programs.launcher("KernelLauncher.launch() got an unexpected keyword argument 'threads'")
def badkw(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, threads=64)  # here


@programs.launcher("grid must be at least 1 in every dimension, got (0)")
def grid0(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=0, block=64)  # here


@programs.launcher("grid must be at least 1 in every dimension, got (-1)")
def gridneg(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=-1, block=64)  # here


@programs.launcher("grid=1.5: 1.5 is not an integer")
def gridfloat(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1.5, block=64)  # here


@programs.launcher("grid='1': '1' is not an integer")
def gridstr(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid="1", block=64)  # here


@programs.launcher("grid must have 1 to 3 dimensions, got (1, 1, 1, 1)")
def grid4(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=(1, 1, 1, 1), block=64)  # here


@programs.launcher("grid=None: None is not an integer")
def gridnone(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=None, block=64)  # here


@programs.launcher("grid must have 1 to 3 dimensions, got ()")
def gridempty(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=(), block=64)  # here


@programs.launcher("grid=True: True is not an integer")
def gridbool(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=True, block=64)  # here


@programs.launcher("grid=Tensor(!fly.memref<f32, global, (?,?):(?{i64},1)>): Tensor(!fly.m")
def gridtensor(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=A, block=64)  # here


@programs.launcher("block=(2048, 1, 1) has 2048 threads; gfx942 takes at most 1024")
def block2048(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=2048)  # here


@programs.launcher("block=(32, 32, 2) has 2048 threads; gfx942 takes at most 1024")
def block3d(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=(32, 32, 2))  # here


@programs.launcher("block must be at least 1 in every dimension, got (0)")
def block0(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=0)  # here


@programs.launcher("smem=-1: a number of bytes, at least 0")
def smemneg(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=64, smem=-1)  # here


@programs.launcher("1048576 bytes of LDS (0 static, 1048576 from smem=): 983040 bytes more")
def smembig(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=64, smem=1 << 20)  # here


@programs.launcher("smem must be an integer, in bytes, got 1.5")
def smemfloat(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=64, smem=1.5)  # here


@programs.launcher("stream='x' is a fixed stream")
def stream(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=64, stream="x")  # here


@programs.launcher("'KernelLauncher' object is not callable")
def cfg_call(A: fx.Tensor, n: fx.Int32):
    kk(A, n)(grid=1, block=64)  # here


@programs.launcher("kk[...] launches nothing")
def cuda(A: fx.Tensor, n: fx.Int32):
    kk[1, 64](A, n)  # here


@programs.launcher("grid=Float32(?): Float32(?) is not an integer")
def read(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=A[0, 0], block=64)  # here


@programs.launcher("gpu.thread_id in a launcher, which runs on the host")
def tid(A: fx.Tensor, n: fx.Int32):
    kk(A, n + fx.thread_idx.x).launch(grid=1, block=64)  # here


@programs.launcher("A takes a tensor, got torch.Tensor of shape (64, 8)")
def torch_in_jit(A: fx.Tensor, n: fx.Int32):
    kk(torch.zeros(64, 8), n).launch(grid=1, block=64)  # here


@programs.launcher("empty_like(): argument 'input' (position 1) must be Tensor, not Tensor")
def tensor_new(A: fx.Tensor, n: fx.Int32):
    B = torch.empty_like(A)  # here


@programs.launcher("'Tensor' object has no attribute 'size'")
def shape_attr(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=A.size(0), block=64)  # here


@programs.launcher("'Tensor' object has no attribute 'numel'")
def numel(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=A.numel(), block=64)  # here


@programs.launcher("module 'flydsl.expr' has no attribute 'cdiv'")
def cdiv(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=fx.cdiv(n, 64), block=64)  # here


@programs.launcher("a runtime Float32 is not a Python float")
def print_tensor(A: fx.Tensor, n: fx.Int32):
    float(A[0, 0])  # here


@programs.launcher("block must have 1 to 3 dimensions, got (Int32(?), Int32(?), Int32(?), Int32(?))")
def block_rt(A: fx.Tensor, n: fx.Int32):
    kk(A, n).launch(grid=1, block=(n, n, n, n))  # here


@programs.launcher("fly.memref.store in a launcher, which runs on the host")
def copy_host(A: fx.Tensor, n: fx.Int32):
    A[0, 0] = 1.0  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
