"""Text as FlyDSL writes it, in its versions, is read; what has no other form here is printed as it was written."""

from __future__ import annotations

import re

import pytest

from flydsl.compiler.fly_opt import run
from flydsl.dialect.text import generic_form, parse_module, to_text
from flydsl.errors import CompileError

MFMA = "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x4, (f32, f32) -> f32>>"
TILED = f"!fly.tiled_mma<{MFMA}, !fly.layout<(2,2,1):(1,2,0)>>"
SUMS, PARTS = "!fly.memref<f32, register, (4,2,2):(1,4,8)>", "!fly.memref<f32, register, (1,2):(1,1)>"
BUFFER_COPY = "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>"
TILE = "!fly.memref<f32, global, (32,8):(8,1)>"

PRINTED = f"""
    %0 = fly.make_shape(%i, %j) : (i32, i64) -> !fly.int_tuple<(?,?{{i64}})>
    %1 = fly.make_stride(%j) : (i64) -> !fly.int_tuple<(?{{i64}},1)>
    %2 = fly.make_coord() : () -> !fly.int_tuple<(3,0)>
    %3 = fly.recast_layout(16, 32, %l) : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<(8,8):(1,8)>
    %4 = fly.make_copy_atom {{valBits = 32 : i32}} : {BUFFER_COPY}
    %5 = fly.atom.set_value(%4, "soffset", %i) : ({BUFFER_COPY}, i32) -> {BUFFER_COPY}
    %6 = fly.tiled_mma.partition(b, %m, %t, %c) : ({TILED}, {TILE}, !fly.int_tuple<?>) -> !fly.memref<f32, global, (1,1,2):(0,0,4)>
    %7 = fly.mma.make_fragment(a, %m, %t) : ({TILED}, {TILE}) -> !fly.memref<f32, register, (1,1,2):(0,0,1)>
    %8 = fly.mma.make_fragment(b, %m, %t, stages = 2) : ({TILED}, {TILE}) -> !fly.memref<f32, register, (1,1,2,2):(0,0,1,2)>
    fly.gemm(%a, %d, %f, %f, %d) {{traversalOrder = #fly<gemm_traversal_order mnk_serpentine>}} : ({MFMA}, {SUMS}, {PARTS}, {PARTS}, {SUMS}) -> ()
    fly.gemm(%a, %d, %f, %f, %d) : ({MFMA}, {SUMS}, {PARTS}, {PARTS}, {SUMS}) -> ()
    %9 = fly.elem_less(%2, %2) : (!fly.int_tuple<(3,0)>, !fly.int_tuple<(3,0)>) -> i1
    %10 = fly.equal(%0, %0) : (!fly.int_tuple<(?,?{{i64}})>, !fly.int_tuple<(?,?{{i64}})>) -> i1
    %11 = fly.composed_get_inner(%s) : (!fly.composed_layout<S<2,3,3> o 8 o (8,16):(16,1)>) -> !fly.swizzle<S<2,3,3>>
    %12 = fly.composed_get_offset(%s) : (!fly.composed_layout<S<2,3,3> o 8 o (8,16):(16,1)>) -> !fly.int_tuple<8>
    %13 = fly.composed_get_outer(%s) : (!fly.composed_layout<S<2,3,3> o 8 o (8,16):(16,1)>) -> !fly.layout<(8,16):(16,1)>
    %14 = fly.memref.alloca(%l) : (!fly.layout<(4,8):(1,4)>) -> !fly.memref<f16, register, (4,8):(1,4)>
"""  # noqa: E501

ARGUMENTS = (
    f"%i: i32, %j: i64, %l: !fly.layout<(4,8):(1,4)>, %c: !fly.int_tuple<?>, %m: {TILED}, %t: {TILE}, "
    f"%a: {MFMA}, %d: {SUMS}, %f: {PARTS}, "
    "%s: !fly.composed_layout<S<2,3,3> o 8 o (8,16):(16,1)>"
)


def function(body: str, arguments: str = ARGUMENTS) -> str:
    return f"func.func @f({arguments}) {{\n{body}\n  return\n}}"


def without_names(text: str) -> str:
    return re.sub(r"%\w+", "%", text)


