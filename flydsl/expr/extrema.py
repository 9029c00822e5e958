"""The larger and the smaller of two values, for operands of any type: Python's `max` and `min` would branch."""

from __future__ import annotations

from typing import Any

from flydsl.expr import arith
from flydsl.expr.elementwise import like, wrapped
from flydsl.expr.promotion import check_numbers, common_type

__all__ = ["max", "min"]


def max(lhs: Any, rhs: Any) -> Any:
    """The larger of two scalars, or of two vectors element by element; NaN if either is.

    Operands of different types meet in a common one, as those of `+` do.
    """
    return _extremum("max", lhs, rhs)


def min(lhs: Any, rhs: Any) -> Any:
    """The smaller of two scalars, or of two vectors element by element; NaN if either is."""
    return _extremum("min", lhs, rhs)


def _extremum(which: str, lhs: Any, rhs: Any) -> Any:
    left, right = wrapped(lhs), wrapped(rhs)
    dtype = common_type("select", left, right)
    check_numbers("select", dtype, left, right)
    suffix = "imumf" if dtype.is_float else "si" if dtype.signed else "ui"
    return getattr(arith, which + suffix)(like(left, dtype, right), like(right, dtype, left))
