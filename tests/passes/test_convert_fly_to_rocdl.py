"""Pointers and atoms become LLVM operations, and nothing of fly is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.errors import CompileError

PASS = "convert-fly-to-rocdl"


@pytest.mark.parametrize(
    ("space", "pointer"),
    [("global", "!llvm.ptr<1>"), ("shared", "!llvm.ptr<3>"), ("generic", "!llvm.ptr"), ("register", "!llvm.ptr<5>")],
)
def test_address_spaces(check: Callable[..., str], space: str, pointer: str) -> None:
    check(
        f"""
        // CHECK: (%arg0: {pointer})
        // CHECK: llvm.load %arg0 {{alignment = 4 : i64}} : {pointer} -> vector<2xf32>
        // CHECK-NOT: fly
        func.func @f(%p: !fly.ptr<f32, {space}>) -> vector<2xf32> {{
          %v = fly.ptr.load(%p) : (!fly.ptr<f32, {space}>) -> vector<2xf32>
          return %v : vector<2xf32>
        }}""",
        PASS,
    )


@pytest.mark.parametrize(
    ("element", "stored", "cast"),
    [("f8E4M3FN", "i8", "bitcast"), ("i1", "i8", "trunci"), ("index", "i64", "index_cast"), ("bf16", "bf16", None)],
)
def test_elements_that_llvm_does_not_load(
    check: Callable[..., str], element: str, stored: str, cast: str | None
) -> None:
    check(
        f"""
        // CHECK: llvm.load %arg0
        // CHECK: -> {stored}
        // CHECK: {f"arith.{cast}" if cast else "return"}
        func.func @f(%p: !fly.ptr<{element}, global>) -> {element} {{
          %v = fly.ptr.load(%p) : (!fly.ptr<{element}, global>) -> {element}
          return %v : {element}
        }}""",
        PASS,
    )


def test_registers_are_allocated_once_even_in_a_loop(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: llvm.alloca
        // CHECK: scf.for
        func.func @f(%x: f32, %n: index) {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          scf.for %i = %zero to %n step %one {
            %p = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
            fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()
          }
          return
        }""",
        PASS,
    )


def test_known_dimensions_are_constants_and_others_hidden_arguments(check: Callable[..., str]) -> None:
    check(
        """
        gpu.module @k {
          // CHECK: arith.constant 64 : index
          // CHECK: llvm.amdgcn.implicitarg.ptr
          // CHECK: llvm.load
          // CHECK-NOT: gpu.grid_dim
          gpu.func @f() -> (index, index) attributes {known_block_size = array<i32: 64, 1, 1>} {
            %b = gpu.block_dim x
            %g = gpu.grid_dim x
            gpu.return %b, %g : index, index
          }
        }""",
        PASS,
    )


def test_what_no_pass_lowered_is_an_error(check: Callable[..., str]) -> None:
    with pytest.raises(CompileError, match=r"fly\.size is left over"):
        check(
            """
            func.func @f(%s: !fly.int_tuple<(?,?)>) {
              %z = fly.size(%s) : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
              return
            }""",
            PASS,
        )
    with pytest.raises(CompileError, match="is left over in"):
        check("func.func @f(%s: !fly.layout<4:1>) { return }", PASS)
