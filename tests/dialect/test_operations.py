"""Operations that FlyDSL's text has and the DSL here does not emit: read, checked, printed, lowered."""

from __future__ import annotations

import re

import pytest

from flydsl.compiler.fly_opt import run
from flydsl.errors import CompileError

LOWERED = "fly-layout-lowering"
ROCDL = "convert-fly-to-rocdl"
SCALE = "!fly.mma_atom<!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0>>"
TILED = "!fly.tiled_mma<!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>, !fly.layout<(2,2,1):(1,2,0)>>"

PRINTED = f"""
    %0 = fly.make_int_tuple(%i, %j) : (i32, i64) -> !fly.int_tuple<(4,?,?{{i64}})>
    %1:3 = fly.get_leaves(%0) : (!fly.int_tuple<(4,?,?{{i64}})>) -> (i32, i32, i64)
    %2:2 = fly.get_leaves(%0) {{dynamicOnly = true}} : (!fly.int_tuple<(4,?,?{{i64}})>) -> (i32, i64)
    %3 = fly.append<3>(%l, %l) : (!fly.layout<4:1>, !fly.layout<4:1>) -> !fly.layout<(4,4,4):(1,1,1)>
    %4 = fly.prepend<2>(%c, %c) : (!fly.int_tuple<?>, !fly.int_tuple<?>) -> !fly.int_tuple<(?,?)>
    %5 = fly.make_tile(%n, %l) : (!fly.int_tuple<8>, !fly.layout<4:1>) -> !fly.tile<[8|4:1]>
    %6 = fly.inttoptr(%j) : (i64) -> !fly.ptr<f32, global>
    %7 = fly.ptrtoint(%6) : (!fly.ptr<f32, global>) -> i64
    fly.print("{{}} and {{}}", %i, %c) : (i32, !fly.int_tuple<?>) -> ()
    fly.print("here") : () -> ()
    %8 = fly.make_fragment_like(%l, f16) : (!fly.layout<4:1>) -> !fly.memref<f16, register, 4:1>
    %9 = fly.tiled_mma.partition_shape(b, %m, %s) : ({TILED}, !fly.int_tuple<(32,8)>) -> !fly.int_tuple<(1,1,2)>
    %10 = fly.coshape(%l) : (!fly.layout<4:1>) -> !fly.int_tuple<4>
    %11 = fly.coprofile(%l) : (!fly.layout<4:1>) -> !fly.int_tuple<0>
    %12 = fly.assume(%d, %c) : (!fly.int_tuple<?{{div=4}}>, !fly.int_tuple<?>) -> !fly.int_tuple<?{{div=4}}>
"""
ARGUMENTS = (
    "%i: i32, %j: i64, %l: !fly.layout<4:1>, %c: !fly.int_tuple<?>, %d: !fly.int_tuple<?{div=4}>, "
    f"%n: !fly.int_tuple<8>, %s: !fly.int_tuple<(32,8)>, %m: {TILED}"
)


def function(body: str, arguments: str = ARGUMENTS, result: str = "") -> str:
    return f"func.func @f({arguments}){f' -> {result}' if result else ''} {{\n{body}\n}}"


def without_names(text: str) -> str:
    return re.sub(r"%\w+", "%", text)


def test_they_are_printed_as_they_are_written() -> None:
    printed = run(function(f"{PRINTED}\n  return"), [])
    assert run(printed, []) == printed
    for line in PRINTED.strip().splitlines():
        written = line.strip().partition(" = ")[2] if line.strip().startswith("%") else line.strip()
        assert without_names(written) in without_names(printed)


