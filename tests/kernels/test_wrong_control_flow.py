"""Python that has no meaning where a runtime value decides, and names and containers without one value."""

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


@programs.kernel("`raise` in a runtime `if` cannot be traced")
def uses_raise(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if n > 3:
        raise ValueError("no")  # here


@programs.kernel("`raise` in a runtime loop cannot be traced")
def raise_for(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n):
        raise ValueError("no")  # here


@programs.kernel("`match` on a runtime Boolean cannot be traced")
def uses_match(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    match n:
        case 3:  # here
            A[0, 0] = 1.0
        case _:
            A[0, 0] = 2.0


@programs.kernel("`in` on a runtime Boolean cannot be traced")
def uses_in(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if n in (1, 2, 3):  # here
        A[0, 0] = 1.0


@programs.kernel("`in` on a runtime Boolean cannot be traced")
def in_list_bind(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = n in [1, 2]  # here
    I[0] = 1


@programs.kernel("iteration over a tensor, Tensor(!fly.memref<i32, global, (?):(1)>)")
def in_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if n in I:  # here
        A[0, 0] = 1.0


@programs.kernel("`if` on a runtime Boolean in a comprehension cannot be traced")
def comp_if(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = [i for i in (1, 2, 3) if i < n]  # here


@programs.kernel("range of a runtime Int32 in a comprehension cannot be traced")
def comp_range(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = [I[i] for i in range(n)]  # here


@programs.kernel("range of a runtime Int32 in a comprehension cannot be traced")
def gen_range(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = sum(I[i] for i in range(n))  # here


@programs.kernel("Python's any() of a runtime Boolean")
def uses_any(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if any(I[i] > n for i in range(4)):  # here
        I[0] = 1


@programs.kernel("Python's all() of a runtime Boolean")
def uses_all(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if all([n > 1, n > 2]):  # here
        I[0] = 1


@programs.kernel("'x' is [i32] in one branch of a runtime `if` and [] in the other")
def append_if(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = []
    if n > 3:
        x.append(1)  # here
    I[0] = len(x)


@programs.kernel("x is changed inside a runtime loop, other than by an assignment that s")
def append_for(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = []
    for i in range(n):
        x.append(i)  # here
    I[0] = len(x)


@programs.kernel("'d' is {a: i32} in one branch of a runtime `if` and {} in the other")
def dict_if(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    d = {}
    if n > 3:  # here
        d["a"] = 1
    I[0] = d["a"]


@programs.kernel("a runtime Int32 as a key of a dict cannot be traced")
def dict_key(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    d = {1: 2}
    I[0] = d[n]  # here


@programs.kernel("[0] * Int32(?): [0] is not a number")
def list_mul(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = [0] * n  # here


@programs.kernel("range of a runtime Int32 inside list(range(n)) cannot be traced")
def range_list(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in list(range(n)):  # here
        I[i] = 0


@programs.kernel("range of a runtime Int32 inside reversed(range(n))")
def uses_reversed(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in reversed(range(n)):  # here
        I[i] = 0


@programs.kernel("range of a runtime Int32 inside zip(")
def uses_zip(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i, j in zip(range(n), range(n)):  # here
        I[i] = 0


@programs.kernel("range of a runtime Int32 inside enumerate(")
def enum_range(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i, j in enumerate(range(n)):  # here
        I[i] = 0


@programs.kernel("range_constexpr of a runtime Int32 cannot be unrolled")
def rconst(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in fx.range_constexpr(n):  # here
        I[i] = 0


@programs.kernel("const_expr of a runtime value")
def constexpr_rt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if fx.const_expr(n > 2):  # here
        I[0] = 0


@programs.kernel("returns Int32(?); a kernel returns nothing")
def return_val(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    return n  # here


@programs.kernel("what is returned is i32 in one branch of a runtime `if` and None in th")
def return_val_if(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if n > 3:  # here
        return 1
    I[0] = 1


@programs.kernel("fact calls itself without end while it is traced")
def recursion(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    def fact(x):
        if x < 2:
            return 1
        return x * fact(x - 1)  # here

    I[0] = fact(n)


@programs.kernel("f calls itself without end while it is traced")
def recursion_plain(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    def f(x):
        return f(x + 1)  # here

    I[0] = f(n)


@programs.kernel("'x' is i32 before the loop and f32 after an iteration")
def type_change(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = 0
    for i in range(n):  # here
        x = x + 0.5
    A[0, 0] = x


@programs.kernel("'y' is assigned in one branch of a runtime `if` only, so it has no val")
def undefined_if(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if n > 3:
        y = 1
    I[0] = y  # here


@programs.kernel("'y' is first assigned inside a runtime loop, so it has no value outsid")
def undefined_loop(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n):
        y = i
    I[0] = y  # here


@programs.kernel("'i' is first assigned inside a runtime loop, so it has no value outsid")
def loopvar_after(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n):
        pass
    I[0] = i  # here


@programs.kernel("cannot access local variable 'y' where it is not associated with a val")
def unbound(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = y  # here
    y = 1


@programs.kernel("name 'tdi' is not defined")
def misspelt(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    tid = 1
    I[0] = tdi  # here


@programs.kernel("'x' is assigned in one branch of a runtime `if` only, so it has no val")
def uses_del(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = n
    if n > 3:
        del x
    I[0] = x  # here


@programs.kernel("the global variable GG is assigned in a runtime `if`")
def uses_global(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    global GG
    if n > 3:  # here
        GG = n


@programs.kernel("range with step 0: a runtime loop counts upward")
def step0(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(0, n, 0):  # here
        I[i] = 1


@programs.kernel("range with step -1: a runtime loop counts upward")
def stepneg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n, 0, -1):  # here
        I[i] = 1


@programs.kernel("range with step -Int32(?): a runtime loop counts upward")
def step_negated(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(10, 0, -n):  # here
        I[i] = 1


@programs.kernel("range takes integers, not Float32(?)")
def range_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n * 0.5):  # here
        I[i] = 1


@programs.kernel("range expects 1 to 3 arguments, got 0")
def range_none(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range():  # here
        I[i] = 1


@programs.kernel("range expects 1 to 3 arguments, got 4")
def range4(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(0, n, 1, 2):  # here
        I[i] = 1


@programs.kernel("'4' of type str is not a number")
def range_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range("4"):  # here
        I[i] = 1


@programs.kernel("`else` on a runtime loop cannot be traced")
def for_else(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    for i in range(n):
        if i > 3:
            break
    else:
        I[0] = 1  # here


@programs.kernel("`else` on a `while` loop cannot be traced")
def while_else(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    while n > 3:
        n = n - 1
    else:
        I[0] = 1  # here


@programs.kernel("cannot unpack non-iterable Int32 object")
def unpack(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    a, b = n  # here


@programs.kernel("not enough values to unpack (expected 3, got 2)")
def unpack_shape(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    a, b, c = A.shape  # here


@programs.kernel("math.exp takes 1 operands, not 2")
def star(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.exp(*[n, n])  # here


@programs.kernel("the value is f32 where the condition holds and None where it does not")
def chain(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = A[0, 0] if n else None  # here


@programs.kernel("the value is 'a' where the condition holds and 'b' where it does not")
def ifexp_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = "a" if n > 3 else "b"  # here


@programs.kernel("a store of i1 to a tensor of f32")
def and_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = n > 3 and A[0, 0]  # here


@programs.kernel("a tensor has no truth value: Tensor(!fly.memref<f32, global, (?,?):(?{i64},1)>)")
def not_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if not A:  # here
        I[0] = 1


@programs.kernel("'x' is i32 in one branch of a runtime `if` and None in the other")
def if_none(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = None
    if n > 3:  # here
        x = n
    I[0] = x


@programs.kernel("'x' is 'b' in one branch of a runtime `if` and 'a' in the other")
def str_carry(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = "a"
    if n > 3:
        x = "b"
    I[0] = len(x)  # here


@programs.kernel("'f' is ")
def func_carry(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    f = fx.exp
    if n > 3:
        f = fx.log
    A[0, 0] = f(A[0, 0])  # here


@programs.kernel("'x' is {v: i32} in one branch of a runtime `if` and {} in the other")
def object_attr(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    class X:
        v = 0

    x = X()
    if n > 3:  # here
        x.v = 1
    I[0] = x.v


@programs.kernel("'X' is Tensor(!fly.memref<i32, global, (?):(1)>) in one branch of a ru")
def tensor_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    X = A
    if n > 3:
        X = I
    X[0] = 1  # here


@programs.kernel("there is no key 'a'")
def keyerror(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = {}["a"]  # here


@programs.kernel("list index out of range")
def indexerror(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = [1][3]  # here


@programs.kernel("index 4 is outside of 0 to 4 (exclusive) in !fly.memref<f32, register,")
def static_oob(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x[4] = 1.0  # here


@programs.kernel("index -1 is outside of 0 to 4 (exclusive) in !fly.memref<f32, register")
def static_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    x.fill(0)
    A[0, 0] = x[-1]  # here


@programs.kernel("stage 7 fly-promote-regmem-to-vectorssa: a register tensor is read her")
def rmem_uninit(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, fx.Float32)
    A[0, 0] = x[0]  # here


@programs.kernel("!fly.memref<f32, register, ?:1> as a vector: its layout is dynamic")
def rmem_dynamic(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(n, fx.Float32)  # here


@programs.kernel("make_layout(-4): an extent must be positive, got -4")
def rmem_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(-4, fx.Float32)  # here


@programs.kernel("make_layout(0): an extent must be positive, got 0")
def rmem_zero(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(0, fx.Float32)  # here


@programs.kernel("memref_alloca: torch.float32 is not a scalar type")
def rmem_dtype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, torch.float32)  # here


@programs.kernel("memref_alloca: 'f32' is not a scalar type")
def rmem_dtype_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(4, "f32")  # here


@programs.kernel("make_layout(Float32): Float32 (NumericMeta) cannot be a leaf of an int tuple")
def rmem_swap(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(fx.Float32, 4)  # here


@programs.kernel("!fly.memref<f32, register, 1048576:1> takes 4194304 bytes of registers")
def rmem_huge(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    x = fx.make_rmem_tensor(1 << 20, fx.Float32)  # here
    x.fill(0)
    x[n] = 1.0
    A[0, 0] = x[n + 1]


@programs.kernel("global_store_dword writes 4 bytes outside of I (int32[64], 256 bytes):")
def store_const_oob(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[100] = 1  # here


@programs.kernel("index -1 is outside of 0 to ? (exclusive) in !fly.memref<i32, global, ")
def store_neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[-1] = 1  # here


@programs.kernel("Int32(1.5): not an integer")
def f32_to_int_store(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = 1.5  # here


@programs.kernel("a store of f32 to a tensor of i32")
def f32_rt_int_store(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = A[0, 0]  # here


@programs.kernel("barrier() takes 0 positional arguments but 1 was given")
def barrier_arg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.barrier(64)  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
