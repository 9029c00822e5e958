"""The written form is read and printed without loss, and malformed text is an error that says why."""

from __future__ import annotations

import random
import re

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.dialect.text import generic_form, parse_module, to_text
from flydsl.errors import CompileError
from tests.launchers import launcher_of


def pipelines() -> list[flyc.Pipeline]:
    @flyc.kernel
    def copy(A: fx.Tensor, B: fx.Tensor, width: fx.Constexpr[int]):
        i = fx.thread_idx.x
        atom = fx.make_copy_atom(fx.UniversalCopy(32 * width), fx.Float32)
        r = fx.make_rmem_tensor(width, fx.Float32)
        tiles = [fx.logical_divide(fx.slice(T, (i, None)), fx.make_layout(width, 1)) for T in (A, B)]
        fx.copy_atom_call(atom, fx.slice(tiles[0], (None, fx.block_idx.x)), r)
        fx.copy_atom_call(atom, r, fx.slice(tiles[1], (None, fx.block_idx.x)))

    launch_copy = launcher_of(copy, grid=2, block=64)

    @flyc.kernel
    def rowsum(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        i = fx.thread_idx.x
        total = fx.Float32(0)
        for j in range(n):
            total = total + fx.zipped_divide(A, fx.make_tile(8, None))[(i % 8, j), (i // 8, 0)]
        B[i, 0] = total

    @flyc.jit
    def launch_rowsum(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
        rowsum(A, B, n).launch(grid=A.shape[0] // 64, block=64)

    a, b = torch.zeros(64, 8), torch.zeros(64, 8)
    return [launch_copy.lower(a, b, 4), launch_copy.lower(a.T, b, 1), launch_rowsum.lower(a, b, 8)]


def test_every_stage_reads_back_as_it_was_printed() -> None:
    for pipeline in pipelines():
        pipeline.run(until="convert-fly-to-rocdl")
        for index in range(pipeline.position + 1):
            text = pipeline.text_after(index)
            assert to_text(parse_module(text)) == text
            located = pipeline.text_after(index, locations=True)
            assert to_text(parse_module(located), locations=True) == located


# Operations as FlyDSL's own dumps write them.
WRITTEN = """
    %layout = fly.static : !fly.layout<(4,8):(1,4)>
    %tile = fly.static : !fly.tile<[8|24]>
    %7 = fly.make_int_tuple() : () -> !fly.int_tuple<(4,1)>
    %8 = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<(*,?)>
    %9 = fly.zipped_divide(%a, %tile) : (!fly.memref<f32, global, (?,?):(?{i64},1)>, !fly.tile<[8|24]>) -> !fly.memref<f32, global, ((8,24),(?,?)):((?{i64},1),(?{i64 div=8},24))>
    %10 = fly.slice(%9, %8) : (!fly.memref<f32, global, ((8,24),(?,?)):((?{i64},1),(?{i64 div=8},24))>, !fly.int_tuple<(*,?)>) -> !fly.memref<f32, global, (8,24):(?{i64},1)>
    %11 = fly.get_iter(%a) : (!fly.memref<f32, global, (?,?):(?{i64},1)>) -> !fly.ptr<f32, global>
    %12 = fly.get_layout(%a) : (!fly.memref<f32, global, (?,?):(?{i64},1)>) -> !fly.layout<(?,?):(?{i64},1)>
    %13 = fly.make_view(%11, %12) : (!fly.ptr<f32, global>, !fly.layout<(?,?):(?{i64},1)>) -> !fly.memref<f32, global, (?,?):(?{i64},1)>
    %14 = fly.size(%layout) : (!fly.layout<(4,8):(1,4)>) -> !fly.int_tuple<32>
    %15 = fly.select(%layout) {indices = array<i32: 1>} : (!fly.layout<(4,8):(1,4)>) -> !fly.layout<8:4>
    %16 = fly.get_shape(%layout) : (!fly.layout<(4,8):(1,4)>) -> !fly.int_tuple<(4,8)>
    %17 = fly.int_tuple_product_each(%16) : (!fly.int_tuple<(4,8)>) -> !fly.int_tuple<(4,8)>
    %18 = fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<128>, 32>
    %19 = fly.make_ptr() {dictAttrs = {allocSize = 48 : i64}} : () -> !fly.ptr<f32, register>
"""  # noqa: E501


def test_flydsls_spelling_is_read() -> None:
    written = f"func.func @f(%a: !fly.memref<f32, global, (?,?):(?{{i64}},1)>, %i: i32) {{{WRITTEN}return }}"
    printed = to_text(parse_module(written))
    for line in WRITTEN.strip().splitlines():
        operation = re.sub(r"%\w+", "%", line.strip().partition(" = ")[2])
        assert operation in re.sub(r"%\w+", "%", printed)


SWIZZLED = """
    %0 = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
    %1 = fly.static : !fly.swizzle<S<3,3,3>>
    %2 = fly.static : !fly.layout<(8,64):(64,1)>
    %3 = fly.make_composed_layout(%1, %0, %2) : (!fly.swizzle<S<3,3,3>>, !fly.int_tuple<?>, !fly.layout<(8,64):(64,1)>) -> !fly.composed_layout<S<3,3,3> o ? o (8,64):(64,1)>
    %4 = fly.make_view(%p, %3) : (!fly.ptr<f32, shared>, !fly.composed_layout<S<3,3,3> o ? o (8,64):(64,1)>) -> !fly.memref<f32, shared, S<3,3,3> o ? o (8,64):(64,1)>
    %5 = fly.apply_swizzle(%0, %1) : (!fly.int_tuple<?>, !fly.swizzle<S<3,3,3>>) -> !fly.int_tuple<?>
    %6 = fly.static : !fly.composed_layout<S<3,3,3> o 0 o (8,64):(64,1)>
"""  # noqa: E501


def test_swizzled_layouts_are_read_and_printed() -> None:
    written = f"func.func @f(%p: !fly.ptr<f32, shared>, %i: i32) {{{SWIZZLED}return }}"
    printed = to_text(parse_module(written))
    assert to_text(parse_module(printed)) == printed
    for line in SWIZZLED.strip().splitlines():
        assert re.sub(r"%\w+", "%", line.strip().partition(" = ")[2]) in re.sub(r"%\w+", "%", printed)


def test_strings_and_comments_are_not_rewritten() -> None:
    text = 'module attributes {gpu.note = "fly.nothing(%x)"} { // fly.nothing(%x)\n}'
    assert "fly.nothing(%x)" in to_text(parse_module(text))
    assert generic_form(text) == text


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("fly.statik : !fly.layout<4:1>", "not an operation"),
        ("fly.size() : () -> !fly.int_tuple<4>", "takes 1 operands, not 0"),
        ("fly.static : !fly.layout<4:1:2>", "expected the end"),
        ("fly.static : !fly.layout<(4,8)>", "not a layout"),
        ("fly.static : !fly.layout<4:?>", "known at run time only"),
        ("fly.static : !fly.layot<4:1>", "cannot|can read|not a type"),
        ("fly.static : !fly.layout<4:1", "no closing"),
        ("fly.static : i32", "where a layout or .* or int_tuple or .* belongs"),
        ("fly.make_int_tuple() : () -> !fly.int_tuple<?>", "make_int_tuple of"),
        ("fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?{i64}>", "make_int_tuple of"),
        ("fly.size(%i) : (i32) -> !fly.int_tuple<4>", "where a layout"),
        ("fly.size(%l) : (!fly.layout<4:1>) -> !fly.int_tuple<5>", "int_tuple<4>, not"),
        ("fly.select(%l) : (!fly.layout<4:1>) -> !fly.layout<4:1>", "other attributes"),
        ("fly.get_iter(%l) : (!fly.layout<4:1>) -> !fly.ptr<f32, global>", "where a memref belongs"),
        ("fly.make_ptr() : () -> !fly.ptr<f32, register>", "allocSize"),
        ("fly.make_ptr() : () -> !fly.ptr<f33, global>", "not an element type"),
        ("fly.make_ptr() : () -> !fly.ptr<f32, globe>", "not an address space"),
        ("fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<!fly.universal_copy<32>, 32>", "valBits"),
        ("fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<33>, 32>", "33 bits"),
        ("fly.make_copy_atom {valBits = 32 : i32} : !fly.copy_atom<!fly.universal_copy<32>, x>", "got 'x'"),
        ('fly.memref.alloca(%l) : (!fly.layout<4:1>) -> !fly.memref<f32, register, 8:1>', "gives no"),
    ],
)  # fmt: skip
def test_malformed_text_is_a_compile_error(operation: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        parse_module(f"func.func @f(%i: i32, %l: !fly.layout<4:1>) {{\n  %0 = {operation}\n  return\n}}")


def test_damaged_text_never_does_worse_than_a_compile_error() -> None:
    """Text with characters dropped, doubled or swapped either reads or raises CompileError."""
    text = f"func.func @f(%a: !fly.memref<f32, global, (?,?):(?{{i64}},1)>, %i: i32) {{{WRITTEN}return }}"
    generator = random.Random(0)
    refused = 0
    for _ in range(300):
        at, span = generator.randrange(len(text)), generator.randrange(1, 6)
        middle = generator.choice(["", text[at : at + span] * 2, generator.choice("(){}<>:,?*%!0-|")])
        try:
            parse_module(text[:at] + middle + text[at + span :])
        except CompileError:
            refused += 1
    assert refused > 200


def test_types_may_go_on_in_the_next_lines() -> None:
    text = """
    func.func @f(%x: i32) -> (i32, i32) {
      %atom = fly.make_copy_atom {valBits = 16 : i32}
          : !fly.copy_atom<!fly.universal_copy<64>, 16>
      %layout = fly.static
          : !fly.layout<4:1>
      %t = fly.make_int_tuple(%x)
          : (i32)
          -> !fly.int_tuple<(4,?)>
      %0:2 = fly.get_leaves(%t) : (
              !fly.int_tuple<(4,?)>)
          -> (i32, i32)
      return %0#0, %0#1 : i32, i32
    }"""
    printed = to_text(parse_module(text))
    assert "fly.make_copy_atom {valBits = 16 : i32} : !fly.copy_atom<" in printed
    assert "%3:2 = fly.get_leaves(%2) : (!fly.int_tuple<(4,?)>) -> (i32, i32)" in printed
    assert to_text(parse_module(printed)) == printed
