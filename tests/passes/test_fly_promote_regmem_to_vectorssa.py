"""Register tensors become vector values where every access is static and in one block."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.errors import CompileError

PASS = "fly-promote-regmem-to-vectorssa"
REGISTERS = "%p = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>"


def at(offset: int) -> str:
    return f"""
          %c = fly.make_int_tuple() : () -> !fly.int_tuple<{offset}>
          %q = fly.add_offset(%p, %c) :
            (!fly.ptr<f32, register>, !fly.int_tuple<{offset}>) -> !fly.ptr<f32, register>"""


def test_a_stored_vector_is_what_is_loaded(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: func.func @f
        // CHECK: return %arg0 : vector<4xf32>
        // CHECK-NOT: fly.
        func.func @f(%v: vector<4xf32>) -> vector<4xf32> {{
          {REGISTERS}
          fly.ptr.store(%v, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
          return %w : vector<4xf32>
        }}""",
        PASS,
    )


def test_parts_are_inserted_and_extracted(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: ub.poison : vector<4xf32>
        // CHECK: vector.insert %arg0, %{{}}
        // CHECK: vector.insert_strided_slice %arg1
        // CHECK: vector.extract_strided_slice
        // CHECK-NOT: fly.
        func.func @f(%x: f32, %v: vector<2xf32>) -> vector<2xf32> {{
          {REGISTERS}
          fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()
          {at(2)}
          fly.ptr.store(%v, %q) : (vector<2xf32>, !fly.ptr<f32, register>) -> ()
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<2xf32>
          return %w : vector<2xf32>
        }}""".replace("%{}", "%"),
        PASS,
    )


def test_an_access_in_a_loop_keeps_the_memory(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: fly.make_ptr
        // CHECK: scf.for
        // CHECK: fly.ptr.store
        func.func @f(%x: f32, %n: index) {{
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          {REGISTERS}
          scf.for %i = %zero to %n step %one {{
            fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()
          }}
          return
        }}""",
        PASS,
    )


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_access_outside_is_an_error(check: Callable[..., str], offset: int) -> None:
    with pytest.raises(CompileError, match="register tensor of 4"):
        check(
            f"""
            func.func @f(%x: f32) {{
              {REGISTERS}{at(offset)}
              fly.ptr.store(%x, %q) : (f32, !fly.ptr<f32, register>) -> ()
              return
            }}""",
            PASS,
        )
