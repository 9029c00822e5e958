"""Names of other languages, and operands that an operator or a function does not take."""

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


@programs.kernel("module 'flydsl.expr' has no attribute 'syncthreads'")
def syncthreads(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.syncthreads()  # here


@programs.kernel("its contents have it: .peek().view")
def array_without_peek(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.SharedAllocator().allocate(fx.Array[fx.Float32, 8]).view(fx.make_layout(8, 1))  # here


@programs.kernel("did you mean scan_with_aggregate?")
def method_of_a_scan(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.BlockScan[fx.Int32, 64].with_aggregate(n)  # here


@programs.kernel("%load_ext workbench adds it")
def live_view_in_a_kernel(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout(4, 1).explore()  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'sync_threads'")
def sync_threads(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.sync_threads()  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'program_id'")
def program_id(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.program_id(0)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'threadIdx'")
def cuda_thread_index(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.threadIdx.x  # here


@programs.kernel("name 'threadIdx' is not defined")
def threadidx_bare(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = threadIdx.x  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'blockIdx'")
def cuda_block_index(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.blockIdx.x  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'where'")
def where(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.where(n > 3, 1.0, 2.0)  # here


@programs.kernel("'Float32' object has no attribute 'astype'")
def astype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = A[0, 0].astype(fx.Int32)  # here


@programs.kernel("to: 'int32' is not a scalar type")
def to_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = A[0, 0].to("int32")  # here


@programs.kernel("to: torch.int32 is not a scalar type")
def to_torch(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = A[0, 0].to(torch.int32)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'laneid'")
def lane_id(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.laneid()  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'warp_idx'")
def warp_id(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.warp_idx()  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'sigmoid'")
def sigmoid(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.sigmoid(A[0, 0])  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'relu'")
def relu(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.relu(A[0, 0])  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'load'")
def load(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.load(A)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'arange'")
def arange(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.arange(0, 64)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'dot'")
def dot(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.dot(A, C)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'shfl_down'")
def shfl(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.shfl_down(A[0, 0], 1)  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'shared_array'")
def shared(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    s = fx.shared_array(fx.Float32, 64)  # here


@programs.kernel("Int32(?) is not a valid CachePolicy")
def cache_policy(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.CachePolicy(n)  # here


@programs.kernel("exp(): argument 'input' (position 1) must be Tensor, not Float32")
def torch_fn(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = torch.exp(A[0, 0])  # here


@programs.kernel("a runtime Float32 is not a Python float")
def math_fn(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    import math

    A[0, 0] = math.exp(A[0, 0])  # here


@programs.kernel("operand 'Float32' does not support ufuncs (__array_ufunc__=None)")
def numpy_fn(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    import numpy as np

    A[0, 0] = np.exp(A[0, 0])  # here


@programs.kernel("'Tensor' object has no attribute 'sum'")
def tensor_sum(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A.sum()  # here


@programs.kernel("'Tensor' object has no attribute 'T'")
def tensor_T(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A.T[0, 0]  # here


@programs.kernel("unsupported operand type(s) for +: 'Tensor' and 'Tensor'")
def tensor_add(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = (A + A)[0, 0]  # here


@programs.kernel("unsupported operand type(s) for @: 'Tensor' and 'Tensor'")
def tensor_matmul(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = A @ C  # here


@programs.kernel("a range in the index of a tensor, Tensor(!fly.memref<f32, global, (?,?")
def uses_slice(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = A[0:4, 0]  # here


@programs.kernel("a range in the index of a tensor, Tensor(!fly.memref<f32, global, (?,?")
def slice_store(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0:4, 0] = 1.0  # here


@programs.kernel("Ellipsis of type ellipsis is not a number")
def ellipsis(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = A[..., 0]  # here


@programs.kernel("Float32(Tensor(!fly.memref<f32, global, (?,?):(?{i64},1)>)): Tensor is")
def store_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = C  # here


@programs.kernel("Float32('x'): str is not a number")
def store_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = "x"  # here


@programs.kernel("Float32(None): NoneType is not a number")
def store_none(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = None  # here


@programs.kernel("Float32((1.0, 2.0)): tuple is not a number")
def store_tuple(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = (1.0, 2.0)  # here


@programs.kernel("Float32(1j): complex is not a number")
def store_complex(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = 1j  # here


@programs.kernel("a shape, stride or coordinate must consist of integers, got 0.5")
def index_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0.5, 0] = 1.0  # here


@programs.kernel("a shape, stride or coordinate must consist of integers, got Float32(?)")
def index_rt_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[A[0, 0], 0] = 1.0  # here


@programs.kernel("'x' of type str is not a number")
def index_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A["x", 0] = 1.0  # here


@programs.kernel("fly.memref.store: operand 2 is !fly.memref<i32, global, (?):(1)>, wher")
def index_bool_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[I] = 1.0  # here


@programs.kernel("a store with 3 indices of a tensor with 2 modes, !fly.memref<f32, glob")
def three_indices(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0, 0] = 1.0  # here


@programs.kernel("object of type 'Tensor' has no len()")
def uses_len(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = len(A)  # here


@programs.kernel("iteration over a tensor, Tensor(!fly.memref<f32, global, (?,?):(?{i64}")
def iter_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for x in A:  # here
        I[0] = 1


@programs.kernel("'Int32' object is not iterable")
def iter_int(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for x in n:  # here
        I[0] = 1


@programs.kernel("iteration over a tensor, Tensor(!fly.memref<i32, global, (?):(1)>)")
def uses_enumerate(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i, x in enumerate(I):  # here
        I[i] = 1


@programs.kernel("a tensor has no truth value: Tensor(!fly.memref<f32, global, (?,?):(?{i64},1)>)")
def bool_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if A:  # here
        I[0] = 1


@programs.kernel("'>' not supported between instances of 'Tensor' and 'int'")
def cmp_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if A > 0:  # here
        I[0] = 1


@programs.kernel("int() of a runtime")
def int_of_rt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = int(n)  # here


@programs.kernel("a runtime Int32 is not a Python float")
def float_of_rt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = float(n)  # here


@programs.kernel("a runtime Int32 as text")
def str_of_rt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = f"{n:d}"  # here


@programs.kernel("unsupported operand type(s) for divmod(): 'Int32' and 'int'")
def uses_divmod(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    q, r = divmod(n, 3)  # here
    I[0] = q  # here


@programs.kernel("an integer to the power of -1")
def pow_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n**-1  # here


@programs.kernel("Float32 has no operator &")
def and_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A[0, 0] & A[1, 0]  # here


@programs.kernel("arith.xori takes integers, not f32")
def invert_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = ~A[0, 0]  # here


@programs.kernel("Float32 has no operator <<")
def shift_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A[0, 0] << 1  # here


@programs.kernel("Int32(?) + '1': '1' is not a number")
def add_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n + "1"  # here


@programs.kernel("Int32(?) + None: None is not a number")
def add_none(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n + None  # here


@programs.kernel("'Int32' object is not callable")
def call_value(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n(3)  # here


@programs.kernel("'Int32' object is not subscriptable")
def index_value(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n[3]  # here


@programs.kernel("'Int32' object has no attribute 'foo'")
def attr_value(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n.foo  # here


@programs.kernel("'Tensor' object has no attribute 'foo'")
def attr_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = A.foo  # here


@programs.kernel("'Tuple3D' object is not callable")
def tid_call(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.thread_idx()  # here


@programs.kernel("'Tuple3D' object has no attribute 'w'")
def tid_w(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.thread_idx.w  # here


@programs.kernel("unsupported operand type(s) for +: 'Tuple3D' and 'int'")
def tid_add(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.thread_idx + 1  # here


@programs.kernel("the operation of a Tuple3D must be one of 'thread_id', 'block_id', 'block_dim', 'grid_dim', got")
def position_of_a_number(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.Tuple3D(n).x  # here


@programs.kernel("the dimension of gpu.thread_id must be 'x', 'y' or 'z', got 'w'")
def thread_id_w(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.thread_id("w")  # here


@programs.kernel("math.sqrt takes floats, not i32")
def sqrt_int(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.sqrt(n)  # here


@programs.kernel("'x' of type str is not a number")
def exp_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.exp("x")  # here


@programs.kernel("math.exp takes 1 operands, not 2")
def exp_arity(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.exp(A[0, 0], A[0, 0])  # here


@programs.kernel("math.exp takes 1 operands, not 0")
def exp_none(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.exp()  # here


@programs.kernel("math.fma takes 3 operands, not 2")
def fma_arity(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.fma(A[0, 0], A[0, 0])  # here


@programs.kernel("'Float32' object is not iterable")
def max_one(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = max(A[0, 0])  # here


@programs.kernel("'x' of type str is not a number")
def max_mixed(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.max(A[0, 0], "x")  # here


@programs.kernel("Float32(?) + 'x': 'x' is not a number")
def sum_list(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = sum([A[0, 0], "x"])  # here


@programs.kernel("Python's sorted() of a runtime Boolean")
def uses_sorted(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = sorted([A[0, 0], A[1, 0]])[0]  # here


@programs.kernel("Float32(Tensor(!fly.memref<f32, global, (?,?):(?{i64},1)>)): Tensor is")
def f32_of_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.Float32(A)  # here


@programs.kernel("Int32('7'): str is not a number")
def i32_of_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.Int32("7")  # here


@programs.kernel("Int32(1099511627776): outside -2147483648 to 2147483647")
def i32_overflow(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = 1 << 40  # here


@programs.kernel("a store of i64 to a tensor of i32")
def add_overflow(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n + (1 << 40)  # here


@programs.kernel("Int32(nan): not an integer")
def int_nan(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.Int32(float("nan"))  # here


@programs.kernel("module 'flydsl.expr' has no attribute 'Int7'")
def dtype_unknown(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.Int7(3)  # here


@programs.kernel("% of a Int32 by zero")
def float_mod0(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n % 0  # here


@programs.kernel("// of a Int32 by zero")
def div0(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n // 0  # here


@programs.kernel("<< of a Int32 by -1: it has 32 bits")
def shift_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n << -1  # here


@programs.kernel("<< of a Int32 by 32: it has 32 bits")
def shift_big(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = n << 32  # here


@programs.kernel(": too many positional argum")
def select_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.select(n > 3, "a", 1.0)  # here


@programs.kernel("select() missing 1 required positional argument: 'false_value'")
def select_two(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = fx.arith.select(n > 3, 1.0)  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
