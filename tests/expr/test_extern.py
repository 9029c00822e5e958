"""Functions that bitcode from outside defines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from llvmlite import binding

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.extern_link import BoundExternFunction, link_extern, register_extern_resolver
from flydsl.errors import ArgumentError, CompileError, TraceError
from flydsl.expr.extern import ffi
from tests.launchers import launcher_of

LIBRARY = """
target triple = "amdgcn-amd-amdhsa"
define i32 @scaled_sum(i32 %a, i64 %b) {
  %scaled = mul i32 %a, 3
  %low = trunc i64 %b to i32
  %sum = add i32 %scaled, %low
  ret i32 %sum
}
define void @put(ptr addrspace(1) %place, i32 %i, float %v) {
  %at = getelementptr float, ptr addrspace(1) %place, i32 %i
  store float %v, ptr addrspace(1) %at
  ret void
}
define i32 @never_called(i32 %a) { ret i32 %a }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "library.bc"
    file.write_bytes(binding.parse_assembly(LIBRARY).as_bitcode())
    return file


def launched(body: Callable[..., Any], *tensors: torch.Tensor) -> Any:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor):
        body(fx.Int32(fx.thread_idx.x), A, B)

    launch = launcher_of(kernel, grid=1, block=64)
    return flyc.compile(launch, *tensors)


def test_functions_of_bitcode(library: Path) -> None:
    scaled_sum = link_extern(ffi("scaled_sum", ["int32", "int64"], "int32"), bitcode_path=library)
    put = BoundExternFunction("put", ["ptr<1>", "int32", "float32"], "void", bitcode_path=str(library))

    def body(i: Any, A: Any, B: Any) -> None:
        A[i] = scaled_sum(i, 7) + scaled_sum(0, i)
        put(fx.Int64(fx.ptrtoint(fx.get_iter(B))), i, 2)

    a, b = torch.zeros(64, dtype=torch.int32), torch.zeros(64)
    artifact = launched(body, a, b)
    assert torch.equal(a, 4 * torch.arange(64, dtype=torch.int32) + 7)
    assert torch.equal(b, torch.full_like(b, 2))
    assert "never_called" not in artifact.isa
    assert artifact.source_ir.count("llvm.func @scaled_sum") == 1


def test_a_resolver_says_where_a_function_is(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.compiler.extern_link._resolvers", [])
    register_extern_resolver(lambda symbol, path, init: (path or library, init))
    scaled_sum = BoundExternFunction("scaled_sum", ["int32", "int64"], "int32")
    a = torch.zeros(64, dtype=torch.int32)

    def body(i: Any, A: Any, B: Any) -> None:
        A[i] = scaled_sum(i, 0)

    launched(body, a, a)
    assert a[5] == 15


def test_bitcode_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "text.bc"
    file.write_text("not bitcode")
    function = ffi("f", [], "void")

    def with_text(i: Any, A: Any, B: Any) -> None:
        link_extern(function, bitcode_path=file)()

    def with_nothing(i: Any, A: Any, B: Any) -> None:
        link_extern(function, bitcode_path=tmp_path / "nothing.bc")()

    with pytest.raises(CompileError, match="bitcode to link with"):
        launched(with_text, torch.zeros(4), torch.zeros(4))
    with pytest.raises(ArgumentError, match="No such file"):
        launched(with_nothing, torch.zeros(4), torch.zeros(4))


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda i: ffi("f", ["int32"], "void")(i, i), TypeError, "f takes 1 arguments, got 2"),
        (lambda i: ffi("f", ["ptr<1>"], "void")(0), TypeError, "got the Python int 0"),
        (lambda i: ffi("f", ["ptr"], "void")(i), TypeError, "its address as i64, got i32"),
        (lambda i: ffi("f", ["int64"], "void")(ffi("g", [], "ptr")()), TypeError, "expects i64, got !llvm.ptr"),
        (lambda i: ffi("f", ["ptr<1>"], "void")(ffi("g", [], "ptr")()), TypeError, "got !llvm.ptr"),
        (lambda i: ffi("f", ["ptr<>"], "void")(i), ValueError, "address space is a number"),
        (lambda i: [ffi("f", ["int32"], "void")(i), ffi("f", ["int64"], "void")(i)], TypeError, "already declared"),
    ],
)
def test_calls_that_do_not_fit(call: Callable[[Any], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        launched(lambda i, A, B: call(i), torch.zeros(4), torch.zeros(4))
    assert "test_extern.py" in str(caught.value)


def test_what_belongs_elsewhere() -> None:
    with pytest.raises(TypeError, match="link_extern"):
        ffi("f", [], "void", bitcode_path="x.bc")
    with pytest.raises(TypeError, match="module_init_fn is unsupported"):
        link_extern(ffi("f", [], "void"), module_init_fn=print)
    with pytest.raises(TraceError, match="outside of a kernel"):
        ffi("f", [], "void")()
