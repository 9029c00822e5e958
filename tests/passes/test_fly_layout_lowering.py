"""Layout algebra becomes the arithmetic that computes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.errors import CompileError

PASS = "fly-layout-lowering"


def test_an_access_is_one_multiply_add(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: arith.extsi %arg2
        // CHECK: arith.muli
        // CHECK: fly.make_int_tuple(%
        // CHECK: (i64) -> !fly.int_tuple<?{i64}>
        // CHECK: fly.add_offset(%arg0
        // CHECK: fly.ptr.load(%
        // CHECK-NOT: memref
        func.func @f(%p: !fly.ptr<f32, global>, %stride: i64, %i: i32) -> f32 {
          %shape = fly.make_int_tuple() : () -> !fly.int_tuple<(8,8)>
          %strides = fly.make_int_tuple(%stride) : (i64) -> !fly.int_tuple<(?{i64},1)>
          %l = fly.make_layout(%shape, %strides) : (!fly.int_tuple<(8,8)>, !fly.int_tuple<(?{i64},1)>) -> !fly.layout<(8,8):(?{i64},1)>
          %a = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(8,8):(?{i64},1)>) -> !fly.memref<f32, global, (8,8):(?{i64},1)>
          %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(?,3)>
          %v = fly.memref.load(%a, %c) : (!fly.memref<f32, global, (8,8):(?{i64},1)>, !fly.int_tuple<(?,3)>) -> f32
          return %v : f32
        }""",  # noqa: E501
        PASS,
    )


def test_a_static_address_is_the_pointer_itself(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.ptr.load(%arg0) : (!fly.ptr<f32, global>) -> f32
        // CHECK-NOT: fly.add_offset
        func.func @f(%p: !fly.ptr<f32, global>) -> f32 {
          %l = fly.static : !fly.layout<4:1>
          %a = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<4:1>) -> !fly.memref<f32, global, 4:1>
          %c = fly.make_int_tuple() : () -> !fly.int_tuple<0>
          %v = fly.memref.load(%a, %c) : (!fly.memref<f32, global, 4:1>, !fly.int_tuple<0>) -> f32
          return %v : f32
        }""",
        PASS,
    )


def test_sizes_become_numbers(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: arith.muli %arg0, %arg1 : i32
        // CHECK-NOT: fly.
        func.func @f(%m: i32, %n: i32) -> i32 {
          %s = fly.make_int_tuple(%m, %n) : (i32, i32) -> !fly.int_tuple<(?,?)>
          %z = fly.size(%s) : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
          %r = fly.get_scalar(%z) : (!fly.int_tuple<?>) -> i32
          return %r : i32
        }""",
        PASS,
    )


def test_a_register_tensor_allocates_what_its_layout_spans(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.make_ptr() {dictAttrs = {allocSize = 12 : i64}} : () -> !fly.ptr<f32, register>
        func.func @f() -> f32 {
          %l = fly.static : !fly.layout<(4,2):(1,8)>
          %r = fly.memref.alloca(%l) {element = "f32"} : (!fly.layout<(4,2):(1,8)>) -> !fly.memref<f32, register, (4,2):(1,8)>
          %c = fly.make_int_tuple() : () -> !fly.int_tuple<(0,1)>
          %v = fly.memref.load(%r, %c) : (!fly.memref<f32, register, (4,2):(1,8)>, !fly.int_tuple<(0,1)>) -> f32
          return %v : f32
        }""",  # noqa: E501
        PASS,
    )


def test_a_tensor_from_nowhere_is_an_error(check: Callable[..., str]) -> None:
    with pytest.raises(CompileError, match=r"the origin of a value of type !fly\.memref<f32, global, 4:1>"):
        check(
            """
            func.func @f(%a: !fly.memref<f32, global, 4:1>) -> f32 {
              %c = fly.make_int_tuple() : () -> !fly.int_tuple<0>
              %v = fly.memref.load(%a, %c) : (!fly.memref<f32, global, 4:1>, !fly.int_tuple<0>) -> f32
              return %v : f32
            }""",
            PASS,
        )


def test_a_swizzle_is_three_operations(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: %0 = arith.andi %arg0
        // CHECK: %1 = arith.shrsi %0
        // CHECK: %2 = arith.xori %arg0, %1
        // CHECK: return %2
        func.func @f(%i: i32) -> i32 {
          %x = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
          %s = fly.static : !fly.swizzle<S<3,3,3>>
          %y = fly.apply_swizzle(%x, %s) : (!fly.int_tuple<?>, !fly.swizzle<S<3,3,3>>) -> !fly.int_tuple<?>
          %r = fly.get_scalar(%y) : (!fly.int_tuple<?>) -> i32
          return %r : i32
        }""",
        PASS,
        "canonicalize",
    )