def test_flydsls_operations_are_printed_as_they_are_written() -> None:
    printed = to_text(parse_module(function(PRINTED)))
    assert to_text(parse_module(printed)) == printed
    for line in PRINTED.strip().splitlines():
        assert without_names(line.strip().partition(" = ")[2]) in without_names(printed)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("%0 = fly.static : () -> !fly.layout<4:1>", "fly.static : !fly.layout<4:1>"),
        (
            "%0 = fly.static {elems = [4 : i32]} : () -> !fly.int_tuple<( 4 ,(1))>",
            "fly.static {elems = [4 : i32]} : !fly.int_tuple<(4,(1))>",
        ),
        (
            "%0 = fly.get_dyn_shared() : !fly.ptr<i8, shared, align<1024>>",
            "fly.get_dyn_shared() : () -> !fly.ptr<i8, shared, align<1024>>",
        ),
        (
            "%0 = fly.make_ptr() {dictAttrs = {allocaSize = 4 : i64}} : () -> !fly.ptr<f32,register>",
            "fly.make_ptr() {dictAttrs = {allocaSize = 4 : i64}} : () -> !fly.ptr<f32, register>",
        ),
        (
            f"%0 = fly.mma_atom.make_fragment(a, %m, %t) : ({TILED.replace('!fly.layout', '')}, {TILE}) -> "
            "!fly.memref<f32,register,(1, 1, 2) : (0, 0, 1)>",
            f"fly.mma.make_fragment(a, %, %) : ({TILED}, {TILE}) -> !fly.memref<f32, register, (1,1,2):(0,0,1)>",
        ),
        (
            "%0 = fly.get(%l) {mode = array<i32: 1>} : (!fly.layout<(4, 8):(1, 4)>) -> !fly.layout<8:4>",
            "fly.get(%) {mode = array<i32: 1>} : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<8:4>",
        ),
        (
            "%0 = fly.take(%l) {begin = 1 : i32, end = 2 : i32} : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<8:4>",
            "fly.take(%) {begin = 1 : i32, end = 2 : i32} : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<8:4>",
        ),
    ],
)
def test_other_spellings_are_read_as_ours(written: str, printed: str) -> None:
    assert printed in without_names(to_text(parse_module(function(written))))


def test_operands_in_brackets_and_the_short_name_of_a_buffer_are_read() -> None:
    registers = "!fly.memref<f32, register, {}:1>"
    text = function(
        f"fly.mma_atom_call(%a, %d, [%x], [%x], %d) : ({MFMA}, {registers.format(4)}, {registers.format(1)}, "
        f"{registers.format(1)}, {registers.format(4)}) -> ()",
        f"%a: {MFMA}, %d: {registers.format(4)}, %x: {registers.format(1)}, %b: !fly.ptr<f32, buffer_desc>",
    )
    printed = to_text(parse_module(text))
    assert "fly.mma_atom_call(%arg0, %arg1, %arg2, %arg2, %arg1)" in printed
    assert "%arg3: !fly.ptr<f32, #fly_rocdl.buffer_desc>" in printed


IMMEDIATES = """\
func.func @f(%a: f32, %c: vector<4xf32>) -> vector<4xf32> {
  %0 = rocdl.mfma.f32.16x16x4f32 %a, %a, %c, 0, 0, 0 : (f32, f32, vector<4xf32>) -> vector<4xf32>
  // %1 = rocdl.mfma.f32.16x16x4f32 %a, %a, %c, 0, 0, 0 : (f32, f32, vector<4xf32>) -> vector<4xf32>
  %r = rocdl.mfma.f32.16x16x4f32 %a, %a, %0, 2, 1, 0 : (f32, f32, vector<4xf32>) -> vector<4xf32>
  return %r : vector<4xf32>
}"""


def test_immediates_of_matrix_instructions_become_values() -> None:
    printed = to_text(parse_module(IMMEDIATES))
    names = dict(re.findall(r"(%\w+) = llvm.mlir.constant\((\d) : i32\)", printed))
    calls = re.findall(r"mfma\S* ([^:]*) : \(f32, f32, vector<4xf32>, i32, i32, i32\)", printed)
    modifiers = [[names[name] for name in call.split(", ")[3:]] for call in calls]
    assert modifiers == [["0", "0", "0"], ["2", "1", "0"]]
    assert to_text(parse_module(printed)) == printed


