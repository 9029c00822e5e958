"""Conditions of branches: a Python truth value, or a Boolean of the program."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.expr.numeric import Boolean, Numeric, as_numeric


def as_condition(value: Any) -> bool | Boolean:
    """The truth of a value, as in Python's `if`: a bool if known at compile time, else a runtime Boolean.

    Raises TraceError for a vector, which has one truth value per element.
    """
    if isinstance(value, ir.Value):
        value = as_numeric(value)
    if isinstance(value, Numeric) and not value.is_static:
        return Boolean(value)
    return bool(value)
