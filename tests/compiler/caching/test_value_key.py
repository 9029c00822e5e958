from __future__ import annotations

import math

import pytest

from flydsl.compiler.caching.value_key import value_key
from flydsl.layout import make_layout


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (0.0, -0.0),
        (1, 1.0),
        ((1,), [1]),
        ([1], [True]),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        (object(), object()),
    ],
)
def test_values_that_trace_different_code_have_different_keys(a: object, b: object) -> None:
    assert value_key(a) != value_key(b)


@pytest.mark.parametrize("make", [lambda: [1, {"a": (2.5, {3})}], lambda: math.nan * 1, lambda: make_layout((4, 8))])
def test_equal_values_made_anew_have_the_same_key(make: object) -> None:
    assert callable(make)
    assert value_key(make()) == value_key(make())
    assert hash(value_key(make())) == hash(value_key(make()))


def test_a_form_is_a_copy() -> None:
    value = [1, [2]]
    before = value_key(value)
    value[1].append(3)  # type: ignore[union-attr]
    assert value_key(value) != before
