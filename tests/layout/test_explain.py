"""The steps of an operation: they are there, and they are what the operation does."""

from __future__ import annotations

from typing import Any

import pytest

import flydsl.layout
from flydsl.layout import Layout, complement, composition, explain, logical_divide, parse, size, to_text

EXPLAINED = [
    ("coalesce", ["(2,(1,6)):(1,(7,2))"]),
    ("composition", ["(6,2):(8,2)", "(4,3):(3,1)"]),
    ("composition", ["(8,4):(4,1)", "[4:2|2]"]),
    ("complement", ["(2,2):(1,6)", "24"]),
    ("complement", ["(2,2):(6,1)"]),
    ("right_inverse", ["(2,4):(4,1)"]),
    ("left_inverse", ["(2,4):(1,4)"]),
    ("logical_divide", ["24:2", "4:3"]),
    ("logical_divide", ["(8,24):(24,1)", "[4|*]"]),
    ("zipped_divide", ["(8,24):(24,1)", "[4|8]"]),
    ("tiled_divide", ["(8,24):(24,1)", "[4|8]"]),
    ("flat_divide", ["(8,24):(24,1)", "[4|8]"]),
    ("logical_product", ["(2,2):(4,1)", "6:1"]),
    ("zipped_product", ["(2,5):(5,1)", "(3,4):(1,3)"]),
    ("tiled_product", ["(2,5):(5,1)", "(3,4):(1,3)"]),
    ("flat_product", ["(2,5):(5,1)", "[3|4]"]),
    ("blocked_product", ["4:1", "(2,3):(1,2)"]),
    ("raked_product", ["(2,5):(5,1)", "(3,4):(1,3)"]),
    ("tile_to_shape", ["(8,4):(1,8)", "(16,12)", "(1,0)"]),
    ("tile_to_shape", ["8:1", "16"]),
    ("zipped_divide", ["S<2,0,2> o 0 o (16,32):(1,16)", "[2|4]"]),
]


@pytest.mark.parametrize(("name", "operands"), EXPLAINED)
def test_the_result_is_that_of_the_operation(name: str, operands: list[str]) -> None:
    arguments = [parse(text) for text in operands]
    function = getattr(flydsl.layout, name)
    explanation = explain(name, *arguments)
    assert explanation.result == function(*arguments)
    assert explain(function, *arguments) == explanation
    assert explanation.steps
    text = str(explanation)
    assert text.startswith(f"{name}({', '.join(operands)})")
    assert all(step.name in text and to_text(step.value) in text for step in explanation.steps)


def steps(name: str, *operands: Any) -> dict[str, Any]:
    return {step.name: step.value for step in explain(name, *operands).steps}


def test_the_steps_of_a_divide_make_its_result() -> None:
    a, b = Layout((4, 6), (6, 1)), Layout(4, 2)
    shown = steps("logical_divide", a, b)
    assert shown["B*"] == complement(b, size(a))
    assert composition(a, shown["(B,B*)"]) == logical_divide(a, b)
    assert list(logical_divide(a, b)) == [shown["A o B"], shown["A o B*"]]


def test_the_steps_of_a_composition_are_its_modes() -> None:
    a, b = Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))
    shown = steps("composition", a, b)
    assert [shown["A o B[0]"], shown["A o B[1]"]] == list(composition(a, b))


def test_steps_by_mode_say_which() -> None:
    shown = steps("zipped_divide", parse("(8,24):(24,1)"), parse("[4|8]"))
    assert shown["mode 0: A o B"] == Layout(4, 24)
    assert shown["mode 1: A o B*"] == Layout(3, 8)
