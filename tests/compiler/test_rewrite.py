"""Rewritten loops compute what Python's would; what control flow computes is in test_control_flow."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.rewrite import rewrite
from flydsl.compiler.rewrite.unread import read_after
from flydsl.expr import range_constexpr

N = 7


def one(A: Any, B: Any, n: Any):
    total = A[0]
    for i in range(n):
        total = total + A[i]
    B[0] = total


def binds_in_many_ways(A: Any, B: Any, n: Any):
    total = A[0]
    for i in range(n):
        import math as maths

        def twice(x: Any) -> Any:
            return x + x

        match [A[i], 1]:
            case [first, *rest]:
                total = total + first * maths.pi
        if (size := len(rest)) == 1:
            total = total + twice(A[i]) * size
        total = sum((y * 1.0 for y in (total, A[i])), start=0.0)
    B[0] = total


def shadowed(A: Any, B: Any, n: Any):
    def range(*_: Any) -> Any:
        return (1, 2, 3)

    total = A[0]
    for i in range(n):
        total = total + A[i]
    B[0] = total


@pytest.mark.parametrize("body", [binds_in_many_ways, shadowed], ids=lambda f: f.__name__)
def test_loops(body: Callable[..., None]) -> None:
    def typed(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        rewrite(body)(A, B, n)

    kernel = flyc.kernel(typed)

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        kernel(A, B, n).launch(grid=1, block=1)

    A, B = torch.arange(1.0, 9.0), torch.zeros(2)
    launch(A, B, N)
    expected = [0.0, 0.0]
    body(A.tolist(), expected, N)
    assert torch.allclose(B, torch.tensor(expected))


def test_a_loop_in_the_launcher() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, i: fx.Int32):
        A[i] = A[i] + 1.0

    @flyc.jit
    def launch(A: fx.Tensor, first: fx.Int32, last: fx.Int32):
        for i in range(first, last):
            kernel(A, i).launch(grid=1, block=1)

    A = torch.zeros(8)
    launch(A, 2, 5)
    assert A.tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


def test_functions_without_runtime_control_flow_stay_themselves() -> None:
    def plain(A: Any) -> Any:
        return [x + 1 for x in range_constexpr(3)]

    assert rewrite(plain) is plain


def test_long_chains_of_elif() -> None:
    """Python allows twenty statements with a block of their own inside each other, and any number of branches."""
    cases = "".join(f"    elif n == {i}:\n        A[0] = {i}\n" for i in range(2, 40))
    body = f"def chain(A, n):\n    if n == 1:\n        A[0] = 1\n{cases}"
    file = "<a chain of elif>"
    linecache.cache[file] = (len(body), None, body.splitlines(True), file)
    namespace: dict[str, Any] = {}
    exec(compile(body, file, "exec"), namespace)
    A = [0]
    rewrite(namespace["chain"])(A, 37)
    assert A == [37]


def test_the_users_function_is_left_alone() -> None:
    code, names = one.__code__, set(globals())
    made = rewrite(one)
    assert made is not one
    assert one.__code__ is code
    assert set(globals()) == names
    assert made.__globals__ is one.__globals__
    assert (made.__code__.co_filename, made.__code__.co_firstlineno) == (code.co_filename, code.co_firstlineno)


READ_AFTER = {
    "at the end": ("if c:\n    x = 1", ""),
    "in the next statement": ("if c:\n    x = 1\ny = x", "x"),
    "behind another value": ("if c:\n    x = 1\nx = 2\ny = x", ""),
    "behind another value, which may be missing": ("if c:\n    x = 1\nif d:\n    x = 2\ny = x", "x"),
    "in the next turn": ("while c:\n    y = x\n    if c:\n        x = 1", "x"),
    "set again in each turn": ("for i in r:\n    x = 0\n    if c:\n        x = 1", ""),
    "in the outer loop's next turn": ("for j in r:\n    y = x\n    for i in r:\n        if c:\n            x = 1", "x"),
    "behind a break": ("for i in r:\n    if c:\n        x = 1\n        break\n    x = 2\ny = x", "x"),
    "behind a continue": ("for i in r:\n    y = x\n    if c:\n        x = 1\n        continue\n    x = 2", "x"),
    "in a function": ("f = lambda: x\nif c:\n    x = 1\nf()", "x"),
    "added to": ("if c:\n    x = 1\nwith c:\n    x += 1", "x"),
    "in a handler": ("try:\n    if c:\n        x = 1\n    x = 2\nexcept E:\n    y = x", "x"),
    "elsewhere": ("if c:\n    global x\n    x = 1", "x"),
}


@pytest.mark.parametrize(("body", "read"), READ_AFTER.values(), ids=READ_AFTER)
def test_the_names_that_are_read_after_an_if(body: str, read: str) -> None:
    (function,) = ast.parse("def f():\n" + textwrap.indent(body, "    ")).body
    assert isinstance(function, ast.FunctionDef)
    found = [names for node, names in read_after(function).items() if "x = 1" in ast.unparse(node)]
    assert [name for name in "x" if name in found[0]] == list(read)


def test_a_name_that_nothing_reads_afterwards_may_have_two_types() -> None:
    @flyc.kernel
    def kernel(Out: fx.Tensor, n: fx.Int32):
        for i in range_constexpr(2):
            at = n == i
        lane = fx.thread_idx.x
        if lane < n:
            at = 2 * lane
            Out[lane] = at

    @flyc.jit
    def launch(Out: fx.Tensor, n: fx.Int32):
        kernel(Out, n).launch(grid=1, block=8)

    out = torch.zeros(8, dtype=torch.int32)
    launch(out, 3)
    assert out.tolist() == [0, 2, 4, 0, 0, 0, 0, 0]
