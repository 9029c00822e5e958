"""One implementation, three readings: ints, types (Dynamic), and values computed at run time (here: a recorded tree).

Random layouts of ints get some of their leaves replaced by leaves that are known only at run time. Then the type of
the result must be what is left of the computed result when its values are forgotten, and the computed result,
evaluated, must be the function that the ints give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flydsl.errors import LayoutError
from flydsl.layout import (
    ComposedLayout,
    Layout,
    left_inverse,
    logical_divide,
    make_layout,
    right_inverse,
    size,
    zipped_divide,
)
from tests.layout.operands import CASES, Maker, erase, evaluate, is_dynamic

pytestmark = pytest.mark.slow

MOST_POINTS = 50


def as_function(value: Any) -> Any:
    """A layout as its size and what it maps some ints to."""
    if isinstance(value, tuple):
        return tuple(map(as_function, value))
    if isinstance(value, (Layout, ComposedLayout)):
        count = size(value)
        return count, [value(i) for i in range(0, count, -(-count // MOST_POINTS))]
    return value


def mode_sizes(layout: Layout | ComposedLayout) -> list[Any]:
    return [size(mode) for mode in make_layout(layout.shape)]


def is_inverse(side: Callable[..., Any], inverse: Layout, layout: Layout) -> bool:
    first, second = (layout, inverse) if side is left_inverse else (inverse, layout)
    return all(second(first(i)) == i for i in range(min(size(first), MOST_POINTS)))


ROUNDS = 200
FEWEST_DECIDED = 10  # of ROUNDS; the others are refused because they are not decided before run time


def attempt(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    try:
        return function(*operands)
    except LayoutError:
        return None


@pytest.mark.parametrize("name", CASES)
def test_types_and_values_agree_with_ints(name: str) -> None:
    function, operands_of = CASES[name]
    make = Maker(seed=len(name))
    decided = 0
    for _ in range(ROUNDS):
        operands = operands_of(make, make.layout())
        of_types = attempt(function, erase(operands))
        of_values = attempt(function, operands)
        assert (of_types is None) == (of_values is None), f"one reading refuses {operands}"
        if of_types is None:
            continue
        assert erase(of_values) == of_types, f"{function.__name__}{operands}"
        of_ints = attempt(function, evaluate(operands))
        if of_ints is None:
            continue  # what the ints show not to fit is not known to misfit before run time
        evaluated = evaluate(of_values)
        if function in (left_inverse, right_inverse):  # less is known, so what is found may be another one
            assert is_inverse(function, evaluated, evaluate(operands[0]))
        else:
            assert as_function(evaluated) == as_function(of_ints), f"{function.__name__}{evaluate(operands)}"
        if function in (logical_divide, zipped_divide):
            assert mode_sizes(evaluated) == mode_sizes(of_ints)
        decided += is_dynamic(operands)
    assert decided >= FEWEST_DECIDED, f"only {decided} of {ROUNDS} were decided"