def test_get_leaves_returns_all_leaves_or_the_runtime_ones() -> None:
    text = function(
        """%t = fly.make_int_tuple(%i, %j) : (i32, i64) -> !fly.int_tuple<(4,(?,?{i64}))>
        %a:3 = fly.get_leaves(%t) : (!fly.int_tuple<(4,(?,?{i64}))>) -> (i32, i32, i64)
        %b:2 = fly.get_leaves(%t) {dynamicOnly = true} : (!fly.int_tuple<(4,(?,?{i64}))>) -> (i32, i64)
        return %a#0, %a#1, %b#1 : i32, i32, i64""",
        "%i: i32, %j: i64",
        "(i32, i32, i64)",
    )
    lowered = run(text, [LOWERED])
    assert "%c4_i32 = arith.constant 4 : i32" in lowered
    assert "return %c4_i32, %arg0, %arg1 : i32, i32, i64" in lowered


def test_what_is_assumed_is_known_from_there_on() -> None:
    text = function(
        """%t = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
        %p = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?{div=4}>
        %a = fly.assume(%p, %t) : (!fly.int_tuple<?{div=4}>, !fly.int_tuple<?>) -> !fly.int_tuple<?{div=4}>
        %q = fly.add_offset(%m, %a) : (!fly.ptr<f32, global, align<16>>, !fly.int_tuple<?{div=4}>) -> !fly.ptr<f32, global, align<16>>
        %v = fly.ptr.load(%q) : (!fly.ptr<f32, global, align<16>>) -> f32
        return %v : f32""",  # noqa: E501
        "%i: i32, %m: !fly.ptr<f32, global, align<16>>",
        "f32",
    )
    assert "llvm.load %0 {alignment = 16 : i64}" in run(text, [ROCDL])


def test_a_tensor_may_state_the_alignment_of_its_pointer() -> None:
    text = function(
        """%i = fly.get_iter(%m) : (!fly.memref<f32, shared, S<2,2,3> o 0 o (8,8):(8,1), align<1024>>) -> !fly.ptr<f32, shared>
        %l = fly.static : !fly.layout<4:1>
        %v = fly.make_view(%i, %l) : (!fly.ptr<f32, shared>, !fly.layout<4:1>) -> !fly.memref<f32, shared, 4:1, align<16>>
        return""",  # noqa: E501
        "%m: !fly.memref<f32, shared, S<2,2,3> o 0 o (8,8):(8,1), align<1024>>",
        "()",
    )
    assert "!fly.memref<f32, shared, S<2,2,3> o 0 o (8,8):(8,1)>" in run(text, [])


def test_the_atom_of_a_tiled_mma_keeps_its_values() -> None:
    atom, tiled = SCALE, f"!fly.tiled_mma<{SCALE}, !fly.layout<(1,1,1):(0,0,0)>>"
    text = function(
        f"""%l = fly.static : !fly.layout<(1,1,1):(0,0,0)>
        %a = fly.make_mma_atom : {atom}
        %b = fly.atom.set_value(%a, "scale_a", %i) : ({atom}, i32) -> {atom}
        %t = fly.make_tiled_mma(%b, %l) : ({atom}, !fly.layout<(1,1,1):(0,0,0)>) -> {tiled}
        %c = fly.get_mma_atom(%t) : ({tiled}) -> {atom}
        %r = fly.mma_atom_call_ssa(%c, %x, %x, %y) : ({atom}, vector<32xi8>, vector<32xi8>, vector<4xf32>) -> vector<4xf32>
        return %r : vector<4xf32>""",  # noqa: E501
        "%i: i32, %x: vector<32xi8>, %y: vector<4xf32>",
        "vector<4xf32>",
    )
    (product,) = re.findall(r"rocdl\.mfma\.scale.*", run(text, [LOWERED, ROCDL]))
    assert ", %arg0, " in product


