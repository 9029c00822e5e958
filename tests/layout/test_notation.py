"""The notation is read as it is printed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from flydsl.errors import LayoutError
from flydsl.layout import Basis, ComposedLayout, Dynamic, Layout, Swizzle, Tile, parse, to_text

TEXTS = [
    "4",
    "-4",
    "?",
    "?{div=4}",
    "?{i64}",
    "?{i64 div=8}",
    "*",
    "2E0",
    "1E0E1",
    "?{div=2}E1",
    "()",
    "(8)",
    "(4,(2,*),(8))",
    "8:1",
    "():()",
    "(8):(1)",
    "((8,24),(?,?)):((?{i64},1),(?{i64 div=8},24))",
    "(4,(2,8)):(1E0,(1E1E0,1E1E1))",
    "S<3,3,3>",
    "S<2,0,-2>",
    "S<3,3,3> o 0 o (8,64):(64,1)",
    "(4,2):(2,1) o ?{div=4} o 8:1",
    "[]",
    "[8|24]",
    "[*|(4,2):(1,8)|[2|*]]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_printed_text_is_read_back(text: str) -> None:
    value = parse(text)
    assert to_text(value) == text
    assert str(value) == text or value is None
    assert parse(to_text(value)) == value
    assert parse(text.replace(",", " , ").replace(":", " :  ").replace("|", " | ")) == value


def test_the_values_are_the_ones_meant() -> None:
    assert parse("(4,?{i64 div=8})") == (4, Dynamic(64, 8))
    assert parse("(4,2):(1E1,?)") == Layout((4, 2), (Basis(1, (1,)), Dynamic()))
    assert parse("S<3,3,3> o 7 o 8:1") == ComposedLayout(Swizzle(3, 3, 3), 7, Layout(8, 1))
    assert parse("[8|*]") == Tile((8, None))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("(4,x)", 4),
        ("(4,8", 5),
        ("4:1 2", 5),
        ("S<1,2>", 6),
        ("?{i32}", 3),
        ("[4,2]", 3),
        ("(4 8)", 4),
        ("8:*", 3),
        ("", 1),
        ("\u00e9", 1),
        ("4" * 5000, 4001),
    ],
)
def test_errors_give_the_place(text: str, column: int) -> None:
    with pytest.raises(LayoutError, match=f"at column {column}"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["(4,8):(1)", "0:1", "9" * 30, "?{div=0}", "S<3,0,0>", "(" * 40, "1E0 o 0 o 8:1", "1E-1"]
)
def test_well_formed_but_meaningless(text: str) -> None:
    with pytest.raises(LayoutError):
        parse(text)


def random_value(source: random.Random, depth: int = 3) -> Any:
    if depth and source.random() < 0.6:
        return tuple(random_value(source, depth - 1) for _ in range(source.randint(0, 3)))
    number = source.choice([source.randint(-9, 99), Dynamic(source.choice([32, 64]), source.choice([1, 2, 24]))])
    return source.choice([number, number, None, Basis(number, tuple(source.choices(range(4), k=2)))])


def test_random_tuples_come_back() -> None:
    source = random.Random(5)
    for _ in range(500):
        value = random_value(source)
        assert parse(to_text(value)) == value
