"""Coordinate swizzles: composed layouts whose functions exchange coordinates, against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from flydsl.errors import LayoutError
from flydsl.layout import (
    Basis,
    ComposedLayout,
    CoordSwizzle,
    Dynamic,
    Layout,
    Swizzle,
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    cosize,
    get_shape,
    logical_divide,
    make_composed_layout,
    make_identity_layout,
    parse,
    recast_layout,
    size,
    slice,
    slice_and_offset,
    zipped_divide,
)
from flydsl.layout.adjacency import is_adjacent

ROWS, COLUMNS = 16, 64
STORAGE = Layout((ROWS, COLUMNS), (COLUMNS, 1))
SWIZZLE = CoordSwizzle(3, 1, [0], 3, [1])
SWIZZLED = make_composed_layout(STORAGE, make_composed_layout(SWIZZLE, make_identity_layout((ROWS, COLUMNS))))


def index_at(row: int, column: int) -> int:
    return row * COLUMNS + (column ^ (row >> 1 & 7) << 3)


def test_a_composed_layout_swizzles_columns_by_rows() -> None:
    for row, column in product(range(ROWS), range(COLUMNS)):
        assert (
            SWIZZLED(row, column) == SWIZZLED((row, column)) == SWIZZLED(row + ROWS * column) == index_at(row, column)
        )
    assert sorted(SWIZZLED(i) for i in range(size(SWIZZLED))) == list(range(ROWS * COLUMNS))
    assert get_shape(SWIZZLED) == (ROWS, COLUMNS)
    assert cosize(SWIZZLED) == ROWS * COLUMNS


def test_the_functions_of_a_composed_layout_can_be_had_one_by_one() -> None:
    assert composed_get_inner(SWIZZLED) == STORAGE
    coordinates = composed_get_outer(SWIZZLED)
    assert composed_get_inner(coordinates) == SWIZZLE
    assert composed_get_outer(coordinates) == make_identity_layout((ROWS, COLUMNS))
    assert coordinates(5, 3) == (5, 3 ^ 2 << 3)
    moved = make_composed_layout(SWIZZLE, (1, 8), make_identity_layout((4, 4)))
    assert composed_get_offset(moved) == (1, 8)
    assert moved(1, 2) == (2, 10 ^ 1 << 3)


@pytest.mark.parametrize(
    "text",
    [
        "CS<3,0,[1],0,[2]>",
        "CS<0,0,[],0,[]>",
        "CS<2,1,[0,1],3,[1]> o (0,8) o (8,8):(1E0E1,1E1)",
        "(8,64):(64,1) o (0,0) o [CS<3,0,[0],3,[1]> o (0,?{div=8}) o (8,8):(1E0,1E1)]",
    ],
)
def test_texts_are_read_as_they_are_written(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(text) == parse(text)


def test_a_chain_of_functions_may_lack_brackets() -> None:
    chain = parse("CS<3,0,[1],0,[2]> o (0,0,0) o (4,8,8):(1E0,1E1,1E2) o (1,2,3) o (2,4,8):(1E0,1E1,1E2)")
    inner = make_composed_layout(parse("CS<3,0,[1],0,[2]>"), (0, 0, 0), make_identity_layout((4, 8, 8)))
    assert chain == make_composed_layout(inner, (1, 2, 3), make_identity_layout((2, 4, 8)))
    assert chain(1, 3, 4) == (2, 5, 7 ^ 5)


def test_parts_keep_where_they_begin() -> None:
    for row in range(ROWS):
        part = slice(SWIZZLED, (row, None))
        assert [part(column) for column in range(COLUMNS)] == [index_at(row, column) for column in range(COLUMNS)]
        assert slice_and_offset((row, None), SWIZZLED)[1] == 0
    tiles = zipped_divide(SWIZZLED, (4, 8))
    for row, column in product(range(4), range(8)):
        tile = slice(tiles, (None, (row, column)))
        assert tile(3, 5) == index_at(4 * row + 3, 8 * column + 5)


def test_a_layout_may_take_coordinates_without_a_swizzle() -> None:
    threads = Layout((16, (4, 16)), (Basis(1, 1), (Basis(16, 1), Basis(1, 0))))
    pitched = make_composed_layout(Layout((ROWS, COLUMNS), (100, 1)), threads)
    for byte, block, row in product(range(16), range(4), range(16)):
        assert pitched(byte, (block, row)) == row * 100 + block * 16 + byte
    assert make_composed_layout(Layout(64, 2), Layout(8, Basis(3, 0)))(5) == 30


def test_coordinates_known_at_run_time_only() -> None:
    row, column = Dynamic(), Dynamic(divisibility=8)
    assert SWIZZLED(row, column) == column
    assert slice(SWIZZLED, (row, None)).offset == (row, 0)


def test_adjacent_elements_are_adjacent() -> None:
    rng = random.Random(3)
    found = 0
    for _ in range(600):
        values, modes = 1 << rng.randrange(4), [[0], [1]]
        rng.shuffle(modes)
        swizzle = CoordSwizzle(rng.randrange(4), rng.randrange(4), modes[0], rng.randrange(4), modes[1])
        storage = Layout(*rng.choice([((8, 64), (64, 1)), ((64, 8), (1, 64)), (((4, 8), 64), ((1, 512), 4))]))
        offset = (rng.randrange(4) * values, rng.randrange(8) << rng.randrange(3))
        steps = Layout(values, Basis(1, rng.randrange(2)))
        layout = make_composed_layout(storage, 0, make_composed_layout(swizzle, offset, steps))
        indices = [layout(i) for i in range(values)]
        if is_adjacent(layout, values):
            found += values > 1
            assert indices == list(range(indices[0], indices[0] + values)), layout
    assert found > 50


def test_aligned_blocks_are_known_to_stay_together() -> None:
    for row in range(ROWS):
        assert is_adjacent(slice(logical_divide(slice(SWIZZLED, (row, None)), 8), (None, 3)), 8)
        assert not is_adjacent(slice(logical_divide(slice(SWIZZLED, (row, None)), 16), (None, 1)), 16)
    assert not is_adjacent(slice(SWIZZLED, (None, 3)), ROWS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoordSwizzle(3, 0, [0], 0, [0]), "XORed with itself"),
        (lambda: CoordSwizzle(3, 0, [], 0, [1]), "which modes to read and to change is missing"),
        (lambda: CoordSwizzle(-1, 0, [0], 0, [1]), "bits and bases of at least 0"),
        (lambda: CoordSwizzle(30, 40, [0], 0, [1]), "within the 63 bits"),
        (lambda: CoordSwizzle(3, 0, "a", 0, [1]), "a mode of a coordinate is a list of ints"),
        (lambda: make_composed_layout(SWIZZLE, STORAGE), "swizzles coordinates, and the outer layout gives indices"),
        (
            lambda: make_composed_layout(Swizzle(3, 3, 3), make_identity_layout((4, 8))),
            "gives coordinates, not indices",
        ),
        (lambda: make_composed_layout(SWIZZLE, 5, make_identity_layout((4, 8))), "the offset 5 is an index"),
        (lambda: make_composed_layout(Swizzle(3, 3, 3), (0, 1), STORAGE), "the offset (0,1) is a coordinate"),
        (lambda: make_composed_layout(STORAGE, make_identity_layout((2, 2, 2))), "does not fit"),
        (lambda: make_composed_layout(CoordSwizzle(1, 0, [0], 0, [1]), make_identity_layout(((2, 2), 4))), "no single"),
        (lambda: recast_layout(SWIZZLED, 16, 32), "only a swizzle at offset 0 can be recast"),
        (lambda: parse("CS<3,0,[1],0>"), "expected ','"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(LayoutError, match=r".*") as raised:
        make()
    assert message in str(raised.value)


def test_a_composed_layout_is_immutable_and_equal_to_its_like() -> None:
    again = ComposedLayout(STORAGE, 0, ComposedLayout(SWIZZLE, 0, make_identity_layout((ROWS, COLUMNS))))
    assert again == SWIZZLED
    assert hash(again) == hash(SWIZZLED)