def test_a_swizzle_of_bits_that_are_0_is_nothing(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: return %arg0
        // CHECK-NOT: arith
        func.func @f(%i: i32) -> i32 {
          %x = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?{div=64}>
          %s = fly.static : !fly.swizzle<S<3,0,3>>
          %y = fly.apply_swizzle(%x, %s) : (!fly.int_tuple<?{div=64}>, !fly.swizzle<S<3,0,3>>) -> !fly.int_tuple<?{div=64}>
          %r = fly.get_scalar(%y) : (!fly.int_tuple<?{div=64}>) -> i32
          return %r : i32
        }""",  # noqa: E501
        PASS,
    )


def test_what_a_function_returns_is_built_from_its_parts(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: @tuple
        // CHECK: fly.make_int_tuple() : () -> !fly.int_tuple<(2,6)>
        // CHECK: @partly
        // CHECK: arith.muli %arg0
        // CHECK: fly.make_int_tuple(%
        // CHECK: (i32) -> !fly.int_tuple<(?,8)>
        // CHECK: @layout
        // CHECK: fly.make_int_tuple() : () -> !fly.int_tuple<((2,3),4)>
        // CHECK: fly.make_int_tuple() : () -> !fly.int_tuple<((1,2),6)>
        // CHECK: fly.make_layout
        // CHECK: @tensor
        // CHECK: fly.add_offset(%arg0
        // CHECK: fly.make_view
        // CHECK-NOT: logical_divide
        // CHECK-NOT: int_tuple_
        // CHECK-NOT: slice
        func.func @tuple(%a: !fly.int_tuple<(4,8)>) -> !fly.int_tuple<(2,6)> {
          %b = fly.static : !fly.int_tuple<(2,2)>
          %r = fly.int_tuple_sub(%a, %b) : (!fly.int_tuple<(4,8)>, !fly.int_tuple<(2,2)>) -> !fly.int_tuple<(2,6)>
          return %r : !fly.int_tuple<(2,6)>
        }
        func.func @partly(%i: i32) -> !fly.int_tuple<(?,8)> {
          %a = fly.make_shape(%i) : (i32) -> !fly.int_tuple<(?,4)>
          %b = fly.static : !fly.int_tuple<(2,2)>
          %r = fly.int_tuple_mul(%a, %b) : (!fly.int_tuple<(?,4)>, !fly.int_tuple<(2,2)>) -> !fly.int_tuple<(?,8)>
          return %r : !fly.int_tuple<(?,8)>
        }
        func.func @layout(%l: !fly.layout<24:1>) -> !fly.layout<((2,3),4):((1,2),6)> {
          %d = fly.static : !fly.layout<(2,3):(1,2)>
          %r = fly.logical_divide(%l, %d) : (!fly.layout<24:1>, !fly.layout<(2,3):(1,2)>) -> !fly.layout<((2,3),4):((1,2),6)>
          return %r : !fly.layout<((2,3),4):((1,2),6)>
        }
        func.func @tensor(%p: !fly.ptr<f32, global>, %i: i32) -> !fly.memref<f32, global, 4:1> {
          %l = fly.static : !fly.layout<(4,8):(1,4)>
          %t = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<(4,8):(1,4)>) -> !fly.memref<f32, global, (4,8):(1,4)>
          %c = fly.make_coord(%i) : (i32) -> !fly.int_tuple<(*,?)>
          %s = fly.slice(%t, %c) : (!fly.memref<f32, global, (4,8):(1,4)>, !fly.int_tuple<(*,?)>) -> !fly.memref<f32, global, 4:1>
          return %s : !fly.memref<f32, global, 4:1>
        }""",  # noqa: E501
        PASS,
    )


