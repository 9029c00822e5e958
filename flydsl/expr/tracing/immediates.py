"""Numbers that are part of an instruction, and known at compile time for that."""

from __future__ import annotations

import operator
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Numeric, is_python_number

__all__ = ["immediate"]


def immediate(what: str, value: Any, low: int, high: int) -> int:
    """An integer encoded in the instruction. It must be known at compile time, and be from `low` to `high`."""
    number = _known_integer(value)
    if number is None and is_python_number(value):
        raise argument_error(f"{what}: {value!r} is not an integer", "pass a Python int")
    if number is None:
        raise argument_error(
            f"{what}: {value!r} is part of the instruction and must be known at compile time",
            "pass a Python int or an fx.Constexpr value",
        )
    if not low <= number <= high:
        raise argument_error(
            f"{what}: {number} is outside of {low} to {high}", "the field of the instruction holds no other number"
        )
    return number


def _known_integer(value: Any) -> int | None:
    if isinstance(value, Numeric) and value.is_static and not value.is_float:
        return int(value)
    if isinstance(value, Numeric):
        value = value.value
    if isinstance(value, ir.Value):
        return _constant_value(value)
    if isinstance(value, ir.IntegerAttr | ir.BoolAttr):
        return int(value.value)
    try:
        return operator.index(value)
    except (TypeError, ValueError):  # such as a class, or a tensor of several numbers
        return None


def _constant_value(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    attribute = owner.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None
