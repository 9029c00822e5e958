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
    with pytest.raises(CompileError, match=r"where !fly\.memref<f32, global, 4:1> comes from"):
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