def test_numbers_that_the_stated_type_leaves_open_are_constants(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: %c1_i32 = arith.constant 1
        // CHECK: fly.make_int_tuple(%c1_i32) : (i32) -> !fly.int_tuple<(?,2)>
        // CHECK-NOT: int_tuple_mod
        func.func @f(%a: !fly.int_tuple<(7,10)>, %b: !fly.int_tuple<(2,4)>) -> !fly.int_tuple<(?,2)> {
          %r = fly.int_tuple_mod(%a, %b) : (!fly.int_tuple<(7,10)>, !fly.int_tuple<(2,4)>) -> !fly.int_tuple<(?,2)>
          return %r : !fly.int_tuple<(?,2)>
        }""",
        PASS,
    )


def test_comparisons_are_of_what_is_not_known(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: @less
        // CHECK: arith.cmpi slt, %arg0
        // CHECK: arith.extsi %arg1
        // CHECK: arith.cmpi slt
        // CHECK: arith.andi
        // CHECK: @unequal
        // CHECK: %false = arith.constant false
        // CHECK: return %false
        // CHECK: @same
        // CHECK: %true = arith.constant true
        // CHECK: return %true
        // CHECK-NOT: fly.
        func.func @less(%i: i32, %j: i32, %n: i64) -> i1 {
          %c = fly.make_coord(%i, %j) : (i32, i32) -> !fly.int_tuple<(?,(?,3))>
          %s = fly.make_shape(%n) : (i64) -> !fly.int_tuple<(16,(?{i64},4))>
          %r = fly.elem_less(%c, %s) : (!fly.int_tuple<(?,(?,3))>, !fly.int_tuple<(16,(?{i64},4))>) -> i1
          return %r : i1
        }
        func.func @unequal(%i: i32) -> i1 {
          %a = fly.make_coord(%i) : (i32) -> !fly.int_tuple<(?,3)>
          %b = fly.make_coord(%i) : (i32) -> !fly.int_tuple<(?,4)>
          %r = fly.equal(%a, %b) : (!fly.int_tuple<(?,3)>, !fly.int_tuple<(?,4)>) -> i1
          return %r : i1
        }
        func.func @same() -> i1 {
          %a = fly.static : !fly.int_tuple<(1E0,1E1)>
          %r = fly.equal(%a, %a) : (!fly.int_tuple<(1E0,1E1)>, !fly.int_tuple<(1E0,1E1)>) -> i1
          return %r : i1
        }""",
        PASS,
    )


def test_decomposition_moves_the_pointer_and_leaves_the_first_layout(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.make_int_tuple() : () -> !fly.int_tuple<34>
        // CHECK: fly.add_offset(%arg0
        // CHECK: -> !fly.memref<f32, global, (4,8):(1,4)>
        // CHECK-NOT: decomposition
        func.func @f(%p: !fly.ptr<f32, global>, %l: !fly.composed_layout<64:2 o 2 o [64:5 o 3 o (4,8):(1,4)]>) -> !fly.memref<f32, global, (4,8):(1,4)> {
          %t = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.composed_layout<64:2 o 2 o [64:5 o 3 o (4,8):(1,4)]>) -> !fly.memref<f32, global, 64:2 o 2 o [64:5 o 3 o (4,8):(1,4)]>
          %d = fly.decomposition(%t) : (!fly.memref<f32, global, 64:2 o 2 o [64:5 o 3 o (4,8):(1,4)]>) -> !fly.memref<f32, global, (4,8):(1,4)>
          return %d : !fly.memref<f32, global, (4,8):(1,4)>
        }""",  # noqa: E501
        PASS,
    )
    with pytest.raises(CompileError, match="unsupported: decomposition"):
        check(
            """
            func.func @f(%t: !fly.memref<f32, shared, S<1,0,2> o 0 o 8:1>) {
              %d = fly.decomposition(%t) : (!fly.memref<f32, shared, S<1,0,2> o 0 o 8:1>) -> !fly.memref<f32, shared, 8:1>
              return
            }"""  # noqa: E501
        )


def test_parentheses_around_one_number_do_not_count(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: return %arg0
        func.func @f(%i: i32) -> i32 {
          %t = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(((?)))>
          %r = fly.get_scalar(%t) : (!fly.int_tuple<(((?)))>) -> i32
          return %r : i32
        }""",
        PASS,
    )
