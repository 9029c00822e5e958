"""Register tensors become vector values where every access is static."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import CompileError

pytestmark = pytest.mark.slow

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


def test_a_load_joins_the_parts_that_stores_have_made(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: vector.broadcast %arg0 : f32 to vector<1xf32>
        // CHECK: vector.extract_strided_slice %arg1
        // CHECK: vector.insert_strided_slice
        // CHECK: vector.insert_strided_slice
        // CHECK-NOT: fly.
        func.func @f(%x: f32, %v: vector<3xf32>) -> vector<4xf32> {{
          {REGISTERS}
          fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()
          {at(1)}
          fly.ptr.store(%v, %q) : (vector<3xf32>, !fly.ptr<f32, register>) -> ()
          %y = fly.ptr.load(%q) : (!fly.ptr<f32, register>) -> f32
          fly.ptr.store(%y, %q) : (f32, !fly.ptr<f32, register>) -> ()
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
          return %w : vector<4xf32>
        }}""",
        PASS,
    )


def test_a_loop_carries_what_it_stores(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: scf.for
        // CHECK: iter_args(
        // CHECK: -> (vector<4xf32>)
        // CHECK: arith.addf
        // CHECK: scf.yield
        // CHECK: return %
        // CHECK-NOT: fly.
        func.func @f(%v: vector<4xf32>, %n: index) -> vector<4xf32> {{
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          {REGISTERS}
          fly.ptr.store(%v, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
          scf.for %i = %zero to %n step %one {{
            %a = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
            %b = arith.addf %a, %a : vector<4xf32>
            fly.ptr.store(%b, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
          }}
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
          return %w : vector<4xf32>
        }}""",
        PASS,
    )


def test_a_branch_yields_what_either_side_stores(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: scf.if %arg1 -> (vector<4xf32>)
        // CHECK: scf.yield %arg0 : vector<4xf32>
        // CHECK: }} else {{
        // CHECK: scf.yield
        // CHECK-NOT: fly.
        func.func @f(%v: vector<4xf32>, %c: i1) -> vector<4xf32> {{
          {REGISTERS}
          scf.if %c {{
            fly.ptr.store(%v, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
          }}
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
          return %w : vector<4xf32>
        }}""",
        PASS,
    )


def test_a_while_loop_carries_what_either_part_stores(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: scf.while
        // CHECK: scf.condition
        // CHECK: vector<4xf32>
        // CHECK: scf.yield
        // CHECK-NOT: fly.
        func.func @f(%v: vector<4xf32>, %c: i1) -> vector<4xf32> {{
          {REGISTERS}
          fly.ptr.store(%v, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
          scf.while : () -> () {{
            scf.condition(%c)
          }} do {{
            fly.ptr.store(%v, %p) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
            scf.yield
          }}
          %w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> vector<4xf32>
          return %w : vector<4xf32>
        }}""",
        PASS,
    )


def test_an_access_at_a_runtime_offset_keeps_the_memory(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: fly.make_ptr
        // CHECK: fly.ptr.store
        func.func @f(%x: f32, %n: i32) {{
          {REGISTERS}
          %i = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<?>
          %q = fly.add_offset(%p, %i) : (!fly.ptr<f32, register>, !fly.int_tuple<?>) -> !fly.ptr<f32, register>
          fly.ptr.store(%x, %q) : (f32, !fly.ptr<f32, register>) -> ()
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


# --- what nothing wrote


READ = "%w = fly.ptr.load(%p) : (!fly.ptr<f32, register>) -> f32"
WRITE = "fly.ptr.store(%x, %p) : (f32, !fly.ptr<f32, register>) -> ()"
HEAD = f"func.func @f(%x: f32, %n: index, %b: i1) {{ %one = arith.constant 1 : index\n{REGISTERS}\n"


def loop(*body: str) -> str:
    inside = "\n".join(body)
    return f"scf.for %i{len(inside)} = %one to %n step %one {{ {inside} }}"


def branch(*body: str) -> str:
    return "scf.if %b {" + "\n".join(body) + "}"


@pytest.mark.parametrize(
    "body",
    [
        READ,
        f"{READ}\n{WRITE}",
        loop(READ, WRITE),
        loop(READ) + WRITE,
        branch(WRITE.replace("%p", "%q")).replace("scf.if", at(2) + "\nscf.if") + READ,
        loop(loop(WRITE.replace("%p", "%q")), READ).replace("scf.for", at(2) + "\nscf.for", 1),
        branch(READ),
    ],
)
def test_a_read_of_what_nothing_can_have_written(check: Callable[..., str], body: str) -> None:
    with pytest.raises(CompileError, match="read here before anything wrote these elements"):
        check(HEAD + body + "\nreturn }", PASS)


@flyc.kernel
def adding_to_nothing(x: fx.Tensor):
    sums = fx.make_rmem_tensor(fx.make_layout(2, 1), fx.Float32)
    x[fx.thread_idx.x] = sums[0] + sums[1] + 2.0  # reads both


@flyc.jit
def launch(x: fx.Tensor):
    adding_to_nothing(x).launch(grid=1, block=64)


def test_what_nothing_can_have_written_is_zero_in_the_older_language() -> None:
    x = torch.zeros(64)
    with pytest.raises(CompileError, match="read here before anything wrote these elements"):
        launch(x)
    with flydsl.language("0.2.2"), pytest.warns(UserWarning, match="they are zeros; compiled by FlyDSL 0.2.2") as told:
        launch(x)
    assert [linecache.getline(one.filename, one.lineno).rstrip()[-12:] for one in told] == ["# reads both"]
    assert torch.equal(x, torch.full((64,), 2.0))


@pytest.mark.parametrize(
    "body",
    [
        f"{WRITE}\n{READ}",
        branch(WRITE) + READ,
        loop(WRITE) + READ,
        loop(WRITE, READ),
        loop(branch(READ), WRITE),
        loop(loop(READ), WRITE),
        loop(branch(WRITE), READ),
    ],
)
def test_a_read_of_what_a_path_may_have_written(check: Callable[..., str], body: str) -> None:
    assert "ub.poison" not in check(f"// CHECK: return\n{HEAD}{body}\nreturn }}", PASS)


def test_what_no_path_wrote_is_zero(check: Callable[..., str]) -> None:
    check(
        f"""
        // CHECK: scf.if
        // CHECK: }} else {{
        // CHECK: %cst = arith.constant dense<0.000000e+00> : vector<1xf32>
        // CHECK: scf.yield %cst : vector<1xf32>
        func.func @f(%x: f32, %b: i1) -> f32 {{
          {REGISTERS}
          {branch(WRITE)}
          {READ}
          return %w : f32
        }}""",
        PASS,
    )
