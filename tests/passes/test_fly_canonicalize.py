"""Static algebra folds, equal operations merge, dead ones go; what touches memory stays."""

from __future__ import annotations

from collections.abc import Callable

PASS = "fly-canonicalize"
TENSOR = "!fly.memref<f32, global, ?:1>"


def test_static_results_fold(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.static : !fly.layout<(4,4):(1,4)>
        // CHECK-NOT: fly.logical_divide
        func.func @f(%p: !fly.ptr<f32, global>) -> !fly.memref<f32, global, (4,4):(1,4)> {
          %a = fly.static : !fly.layout<16:1>
          %b = fly.static : !fly.layout<4:1>
          %c = fly.logical_divide(%a, %b) : (!fly.layout<16:1>, !fly.layout<4:1>) -> !fly.layout<(4,4):(1,4)>
          %v = fly.make_view(%p, %c) : (!fly.ptr<f32, global>, !fly.layout<(4,4):(1,4)>) -> !fly.memref<f32, global, (4,4):(1,4)>
          return %v : !fly.memref<f32, global, (4,4):(1,4)>
        }""",  # noqa: E501
        PASS,
    )


def test_parts_of_a_view_are_what_it_was_made_of(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: return %arg0, %arg1
        // CHECK-NOT: fly.get_
        func.func @f(%p: !fly.ptr<f32, global>, %l: !fly.layout<?:1>) -> (!fly.ptr<f32, global>, !fly.layout<?:1>) {
          %v = fly.make_view(%p, %l) : (!fly.ptr<f32, global>, !fly.layout<?:1>) -> !fly.memref<f32, global, ?:1>
          %q = fly.get_iter(%v) : (!fly.memref<f32, global, ?:1>) -> !fly.ptr<f32, global>
          %m = fly.get_layout(%v) : (!fly.memref<f32, global, ?:1>) -> !fly.layout<?:1>
          return %q, %m : !fly.ptr<f32, global>, !fly.layout<?:1>
        }""",
        PASS,
    )


def test_equal_operations_merge_but_loads_do_not(check: Callable[..., str]) -> None:
    result = check(
        f"""
        func.func @f(%a: {TENSOR}, %i: i32) -> (f32, f32) {{
          %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
          %d = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
          %x = fly.memref.load(%a, %c) : ({TENSOR}, !fly.int_tuple<?>) -> f32
          fly.memref.store(%x, %a, %d) : (f32, {TENSOR}, !fly.int_tuple<?>) -> ()
          %y = fly.memref.load(%a, %d) : ({TENSOR}, !fly.int_tuple<?>) -> f32
          return %x, %y : f32, f32
        }}""",
        PASS,
    )
    assert result.count("fly.make_int_tuple") == 1
    assert result.count("fly.memref.load") == 2


def test_values_do_not_leave_the_block_that_dominates(check: Callable[..., str]) -> None:
    """Two branches compute the same tuple; neither may use the other's."""
    result = check(
        f"""
        func.func @f(%a: {TENSOR}, %i: i32, %b: i1) {{
          scf.if %b {{
            %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
            %x = fly.memref.load(%a, %c) : ({TENSOR}, !fly.int_tuple<?>) -> f32
            fly.memref.store(%x, %a, %c) : (f32, {TENSOR}, !fly.int_tuple<?>) -> ()
          }} else {{
            %c = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
            %x = fly.memref.load(%a, %c) : ({TENSOR}, !fly.int_tuple<?>) -> f32
            fly.memref.store(%x, %a, %c) : (f32, {TENSOR}, !fly.int_tuple<?>) -> ()
          }}
          return
        }}""",
        PASS,
    )
    assert result.count("fly.make_int_tuple") == 2


def test_dead_operations_go(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK-NOT: fly.size
        func.func @f(%a: {TENSOR}) {{
          %s = fly.size(%a) : ({TENSOR}) -> !fly.int_tuple<?>
          return
        }}""",
        PASS,
    )


def test_a_shape_becomes_an_int_tuple_like_others(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.make_int_tuple(%arg0) : (i32) -> !fly.int_tuple<(?,4)>
        // CHECK-NOT: make_shape
        // CHECK-NOT: make_coord
        func.func @f(%i: i32) -> (!fly.int_tuple<(?,4)>, !fly.int_tuple<(?,4)>) {
          %a = fly.make_shape(%i) : (i32) -> !fly.int_tuple<(?,4)>
          %b = fly.make_coord(%i) : (i32) -> !fly.int_tuple<(?,4)>
          return %a, %b : !fly.int_tuple<(?,4)>, !fly.int_tuple<(?,4)>
        }""",
        PASS,
    )


def test_the_parts_of_a_composed_layout_are_known(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.static : !fly.swizzle<S<2,3,3>>
        // CHECK: fly.static : !fly.layout<16:1>
        // CHECK-NOT: composed_get
        func.func @f(%c: !fly.composed_layout<S<2,3,3> o 8 o 16:1>) -> (!fly.swizzle<S<2,3,3>>, !fly.layout<16:1>) {
          %a = fly.composed_get_inner(%c) : (!fly.composed_layout<S<2,3,3> o 8 o 16:1>) -> !fly.swizzle<S<2,3,3>>
          %b = fly.composed_get_outer(%c) : (!fly.composed_layout<S<2,3,3> o 8 o 16:1>) -> !fly.layout<16:1>
          return %a, %b : !fly.swizzle<S<2,3,3>>, !fly.layout<16:1>
        }""",
        PASS,
    )