def test_modifiers_among_values_and_by_name() -> None:
    text = """\
func.func @f(%r: !llvm.ptr<8>, %o: i32, %a: vector<8xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  %0 = rocdl.raw.ptr.buffer.load %r, %o, %o, 3 : i128
  rocdl.raw.ptr.buffer.store %0, %r, %o, %o, 0 : i128
  %1 = rocdl.mfma.scale.f32.16x16x128.f8f6f4 %a, %a, %c, fp4_e2m1, 1, 0, %o, 2, %o :
    (vector<8xi32>, vector<8xi32>, vector<4xf32>, i32, i32) -> vector<4xf32>
  return %1 : vector<4xf32>
}"""
    printed = to_text(parse_module(text))
    names = dict(re.findall(r"(%\w+) = llvm.mlir.constant\((\d) : i32\)", printed))
    operands = re.findall(r"rocdl\.\S+ ([^:]*) :", printed)
    assert [[names.get(name, name) for name in call.split(", ")][-6:] for call in operands] == [
        ["%arg0", "%arg1", "%arg1", "3"],
        [operands[1].partition(",")[0], "%arg0", "%arg1", "%arg1", "0"],
        ["4", "1", "0", "%arg1", "2", "%arg1"],
    ]


def test_names_for_immediates_do_not_meet_those_of_the_text() -> None:
    taken = IMMEDIATES.replace("%a", "%immediate_0_0")
    assert to_text(parse_module(taken)) == to_text(parse_module(IMMEDIATES))


def test_an_error_behind_rewritten_text_shows_its_own_place() -> None:
    text = function(
        "  %0 = fly.size(%l) : (!fly.layout<(4, 8) : (1, 4)>) -> !fly.int_tuple<32> %1 = arith.addi %q, %q : i32"
    )
    with pytest.raises(CompileError, match="undeclared") as caught:
        parse_module(text)
    at = caught.value.at
    assert at is not None
    assert at.column is not None
    assert text.splitlines()[at.line - 1][at.column :].startswith("%q")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            "fly.atom.set_value(%l, %i) : (!fly.layout<(4,8):(1,4)>, i32) -> i32",
            "where a copy_atom or mma_atom belongs",
        ),
        (f"fly.mma.make_fragment(d, %m, %t) : ({TILED}, {TILE}) -> i32", "operand 'd' of an MMA"),
        ("fly.recast_layout(16, %l) : (!fly.layout<(4,8):(1,4)>) -> i32", "can read|other attributes"),
        (
            "fly.elem_less(%l, %l) : (!fly.layout<(4,8):(1,4)>, !fly.layout<(4,8):(1,4)>) -> i1",
            "where a int_tuple belongs",
        ),
        ("fly.make_coord(%i) : (i32) -> !fly.int_tuple<(?,?)>", "make_int_tuple of"),
        ("fly.composed_get_inner(%l) : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<4:1>", "must be a composed layout"),
    ],
)
def test_what_does_not_fit_is_a_compile_error(operation: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        parse_module(function(f"  %0 = {operation}"))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("(3,4)", "(3,4,5)", "no parts to compare"),
        ("(3,(4,5))", "(3,4)", "no parts to compare"),
        ("(3,*)", "(3,4)", "no parts to compare"),
        ("(1E0,2)", "(3,4)", "have no order"),
    ],
)
def test_tuples_of_two_forms_have_no_order(left: str, right: str, message: str) -> None:
    text = function(
        f"  %0 = fly.elem_less(%a, %b) : (!fly.int_tuple<{left}>, !fly.int_tuple<{right}>) -> i1",
        f"%a: !fly.int_tuple<{left}>, %b: !fly.int_tuple<{right}>",
    )
    with pytest.raises(CompileError, match=message):
        parse_module(text)


# What is inferred, and what a text may state instead.
INFERRED = [
    ("fly.int_tuple_mod(%a, %b) : (!fly.int_tuple<(7,9)>, !fly.int_tuple<(2,4)>)", "!fly.int_tuple<(1,1)>",
     "!fly.int_tuple<(?,?)>", "!fly.int_tuple<(1,2)>"),
    ("fly.composition(%x, %y) : (!fly.layout<(12):(1)>, !fly.layout<(3):(2)>)", "!fly.layout<3:2>",
     "!fly.layout<(3):(2)>", "!fly.layout<3:1>"),
    ("fly.left_inverse(%x) : (!fly.layout<(12):(1)>)", "!fly.layout<12:1>",
     "!fly.layout<(12):(1)>", "!fly.layout<13:1>"),
    ("fly.composition(%l, %u) : (!fly.layout<(4,8):(1,4)>, !fly.layout<(4,1):(1,0)>)", "!fly.layout<(4,1):(1,0)>",
     "!fly.layout<(4,1):(1,4)>", "!fly.layout<(4,2):(1,4)>"),
    ("fly.add_offset(%p, %o) : (!fly.ptr<f16, shared, align<16>>, !fly.int_tuple<4>)",
     "!fly.ptr<f16, shared, align<8>>", "!fly.ptr<f16, shared>", "!fly.ptr<f16, shared, align<16>>"),
    ("fly.int_tuple_mul(%w, %a) : (!fly.int_tuple<(?,?{i64})>, !fly.int_tuple<(7,9)>)",
     "!fly.int_tuple<(?{div=7},?{i64 div=9})>", "!fly.int_tuple<(?,?{i64 div=3})>", "!fly.int_tuple<(?,?)>"),
]  # fmt: skip