def test_addresses_and_print() -> None:
    text = function(
        """%p = fly.inttoptr(%j) : (i64) -> !fly.ptr<f32, global>
        %q = fly.ptrtoint(%p) : (!fly.ptr<f32, global>) -> i64
        %t = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(4,?)>
        fly.print("{}: {}", %j, %t) : (i64, !fly.int_tuple<(4,?)>) -> ()
        %r = fly.extract_aligned_pointer_as_index %m : !fly.memref<f32, shared, 32:1> -> !llvm.ptr<3>
        return %q, %r : i64, !llvm.ptr<3>""",
        "%i: i32, %j: i64, %m: !fly.memref<f32, shared, 32:1>",
        "(i64, !llvm.ptr<3>)",
    )
    lowered = run(text, [ROCDL])
    assert "%0 = llvm.inttoptr %arg1 : i64 to !llvm.ptr<1>" in lowered
    assert "%1 = llvm.ptrtoint %0 : !llvm.ptr<1> to i64" in lowered
    assert 'gpu.printf "%ld: (4,%d)\\0A", %arg1, %arg0' in lowered
    assert "return %1, %arg2 : i64, !llvm.ptr<3>" in lowered


def test_a_tile_made_of_values_divides() -> None:
    text = function(
        """%t = fly.make_tile(%n, %l) : (!fly.int_tuple<8>, !fly.layout<4:1>) -> !fly.tile<[8|4:1]>
        %a = fly.static : !fly.layout<(16,8):(1,16)>
        %d = fly.logical_divide(%a, %t) : (!fly.layout<(16,8):(1,16)>, !fly.tile<[8|4:1]>) -> !fly.layout<((8,2),(4,2)):((1,8),(16,64))>
        return %d : !fly.layout<((8,2),(4,2)):((1,8),(16,64))>""",  # noqa: E501
        "%n: !fly.int_tuple<8>, %l: !fly.layout<4:1>",
        "!fly.layout<((8,2),(4,2)):((1,8),(16,64))>",
    )
    assert "fly.logical_divide" not in run(text, [LOWERED])


def test_the_values_of_an_atom_are_those_of_its_struct() -> None:
    text = function(
        f"""%a = fly.atom.set_value(%atom, "scale_b", %i) : ({SCALE}, i32) -> {SCALE}
        return""",
        f"%atom: {SCALE}, %i: i32",
    )
    assert "func.func @f(%arg0: !llvm.struct<(i32, i32)>, %arg1: i32)" in run(text, [ROCDL])


WRONG = {
    "leaves of other types": (
        "%0:2 = fly.get_leaves(%s) : (!fly.int_tuple<(32,8)>) -> (i32, i64)",
        "the result is i32, i32",
    ),
    "too few leaves": ("%0 = fly.get_leaves(%s) : (!fly.int_tuple<(32,8)>) -> (i32)", "the result is i32, i32"),
    "a shorter rank": (
        "%0 = fly.append<1>(%s, %n) : (!fly.int_tuple<(32,8)>, !fly.int_tuple<8>) -> !fly.int_tuple<(32,8)>",
        "at least 2, which there are already, got 1",
    ),
    "a tile of a runtime value": (
        "%0 = fly.make_tile(%c) : (!fly.int_tuple<?>) -> !fly.tile<[8]>",
        "a tile is known at compile time",
    ),
    "an address of the wrong width": (
        "%0 = fly.inttoptr(%i) : (i32) -> !fly.ptr<f32, global>",
        "of i32 where i64 belongs",
    ),
    "a promise about another value": (
        "%0 = fly.assume(%n, %s) : (!fly.int_tuple<8>, !fly.int_tuple<(32,8)>) -> !fly.int_tuple<8>",
        "they differ in more",
    ),
    "a text with too few places": ('fly.print("{}", %i, %j) : (i32, i64) -> ()', "it has a {} for each"),
    "a fragment without a type": (
        "%0 = fly.make_fragment_like(%l) : (!fly.layout<4:1>) -> !fly.memref<f16, register, 4:1>",
        "the type of the elements is missing",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_does_not_fit_is_an_error_at_its_line(kind: str) -> None:
    line, says = WRONG[kind]
    with pytest.raises(CompileError, match=re.escape(says)) as caught:
        run(function(f"  {line}\n  return"), [])
    assert caught.value.at.line == 2
