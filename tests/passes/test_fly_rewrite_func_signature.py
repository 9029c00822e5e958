"""Tensors at function boundaries become pointers and packed structs, and launches pass those."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.errors import CompileError

PASS = "fly-rewrite-func-signature"


def test_a_dynamic_tensor_is_a_pointer_and_its_leaves(check: Callable[..., str]) -> None:
    check(
        """
        gpu.module @k {
          // CHECK: gpu.func @f(%arg0: !fly.ptr<f32, global>, %arg1: !llvm.struct<packed (struct<packed (i32, i32)>
          // CHECK: , struct<packed (i64)>)>, %arg2: i32) kernel
          // CHECK: llvm.extractvalue %arg1[0, 0]
          // CHECK: llvm.extractvalue %arg1[0, 1]
          // CHECK: fly.make_int_tuple(%0, %1) : (i32, i32) -> !fly.int_tuple<(?,?)>
          // CHECK: llvm.extractvalue %arg1[1, 0]
          // CHECK: fly.make_view(%arg0, %5)
          gpu.func @f(%a: !fly.memref<f32, global, (?,?):(?{i64},1)>, %i: i32) kernel {
            %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(0,?)>
            %v = fly.memref.load(%a, %c) : (!fly.memref<f32, global, (?,?):(?{i64},1)>, !fly.int_tuple<(0,?)>) -> f32
            gpu.return
          }
        }""",
        PASS,
    )


def test_a_static_tensor_is_a_pointer_alone(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: func.func @f(%arg0: !fly.ptr<f16, global>) {
        // CHECK: fly.static : !fly.layout<(4,8):(8,1)>
        func.func @f(%a: !fly.memref<f16, global, (4,8):(8,1)>) { return }""",
        PASS,
    )


