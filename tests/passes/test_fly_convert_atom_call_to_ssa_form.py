"""Copies from and to registers become loads and stores of vectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flydsl.errors import CompileError

PASS = "fly-convert-atom-call-to-ssa-form"
ATOM = "!fly.copy_atom<!fly.universal_copy<128>, 32>"


def copy(source: str, target: str) -> str:
    return f"""
        func.func @f(%p: !fly.ptr<f32, {source}>, %q: !fly.ptr<f32, {target}>) {{
          %l = fly.static : !fly.layout<4:1>
          %a = fly.make_view(%p, %l) : (!fly.ptr<f32, {source}>, !fly.layout<4:1>) -> !fly.memref<f32, {source}, 4:1>
          %b = fly.make_view(%q, %l) : (!fly.ptr<f32, {target}>, !fly.layout<4:1>) -> !fly.memref<f32, {target}, 4:1>
          %t = fly.make_copy_atom {{valBits = 32 : i32}} : {ATOM}
          fly.copy_atom_call(%t, %a, %b) :
            ({ATOM}, !fly.memref<f32, {source}, 4:1>, !fly.memref<f32, {target}, 4:1>) -> ()
          return
        }}"""


def test_a_load(check: Callable[..., str]) -> None:
    check(
        "// CHECK: fly.copy_atom_call_ssa(%\n// CHECK: -> vector<4xf32>\n// CHECK: fly.ptr.store(%\n"
        "// CHECK: (vector<4xf32>, !fly.ptr<f32, register>)\n" + copy("global", "register"),
        PASS,
    )


def test_a_store(check: Callable[..., str]) -> None:
    check(
        "// CHECK: fly.ptr.load(%arg0) : (!fly.ptr<f32, register>) -> vector<4xf32>\n"
        "// CHECK: fly.copy_atom_call_ssa(%\n// CHECK: vector<4xf32>, !fly.memref<f32, global, 4:1>) -> ()\n"
        + copy("register", "global"),
        PASS,
    )


def test_between_two_memories(check: Callable[..., str]) -> None:
    result = check(copy("global", "shared"), PASS)
    assert result.count("fly.copy_atom_call_ssa") == 2


def test_a_view_that_lowering_did_not_make_is_an_error(check: Callable[..., str]) -> None:
    tensor = "!fly.memref<f32, register, 4:1>"
    with pytest.raises(CompileError, match=r"is not the result of a fly\.make_view"):
        check(
            f"""
            func.func @f(%a: {tensor}, %b: {tensor}) {{
              %t = fly.make_copy_atom {{valBits = 32 : i32}} : {ATOM}
              fly.copy_atom_call(%t, %a, %b) : ({ATOM}, {tensor}, {tensor}) -> ()
              return
            }}""",
            PASS,
        )


def test_a_copy_with_a_predicate_is_one_inside_of_an_if(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: fly.ptr.load(%arg1) : (!fly.ptr<i1, register>) -> i1
        // CHECK: scf.if
        // CHECK: fly.copy_atom_call_ssa
        // CHECK: fly.ptr.store
        // CHECK-NOT: fly.copy_atom_call(
        func.func @f(%p: !fly.ptr<f16, global>, %q: !fly.ptr<i1, register>, %r: !fly.ptr<f16, register>) {
          %atom = fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<64>, 16>
          %four = fly.static : !fly.layout<4:1>
          %one = fly.static : !fly.layout<1:1>
          %a = fly.make_view(%p, %four) : (!fly.ptr<f16, global>, !fly.layout<4:1>) -> !fly.memref<f16, global, 4:1>
          %b = fly.make_view(%r, %four) : (!fly.ptr<f16, register>, !fly.layout<4:1>) -> !fly.memref<f16,register,4:1>
          %c = fly.make_view(%q, %one) : (!fly.ptr<i1, register>, !fly.layout<1:1>) -> !fly.memref<i1, register, 1:1>
          fly.copy_atom_call(%atom, %a, %b, %c) : (!fly.copy_atom<!fly.universal_copy<64>, 16>, !fly.memref<f16, global, 4:1>, !fly.memref<f16, register, 4:1>, !fly.memref<i1, register, 1:1>) -> ()
          return
        }""",  # noqa: E501
        PASS,
    )
