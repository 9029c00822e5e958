"""The elementary functions are as exact as they say, on numpy's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flydsl.simulator.arrays import Array
from flydsl.simulator.isa import elementary
from flydsl.simulator.lockstep.values import NumpyValues


def ulps(got: Array, expected: Array) -> float:
    """The largest difference in units of the last place of an f64."""
    return float(np.max(np.abs(got - expected) / np.spacing(np.abs(expected))))


@pytest.mark.parametrize(
    ("function", "reference", "low", "high"),
    [
        (elementary.exp2, np.exp2, -150, 150),
        (elementary.log2, np.log2, 1e-6, 0.6),
        (elementary.log2, np.log2, 1.6, 1e6),
    ],
)
def test_within_two_units_of_the_last_place(function: Any, reference: Any, low: float, high: float) -> None:
    x = np.random.default_rng(0).uniform(low, high, (1, 100_000))
    assert ulps(function(NumpyValues(), x), reference(x)) <= 3  # the reference itself is off by one


def test_the_logarithm_near_one_is_relatively_exact() -> None:
    x = 1 + np.random.default_rng(1).uniform(-1e-3, 1e-3, (1, 10_000))
    expected = np.log1p(x - 1) / math.log(2)
    assert ulps(elementary.log2(NumpyValues(), x), expected) <= 4


@pytest.mark.parametrize(("function", "shift"), [(elementary.sin_turns, 0.0), (elementary.cos_turns, 0.25)])
def test_sine_and_cosine_of_turns(function: Callable[..., Array], shift: float) -> None:
    x = np.random.default_rng(2).uniform(-256, 256, (1, 10_000))
    turns = np.array([[float((Fraction(v) + Fraction(shift)) % 1) for v in x[0]]])
    np.testing.assert_allclose(function(NumpyValues(), x), np.sin(2 * np.pi * turns), atol=1e-15)


def test_exact_where_the_result_is() -> None:
    whole = np.arange(-200.0, 200.0)[None]
    np.testing.assert_array_equal(elementary.exp2(NumpyValues(), whole), np.ldexp(1.0, whole.astype(int)))
    np.testing.assert_array_equal(elementary.log2(NumpyValues(), np.ldexp(1.0, whole.astype(int))), whole)


def test_special_numbers() -> None:
    x = np.array([[0.0, -0.0, math.inf, -math.inf, math.nan, -1.0]])
    b = NumpyValues()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(elementary.log2(b, x), [[-math.inf, -math.inf, math.inf, *[math.nan] * 3]])
        assert np.isnan(elementary.sin_turns(b, x)[0, 2:5]).all()
        np.testing.assert_array_equal(elementary.exp2(b, x).astype(np.float32), [[1, 1, math.inf, 0, math.nan, 0.5]])