INPUTS = (
    "%a: !fly.int_tuple<(7,9)>, %b: !fly.int_tuple<(2,4)>, %w: !fly.int_tuple<(?,?{i64})>, %x: !fly.layout<(12):(1)>, "
    "%y: !fly.layout<(3):(2)>, %l: !fly.layout<(4,8):(1,4)>, %u: !fly.layout<(4,1):(1,0)>, "
    "%p: !fly.ptr<f16, shared, align<16>>, %o: !fly.int_tuple<4>"
)


@pytest.mark.parametrize(("operation", "inferred", "stated", "wrong"), INFERRED)
def test_a_result_type_may_say_less_but_nothing_else(operation: str, inferred: str, stated: str, wrong: str) -> None:
    for result in (inferred, stated):
        text = function(f"%0 = {operation} -> {result}", INPUTS)
        assert f"-> {result}" in to_text(parse_module(text))
    with pytest.raises(CompileError, match=re.escape(f"the result is {inferred}, not {wrong}")):
        parse_module(function(f"%0 = {operation} -> {wrong}", INPUTS))


def test_generic_text_stays() -> None:
    text = '%0 = "fly.static"() : () -> !fly.layout<"(4,8):(1,4)">'
    assert generic_form(text) == text


NESTED = "64:2 o 1 o [S<1,0,2> o 2 o [64:3 o ? o (4,8):(1,4)]]"


def test_composed_layouts_of_composed_layouts_are_read_and_computed() -> None:
    text = f"""
    func.func @f(%i: i32, %k: i32) -> i32 {{
      %o = fly.make_int_tuple(%k) : (i32) -> !fly.int_tuple<?>
      %one = fly.static : !fly.int_tuple<1>
      %two = fly.static : !fly.int_tuple<2>
      %a = fly.static : !fly.layout<64:2>
      %s = fly.static : !fly.swizzle<S<1,0,2>>
      %b = fly.static : !fly.layout<64:3>
      %l = fly.static : !fly.layout<(4,8):(1,4)>
      %x = fly.make_composed_layout(%b, %o, %l) : (!fly.layout<64:3>, !fly.int_tuple<?>, !fly.layout<(4,8):(1,4)>) -> !fly.composed_layout<64:3 o ? o (4,8):(1,4)>
      %y = fly.make_composed_layout(%s, %two, %x) : (!fly.swizzle<S<1,0,2>>, !fly.int_tuple<2>, !fly.composed_layout<64:3 o ? o (4,8):(1,4)>) -> !fly.composed_layout<S<1,0,2> o 2 o [64:3 o ? o (4,8):(1,4)]>
      %z = fly.make_composed_layout(%a, %one, %y) : (!fly.layout<64:2>, !fly.int_tuple<1>, !fly.composed_layout<S<1,0,2> o 2 o [64:3 o ? o (4,8):(1,4)]>) -> !fly.composed_layout<{NESTED}>
      %n = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
      %r = fly.crd2idx(%n, %z) : (!fly.int_tuple<?>, !fly.composed_layout<{NESTED}>) -> !fly.int_tuple<?>
      %v = fly.get_scalar(%r) : (!fly.int_tuple<?>) -> i32
      return %v : i32
    }}"""  # noqa: E501
    printed = run(text, [])
    assert f"!fly.composed_layout<{NESTED}>" in printed
    assert run(printed, []) == printed
    lowered = run(text, ["fly-layout-lowering"])
    assert "fly." not in lowered
    folded = re.sub(r"%arg0: i32, %arg1: i32", "", lowered).replace("%arg0", "%five").replace("%arg1", "%seven")
    constants = "{\n%five = arith.constant 5 : i32\n%seven = arith.constant 7 : i32\n"
    value = run(folded.replace("@f() -> i32 {", f"@f() -> i32 {constants}"), ["canonicalize"])
    index = 2 + 3 * (7 + 5)
    swizzled = index ^ (index >> 2 & 1)
    assert f"arith.constant {2 * (1 + swizzled)} : i32" in value
