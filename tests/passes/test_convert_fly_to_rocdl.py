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
    with pytest.raises(CompileError, match=r"has no form that func\.return could use"):
        check(
            """
            func.func @f(%s: !fly.int_tuple<(?,?)>) -> !fly.int_tuple<?> {
              %z = fly.size(%s) : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
              return %z : !fly.int_tuple<?>
            }""",
            PASS,
        )
    with pytest.raises(CompileError, match="is left over in"):
        check(
            """
            func.func @f(%c: i1, %p: !fly.ptr<f32, global>) {
              %0 = ub.poison : !fly.swizzle<S<3,3,3>>
              return
            }""",
            PASS,
        )


def test_earlier_passes_run_where_they_have_something_left_to_do(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: func.func @load(%arg0: !llvm.ptr<1>) -> f32
        // CHECK: llvm.getelementptr %arg0[%c3_i32]
        // CHECK: llvm.load
        // CHECK: func.func @private() -> f32
        // CHECK: llvm.alloca %c8_i64 x f32 : (i64) -> !llvm.ptr<5>
        // CHECK: llvm.alloca %c4_i64 x f16 : (i64) -> !llvm.ptr<5>
        // CHECK: llvm.store %cst, %2 : f32, !llvm.ptr<5>
        // CHECK: func.func @multiply(%arg0: !llvm.ptr<5>, %arg1: !llvm.ptr<5>)
        // CHECK: rocdl.mfma.f32.16x16x4f32
        // CHECK: func.func @second(%arg0: !llvm.ptr<1>, %arg1: !llvm.ptr<3>) -> (!llvm.ptr<3>, !llvm.ptr<1>)
        // CHECK-NOT: fly.
        func.func @load(%t: !fly.memref<f32, global, 32:1>) -> f32 {
          %i = fly.get_iter(%t) : (!fly.memref<f32, global, 32:1>) -> !fly.ptr<f32, global>
          %o = fly.make_int_tuple() : () -> !fly.int_tuple<3>
          %p = fly.add_offset(%i, %o) : (!fly.ptr<f32, global>, !fly.int_tuple<3>) -> !fly.ptr<f32, global>
          %v = fly.ptr.load(%p) : (!fly.ptr<f32, global>) -> f32
          return %v : f32
        }
        func.func @private() -> f32 {
          %l = fly.static : !fly.layout<8:1>
          %i = fly.make_coord() : () -> !fly.int_tuple<5>
          %one = arith.constant 1.0 : f32
          %t = fly.memref.alloca(%l) : (!fly.layout<8:1>) -> !fly.memref<f32, register, 8:1>
          %k = fly.static : !fly.layout<4:1>
          %h = fly.memref.alloca(%k) : (!fly.layout<4:1>) -> !fly.memref<f16, register, 4:1>
          %x = arith.constant dense<0.0> : vector<4xf16>
          fly.memref.store_vec(%x, %h) : (vector<4xf16>, !fly.memref<f16, register, 4:1>) -> ()
          fly.memref.store(%one, %t, %i) : (f32, !fly.memref<f32, register, 8:1>, !fly.int_tuple<5>) -> ()
          %v = fly.memref.load(%t, %i) : (!fly.memref<f32, register, 8:1>, !fly.int_tuple<5>) -> f32
          return %v : f32
        }
        func.func @multiply(
          %m: !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>, <(2,1,1):(1,0,0)>>,
          %c: !fly.memref<f32, register, 4:1>, %a: !fly.memref<f32, register, 1:1>) {
          fly.gemm(%m, %c, %a, %a, %c) : (!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>, <(2,1,1):(1,0,0)>>, !fly.memref<f32, register, 4:1>, !fly.memref<f32, register, 1:1>, !fly.memref<f32, register, 1:1>, !fly.memref<f32, register, 4:1>) -> ()
          return
        }
        func.func @second(%p: !fly.ptr<f16, global>, %q: !fly.ptr<f16, shared>) -> (!fly.ptr<f16, shared>, !fly.ptr<f16, global>) {
          return %q, %p : !fly.ptr<f16, shared>, !fly.ptr<f16, global>
        }""",  # noqa: E501
        PASS,
    )


def test_one_copied_value_may_be_a_scalar(check: Callable[..., str]) -> None:
    """As FlyDSL's passes write it."""
    check(
        """
        // CHECK: rocdl.raw.ptr.buffer.load
        // CHECK: llvm.store
        // CHECK: rocdl.raw.ptr.buffer.store
        // CHECK-NOT: fly.
        // CHECK-NOT: vector<1xf32>
        gpu.module @m [#rocdl.target<chip = "gfx942">] {
          gpu.func @f(%p: !fly.ptr<f32, global>, %q: !fly.ptr<f32, register>) kernel {
            %flags = arith.constant 0 : i16
            %bytes = arith.constant 4294967295 : i64
            %word = arith.constant 159744 : i32
            %b = fly.make_ptr(%p, %flags, %bytes, %word) : (!fly.ptr<f32, global>, i16, i64, i32) -> !fly.ptr<f32, #fly_rocdl.buffer_desc>
            %l = fly.static : !fly.layout<1:0>
            %t = fly.make_view(%b, %l) : (!fly.ptr<f32, #fly_rocdl.buffer_desc>, !fly.layout<1:0>) -> !fly.memref<f32, #fly_rocdl.buffer_desc, 1:0>
            %a = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>
            %v = fly.copy_atom_call_ssa(%a, %t) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>, !fly.memref<f32, #fly_rocdl.buffer_desc, 1:0>) -> f32
            fly.ptr.store(%v, %q) : (f32, !fly.ptr<f32, register>) -> ()
            fly.copy_atom_call_ssa(%a, %v, %t) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>, f32, !fly.memref<f32, #fly_rocdl.buffer_desc, 1:0>) -> ()
            gpu.return
          }
        }""",  # noqa: E501
        PASS,
    )
