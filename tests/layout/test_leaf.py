"""Leaves known only at run time: what is known of the results, and what never reaches run time."""

from __future__ import annotations

import pytest

from flydsl.errors import LayoutError
from flydsl.layout import (
    Basis,
    Dynamic,
    Layout,
    ceil_div,
    composition,
    crd2idx,
    int_tuple_div,
    logical_divide,
    make_identity_layout,
    make_layout_like,
    make_tile,
    parse,
    raked_product,
    shape_div,
    slice,
    slice_and_offset,
    zipped_divide,
)

X, X4, W8 = Dynamic(), Dynamic(32, 4), Dynamic(64, 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (X + 1, "?"),
        (X4 * 6, "?{div=24}"),
        (6 * X4, "?{div=24}"),
        (X4 + 6, "?{div=2}"),
        (6 - X4, "?{div=2}"),
        (X4 * W8, "?{i64 div=32}"),
        (X4 + W8, "?{i64 div=4}"),
        (X4 // 2, "?{div=2}"),
        (X4 // 8, "?"),
        (X4 % 6, "?{div=2}"),
        (X4 << 2, "?{div=16}"),
        (X4 >> 1, "?{div=2}"),
        (X4 >> 3, "?"),
        (X4 ^ W8, "?{i64 div=4}"),
        (W8 & 6, "0"),
        (W8 & 30, "?{i64 div=8}"),
        (X & 6, "?{div=2}"),
        (X * 2**40, "?{i64 div=1099511627776}"),
        (ceil_div(X, 8), "?"),
        (ceil_div(X4, 2), "?{div=2}"),
        (X + 0, "?"),
        (X4 * 1, "?{div=4}"),
        (X4 * 0, "0"),
        (0 // X, "0"),
        (0 % X, "0"),
        (X4 % 2, "0"),
        (X & 0, "0"),
        (X >> 0, "?"),
        (X << 0, "?"),
        (shape_div(X4, 2), "?{div=2}"),
        (shape_div(2, X4), "1"),
    ],
)
def test_what_is_known_of_results(value: object, text: str) -> None:
    assert str(value) == text


def test_folding_reaches_no_operation() -> None:
    class Silent(Dynamic):
        __slots__ = ()

        def _combine(self, *operation: object) -> Dynamic:
            raise AssertionError(f"{operation} was to be folded")

    x = Silent(32, 4)
    assert (x * 0, 0 * x, 0 // x, x % 4, 0 % x, x & 0) == (0,) * 6
    assert all(y is x for y in (x + 0, 0 + x, x - 0, x * 1, 1 * x, x // 1, x >> 0, x ^ 0))
    assert crd2idx((0, 0), Layout((x, 8), (x, 1))) == 0
    assert crd2idx(x, Layout((4, 8), (1, 4))) is x
    assert slice_and_offset((None, 0), Layout((4, x), (1, x))) == (Layout(4, 1), 0)


def test_dynamic_leaves_compare_by_what_is_known_their_subclasses_by_identity() -> None:
    class Value(Dynamic):
        __slots__ = ()

    assert Dynamic(64, 8) == W8
    assert Dynamic(64, 8) != Dynamic(32, 8)
    assert Value() != Value()
    assert Value() != Dynamic()


def test_basis_vectors() -> None:
    assert 3 * Basis(2, (1, 0)) == Basis(6, (1, 0))
    assert int_tuple_div((Basis(2, (0,)), Basis(8, (1,))), (2, 4)) == parse("(1E0,2E1)")
    identity = make_identity_layout((4, 8))
    assert str(logical_divide(identity, Layout((2, 4), (1, 2)))) == "((2,(2,2)),4):((1E0,(2E0,1E1)),2E1)"
    assert slice_and_offset((None, 3), identity) == (parse("4:1E0"), (0, 3))
    assert make_identity_layout((1, 4))(2) == (0, 2)
    assert make_identity_layout((1, 1))(0) == (0, 0)
    with pytest.raises(LayoutError, match="cannot be added"):
        Layout((4, 8), (Basis(1, (0,)), 1))(1, 1)


@pytest.mark.parametrize("arguments", [(16,), (32, 0), (32, -4), (32, 1.5)])
def test_bad_dynamic_leaves(arguments: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError):
        Dynamic(*arguments)


# What the compiler's reference dumps show for a tensor (?,?):(?{i64},1) and a vector (?):(1).


def test_types_of_a_tiled_copy() -> None:
    tensor = parse("(?,?):(?{i64},1)")
    tiles = zipped_divide(tensor, make_tile(8, 24))
    assert str(tiles) == "((8,24),(?,?)):((?{i64},1),(?{i64 div=8},24))"
    assert str(slice(tiles, (None, X))) == "(8,24):(?{i64},1)"
    assert str(raked_product(parse("(4,1):(1,1)"), parse("(1,8):(1,1)"))) == "((1,4),(8,1)):((0,1),(4,0))"
    by_thread = zipped_divide(parse("(8,24):(?{i64},1)"), make_tile(4, 8))
    partition = composition(by_thread, make_tile(parse("(4,8):(1,4)"), None))
    assert str(partition) == "((4,8),(2,3)):((?{i64},1),(?{i64 div=4},8))"
    assert str(make_layout_like(parse("((4,2),2,3):((1,4),?{i64 div=4},8)"))) == "((4,2),2,3):((1,4),24,8)"


def test_types_of_a_vector_add() -> None:
    blocks = logical_divide(parse("(?):(1)"), Layout(64, 1))
    assert str(blocks) == "(64,?):(1,64)"
    block, offset = slice_and_offset((None, X), blocks)
    assert (str(block), str(offset)) == ("64:1", "?{div=64}")
    assert str(logical_divide(block, Layout(1, 1))) == "(1,64):(0,1)"


@pytest.mark.parametrize(
    ("layout", "divisor", "result"),
    [
        ("(8,?):(1,8)", "4:1", "(4,(2,?)):(1,(4,8))"),
        ("(8,?):(1,8)", "8:1", "(8,?):(1,8)"),
        ("(8,?):(1,8)", "16:1", "((8,2),?):((1,8),16)"),
        ("(4,?{div=4}):(?,1)", "8:1", "((4,2),?{div=2}):((?,1),2)"),
        ("?{div=64}:?", "(4,4):(1,16)", "((4,4),(4,?)):((?,?{div=16}),(?{div=4},?{div=64}))"),
        ("?{div=64}:?", "16:1", "(16,?{div=4}):(?,?{div=16})"),
    ],
)
def test_divides_that_divisibility_decides(layout: str, divisor: str, result: str) -> None:
    assert str(logical_divide(parse(layout), parse(divisor))) == result
