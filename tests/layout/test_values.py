"""Layouts, composed layouts and tiles as values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import flydsl.layout
from flydsl.errors import LayoutError
from flydsl.layout import (
    Basis,
    ComposedLayout,
    Dynamic,
    IntTuple,
    Layout,
    Swizzle,
    Tile,
    dice,
    get,
    get_shape,
    get_stride,
    make_composed_layout,
    make_coord,
    make_layout,
    make_tile,
    parse,
    recast_layout,
    size,
    slice,
    slice_and_offset,
)

VALUES = [
    Layout((4, (2, 8)), (1, (4, 8))),
    Layout((4, Dynamic()), (Dynamic(64, 8), 1)),
    Layout((4, 8), (Basis(1, (0,)), Basis(2, (1, 0)))),
    ComposedLayout(Swizzle(3, 3, 3), 5, Layout((8, 64), (64, 1))),
    Tile((8, None, Layout(4, 2))),
    Swizzle(2, 1, 3),
    Dynamic(64, 8),
    Basis(3, (1,)),
    IntTuple((4, (2, None))),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_are_equal_to_their_copies(value: Any) -> None:
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), parse(str(value))):
        assert other == value
        assert hash(other) == hash(value)
        assert type(other) is type(value)


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_cannot_be_changed(value: Any) -> None:
    for name in ("shape", "stride", "_flat", "offset", "modes", "bits", "width", "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, 1)


def test_different_values_are_different() -> None:
    assert len(set(VALUES)) == len(VALUES)
    assert Layout(4, 1) != Layout((4,), (1,))
    assert Layout(4, 1) != "4:1"
    assert Layout((4, 8), (1, 4)) != ((4, 8), (1, 4))


def test_a_layout_is_a_function_of_coordinates_of_any_coarseness() -> None:
    layout = Layout((4, (2, 8)), (1, (4, 8)))
    assert layout(3, (1, 5)) == layout((3, (1, 5))) == layout(3, 11) == layout(47) == 3 + 4 + 40


def test_a_layout_is_a_sequence_of_modes() -> None:
    layout = Layout((4, (2, 8)), (1, (4, 8)))
    assert len(layout) == 2
    assert list(layout) == [Layout(4, 1), Layout((2, 8), (4, 8))]
    assert layout[1] == Layout((2, 8), (4, 8))
    assert list(Layout(4, 2)) == [Layout(4, 2)]
    with pytest.raises(LayoutError):
        get(layout, 2)


def test_results_print_in_the_notation() -> None:
    assert repr(get_shape(Layout((4,), (1,)))) == "(4)"
    assert repr(get_stride(make_layout((4, (2, 8))))) == "(1,(4,8))"
    assert repr(make_coord(None, (1, None))) == "(*,(1,*))"
    assert repr(make_tile(8, (2, None))) == "[8|[2|*]]"


def test_every_public_function_shows_an_example() -> None:
    functions = [getattr(flydsl.layout, name) for name in flydsl.layout.__all__]
    assert not [f.__name__ for f in functions if callable(f) and not isinstance(f, type) and ">>>" not in f.__doc__]


def test_a_single_mode_left_open_loses_its_parentheses() -> None:
    layout = Layout((2, (3, 4)), (1, (2, 6)))
    assert slice(layout, (0, None)) == Layout((3, 4), (2, 6))
    assert slice(layout, (None, (0, None))) == Layout((2, 4), (1, 6))
    assert slice(layout, None) == layout
    assert slice((2, (3, 4)), (1, 2)) == ()
    assert size(slice(layout, (0, 0))) == 1
    assert dice(layout, (None, (0, None))) == Layout(3, 2)


def test_slicing_a_composed_layout_keeps_where_it_begins() -> None:
    composed = make_composed_layout(Swizzle(2, 1, 3), 4, Layout((8, 8), (8, 1)))
    row = slice(composed, (3, None))
    assert [row(i) for i in range(8)] == [composed(3, i) for i in range(8)]


def test_recasting_a_swizzled_layout_moves_the_same_memory() -> None:
    halves = make_composed_layout(Swizzle(2, 3, 3), 0, Layout((8, 64), (64, 1)))
    octets = recast_layout(halves, 16, 8)
    assert str(octets) == "S<2,4,3> o 0 o (8,128):(128,1)"
    assert recast_layout(octets, 8, 16) == halves
    for i in range(8):
        for j in range(64):
            assert octets(i, 2 * j) == 2 * halves(i, j)
    with pytest.raises(LayoutError, match="powers of two"):
        recast_layout(halves, 16, 48)


def test_a_coordinate_with_more_modes_than_a_leaf() -> None:
    """A tile that fills a mode leaves it without further modes: they count as modes of size 1."""
    layout = parse("(4,2):(1,4)")
    assert str(slice(layout, (None, (None, 0)))) == "(4,2):(1,4)"
    assert str(slice(layout, (None, (1, 0)))) == "4:1"
    assert slice_and_offset((None, (1, 0)), layout)[1] == 4
    assert slice((4, 2), ((None, 0), 1)) == 4
    for wrong in ((None, (None, 1)), (None, (0, None)), (None, (None, (0, 0)))):
        with pytest.raises(LayoutError, match="does not fit 2"):
            slice(layout, wrong)
