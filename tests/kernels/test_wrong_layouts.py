"""Layouts that the algebra does not admit."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.kernels.wrong import Programs, check, mma, tile_of

programs = Programs()


@programs.kernel("make_layout(-3): an extent must be positive, got -3")
def neg(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout(-3)  # here


@programs.kernel("make_layout('4'): '4' (str) cannot be a leaf of an int tuple")
def uses_str(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout("4")  # here


@programs.kernel("make_layout(4.0): 4.0 (float) cannot be a leaf of an int tuple")
def uses_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout(4.0)  # here


@programs.kernel("make_layout((4,4), (1)): (4,4) and (1) are not congruent")
def rank(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout((4, 4), (1,))  # here


@programs.kernel("make_layout((4,(2,2)), (1,4)): (2,2) and 4 are not congruent")
def prof(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout((4, (2, 2)), (1, 4))  # here


@programs.kernel("a shape, stride or coordinate must consist of integers, got Float32(?)")
def rtfloat(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout((4, A[0, 0]))  # here


@programs.kernel("make_layout({}): {} (dict) cannot be a leaf of an int tuple")
def a_dict(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout({})  # here


@programs.kernel("crd2idx((1,2,3), (4,4):(1,4)): the coordinate (1,2,3) does not fit (4,")
def call(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.make_layout((4, 4))(1, 2, 3)  # here


@programs.kernel("composition((4,4):(1,7), 3:5): the stride 5 and the extent 4: neither ")
def comp(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.composition(fx.make_layout((4, 4), (1, 7)), fx.make_layout(3, 5))  # here


@programs.kernel("complement((4,4):(1,3), 16): the layout overlaps itself: 4:3 begins be")
def compl(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.complement(fx.make_layout((4, 4), (1, 3)), 16)  # here


@programs.kernel("zipped_divide((16,16):(1,16), [4|4|4]): the tile [4|4|4] has 3 modes, ")
def divide_rank(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.zipped_divide(fx.make_layout((16, 16)), fx.make_tile(4, 4, 4))  # here


@programs.kernel("select((4,4):(1,4), (5)): there is no mode 5: modes count from 0 to 1")
def select(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.select(fx.make_layout((4, 4)), [5])  # here


@programs.kernel("get((4,4):(1,4), 7): there is no mode 7: modes count from 0 to 1")
def get(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.get(fx.make_layout((4, 4)), 7)  # here


@programs.kernel("take((4,4):(1,4), 2, 1): there are no modes 2 to 1 in a rank of 2")
def take(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.take(fx.make_layout((4, 4)), 2, 1)  # here


@programs.kernel("group((4,4):(1,4), 0, 5): there are no modes 0 to 5 in a rank of 2")
def group(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.group(fx.make_layout((4, 4)), 0, 5)  # here


@programs.kernel("make_ordered_layout((4,4), (0)): the order (0) must have the modes of th")
def order(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_ordered_layout((4, 4), (0,))  # here


@programs.kernel("S<3,3,0>: the field would be XORed with itself")
def swizzle(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Swizzle(3, 3, 0)  # here


@programs.kernel("a swizzle takes three ints, got (a,3,3)")
def swizzle2(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Swizzle("a", 3, 3)  # here


@programs.kernel("make_composed_layout(3, 0, 4): the inner function must be a swizzle or")
def compose_nolayout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_composed_layout(3, 4)  # here


@programs.kernel("make_view takes a pointer, not 0.5")
def view_noptr(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_view(0.5, fx.make_layout(4))  # here


@programs.kernel("make_view takes a pointer, not Tensor(!fly.memref<f32, global, (?,?):(")
def view_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_view(A, fx.make_layout(4))  # here


@programs.kernel("fly.make_view: operand 1 is !fly.int_tuple<(4,4)>, where a layout or c")
def view_nolayout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_view(fx.get_iter(A), (4, 4))  # here


@programs.kernel("make_view takes a pointer, not 4:1")
def view_swapped(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_view(fx.make_layout(4), fx.get_iter(A))  # here


@programs.kernel("get_iter takes a tensor, not 4:1")
def get_iter_layout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.get_iter(fx.make_layout(4))  # here


@programs.kernel("size('x'): 'x' (str) cannot be a leaf of an int tuple")
def size_int(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    I[0] = fx.size("x")  # here


@programs.kernel("idx2crd((1,2,3), (4,4):(1,4)): an index must be one integer, got (1,2,3)")
def idx2crd(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.idx2crd((1, 2, 3), fx.make_layout((4, 4)))  # here


@programs.kernel("slice((?,?):(?{i64},1), (*,*,0)): the coordinate (*,*,0) does not fit ")
def uses_slice(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.slice(A, (None, None, 0))  # here


@programs.kernel("'x' of type str is not a number")
def tilestr(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.zipped_divide(A, "x")  # here


@programs.kernel("make_tile(0, 4): an extent must be positive, got 0")
def tile0(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.zipped_divide(A, fx.make_tile(0, 4))  # here


@programs.kernel("make_tile of runtime values: a tile is known at compile time")
def tilert(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.zipped_divide(A, fx.make_tile(n, 4))  # here


@programs.kernel("index 4 is outside of 0 to 4 (exclusive) in !fly.memref<f32, global, (")
def static_coord(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    tile_of(A, 4, 4)[4, 0] = 1.0  # here


@programs.kernel("index 9 is outside of 0 to 4 (exclusive) in !fly.memref<f32, global, (")
def static_coord2(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = tile_of(A, 4, 4)[0, 9]  # here


@programs.kernel("index 16 is outside of 0 to 16 (exclusive) in !fly.memref<f32, global,")
def coord_flat(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = tile_of(A, 4, 4)[16]  # here


@programs.kernel("crd2idx(((0,1),2), (4,4):(4,1)): the coordinate (0,1) does not fit 4")
def nested_coord(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = tile_of(A, 4, 4)[(0, 1), 2]  # here


@programs.kernel("index 8 is outside of 0 to 8 (exclusive)")
def tile_that_does_not_exist(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.zipped_divide(tile_of(A, 64, 8), fx.make_tile(8, 8))[None, (8, 0)]  # here


@programs.kernel("index -1 is outside of 0 to 8 (exclusive)")
def row_from_the_end(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    tile_of(A, 8, 8)[None, -1]  # here


@programs.kernel("get_slice of thread 64: there are 64")
def thread_that_does_not_exist(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(64)  # here


@programs.kernel("a Vector of Int32, as its first element is, with Float32(?) in it")
def vector_of_two_types(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Vector.from_elements([n, A[0, 0]])  # here


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