def test_a_call_passes_the_plain_values(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: func.func @f(%arg0: !fly.ptr<f32, global>, %arg1: !llvm.struct<packed (struct<packed (i32)>
        func.func @f(%a: !fly.memref<f32, global, ?:1>, %l: !fly.layout<4:1>) -> i32 {
          %c = arith.constant 1 : i32
          return %c : i32
        }
        // CHECK: func.func @g(%arg0: !fly.ptr<f32, global>, %arg1:
        // CHECK: call @f(%arg0, %arg1) : (!fly.ptr<f32, global>, !llvm.struct<packed (
        func.func @g(%a: !fly.memref<f32, global, ?:1>, %l: !fly.layout<4:1>) -> i32 {
          %r = func.call @f(%a, %l) : (!fly.memref<f32, global, ?:1>, !fly.layout<4:1>) -> i32
          return %r : i32
        }""",
        PASS,
    )


def test_a_launch_passes_the_plain_values(check: Callable[..., str]) -> None:
    check(
        """
        module attributes {gpu.container_module} {
          gpu.module @k { gpu.func @f(%a: !fly.memref<f32, global, ?:1>) kernel { gpu.return } }
          // CHECK: func.func @launch(%arg0: !fly.ptr<f32, global>, %arg1: !llvm.struct<packed (
          // CHECK: gpu.launch_func
          // CHECK: args(%arg0 : !fly.ptr<f32, global>, %arg1 : !llvm.struct<packed (
          func.func @launch(%a: !fly.memref<f32, global, ?:1>) {
            %one = arith.constant 1 : index
            gpu.launch_func @k::@f blocks in (%one, %one, %one) threads in (%one, %one, %one)
              args(%a : !fly.memref<f32, global, ?:1>)
            return
          }
        }""",
        PASS,
    )


def test_a_tensor_derived_in_the_launcher_is_taken_apart(check: Callable[..., str]) -> None:
    check(
        """
        module attributes {gpu.container_module} {
          gpu.module @k { gpu.func @f(%a: !fly.memref<f32, global, (4,?):(1,4)>) kernel { gpu.return } }
          // CHECK: fly.logical_divide
          // CHECK: fly.get_iter
          // CHECK: fly.get_scalar
          // CHECK: llvm.insertvalue
          // CHECK: gpu.launch_func
          func.func @launch(%a: !fly.memref<f32, global, ?:1>) {
            %one = arith.constant 1 : index
            %l = fly.static : !fly.layout<4:1>
            %d = fly.logical_divide(%a, %l) : (!fly.memref<f32, global, ?:1>, !fly.layout<4:1>) -> !fly.memref<f32, global, (4,?):(1,4)>
            gpu.launch_func @k::@f blocks in (%one, %one, %one) threads in (%one, %one, %one)
              args(%d : !fly.memref<f32, global, (4,?):(1,4)>)
            return
          }
        }""",  # noqa: E501
        PASS,
    )


def test_plain_declarations_are_left_alone(check: Callable[..., str]) -> None:
    check("// CHECK: func.func private @g(i32)\nfunc.func private @g(i32)", PASS, "fly-layout-lowering")


def test_declarations_take_what_their_callers_pass(check: Callable[..., str]) -> None:
    text = """
        // CHECK: func.func private @dynamic(!fly.ptr<f32, global>, !llvm.struct<packed (
        // CHECK: , f32) -> f32
        func.func private @dynamic(!fly.memref<f32, global, ?:1>, f32) -> f32
        // CHECK: func.func private @static()
        func.func private @static(!fly.int_tuple<(2,3)> {llvm.noundef})"""
    check(text, PASS)
    result = check(text.replace("// CHECK", "//"), "convert-fly-to-rocdl")
    assert "@dynamic(!llvm.ptr<1>, !llvm.struct" in result


def test_a_static_int_tuple_is_stated_in_the_body(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: func.func @f(%arg0: i32) {
        // CHECK: fly.static : !fly.int_tuple<(2,3)>
        func.func @f(%t: !fly.int_tuple<(2,3)>, %n: i32) { return }""",
        PASS,
    )


def test_attributes_stay_with_an_arguments_first_part(check: Callable[..., str]) -> None:
    check(
        """
        gpu.module @k {
          // CHECK: gpu.func @f(%arg0: !fly.ptr<f32, global> {llvm.noalias}, %arg1: !llvm.struct<packed (
          // CHECK: , %arg2: i32 {llvm.noundef}) kernel
          gpu.func @f(%a: !fly.memref<f32, global, ?:1> {llvm.noalias}, %t: !fly.int_tuple<2>, %i: i32 {llvm.noundef})
              kernel { gpu.return }
        }""",
        PASS,
    )


def test_modules_inside_of_a_module_are_rewritten(check: Callable[..., str]) -> None:
    text = """
        func.func @beside(%t: !fly.int_tuple<2>) { return }
        module attributes {gpu.container_module} {
          gpu.module @k { gpu.func @f(%a: !fly.memref<f32, global, 4:1>) kernel { gpu.return } }
          func.func @launch(%a: !fly.memref<f32, global, 4:1>) {
            %one = arith.constant 1 : index
            // CHECK: args(%arg0 : !fly.ptr<f32, global>)
            gpu.launch_func @k::@f blocks in (%one, %one, %one) threads in (%one, %one, %one)
              args(%a : !fly.memref<f32, global, 4:1>)
            return
          }
        }"""
    check(text, PASS)
    assert "args(%arg0 : !llvm.ptr<1>)" in check(text.replace("// CHECK", "//"), "convert-fly-to-rocdl")


def test_a_launch_with_a_tensor_of_another_type_does_not_parse(check: Callable[..., str]) -> None:
    with pytest.raises(CompileError):
        check("func.func @f(%a: !fly.memref<f32, nowhere, 4:1>) { fly.get_iter(%a) return }", PASS)


def test_a_swizzled_tensor_is_no_argument_yet(check: Callable[..., str]) -> None:
    with pytest.raises(CompileError, match="compose the layout inside the kernel"):
        check(
            """
            gpu.module @k {
              gpu.func @f(%a: !fly.memref<f32, global, S<3,3,3> o ? o 64:1>) kernel {
                gpu.return
              }
            }""",
            PASS,
        )


def test_loops_and_branches_carry_plain_values(check: Callable[..., str]) -> None:
    check(
        """
        gpu.module @k {
          gpu.func @f(%a: !fly.memref<f32, global, ?:1>, %n: i32, %c: i1) kernel {
            %one = arith.constant 1 : i32
            // CHECK: scf.for
            // CHECK: -> (!fly.ptr<f32, global>, !llvm.struct<packed (struct<packed (i32)>, struct<packed ()>)>, i32)
            // CHECK: fly.make_view
            // CHECK: scf.if
            // CHECK: -> (!fly.ptr<f32, global>, !llvm.struct<packed (
            // CHECK: scf.yield
            // CHECK-NOT: -> (!fly.memref
            %r:2 = scf.for %i = %one to %n step %one iter_args(%x = %a, %k = %n) -> (!fly.memref<f32, global, ?:1>, i32) : i32 {
              %y = scf.if %c -> (!fly.memref<f32, global, ?:1>) {
                scf.yield %x : !fly.memref<f32, global, ?:1>
              } else {
                scf.yield %a : !fly.memref<f32, global, ?:1>
              }
              scf.yield %y, %k : !fly.memref<f32, global, ?:1>, i32
            }
            %z = fly.make_int_tuple(%r#1) : (i32) -> !fly.int_tuple<?>
            %v = fly.memref.load(%r#0, %z) : (!fly.memref<f32, global, ?:1>, !fly.int_tuple<?>) -> f32
            gpu.return
          }
        }""",  # noqa: E501
        PASS,
    )


def test_what_its_type_says_in_full_is_not_passed(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: @f(%arg0: i32)
        // CHECK: fly.static : !fly.tile<[8|24]>
        // CHECK: fly.static : !fly.swizzle<S<3,3,3>>
        // CHECK: fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<32>, 32>
        // CHECK: fly.make_tiled_mma
        func.func @f(
          %a: !fly.tile<[8|24]>, %b: !fly.swizzle<S<3,3,3>>, %c: !fly.copy_atom<!fly.universal_copy<32>, 32>, %i: i32,
          %m: !fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>, <(1,4,1):(0,1,0)>>) {
          return
        }""",
        PASS,
    )


def test_an_atom_with_values_is_passed_as_these(check: Callable[..., str]) -> None:
    atom = "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>"
    check(
        f"""
        module attributes {{gpu.container_module}} {{
        gpu.module @m {{
          // CHECK: gpu.func @k(%arg0: !llvm.struct<(i32)>)
          // CHECK: %0 = fly.make_copy_atom
          // CHECK: %1 = llvm.extractvalue %arg0[0]
          // CHECK: fly.atom.set_value(%0, "soffset", %1)
          gpu.func @k(%c: {atom}) kernel {{ gpu.return }}
        }}
        // CHECK: llvm.insertvalue %arg0, %2[0] : !llvm.struct<(i32)>
        // CHECK: arith.constant 0 : i32
        func.func @f(%n: i32) {{
          %c1 = arith.constant 1 : index
          %0 = fly.make_copy_atom {{valBits = 32 : i32}} : {atom}
          %1 = fly.atom.set_value(%0, "soffset", %n) : ({atom}, i32) -> {atom}
          gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%1 : {atom})
          gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%0 : {atom})
          return
        }}
        }}""",
        PASS,
    )
