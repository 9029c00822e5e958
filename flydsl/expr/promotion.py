"""The common type of an operator's operands, and numbers that have no place in it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.elementwise import check_right, static_integer
from flydsl.expr.numeric import (
    ArithValue,
    Boolean,
    Float32,
    Float64,
    Index,
    Int32,
    Integer,
    Numeric,
    as_numeric,
    is_python_number,
)

_DIVISIONS = {"floordiv", "mod"}
_SHIFTS = {"shl", "shr"}
_BITWISE = {"and", "or", "xor"}
# Operations that take a Boolean as the number 0 or 1.
_COUNTING = {"add", "sub", "mul", "div", "pow", *_DIVISIONS, *_SHIFTS}
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "pow": "**", "select": "select",
}  # fmt: skip


def common_type(operation: str, left: Any, right: Any) -> type[Numeric]:
    """The scalar type that an operation's operands are converted to."""
    types = [value.dtype for value in (left, right) if isinstance(value, ArithValue)]
    types = types or [as_numeric(value).dtype for value in (left, right)]
    python = [value for value in (left, right) if is_python_number(value)]
    dtype = types[0] if len(types) == 1 else wider(*types)
    if not dtype.is_float and any(not isinstance(value, Integral) for value in python):
        dtype = Float32
    elif dtype is Boolean and any(not isinstance(value, bool) for value in python):
        dtype = Int32
    return common_type_of(operation, dtype)


def common_type_of(operation: str, dtype: type[Numeric]) -> type[Numeric]:
    """The scalar type that an operation computes in where both operands are of one type."""
    if dtype is Boolean and operation in _COUNTING:
        dtype = Int32
    if operation == "div" and not dtype.is_float:
        return Float64 if dtype.width >= 64 else Float32
    return dtype


def wider(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The common type of two: float over integer, then Index, then the wider, then the unsigned."""
    if left.is_float and right.is_float and left.width == right.width and left is not right:
        return Float32
    return max((left, right), key=lambda t: (t.is_float, t is Index, t.width, not t.signed))


def check_numbers(operation: str, dtype: type[Numeric], left: Any, right: Any) -> int | None:
    """Refuse numbers known while tracing that the operation has no result for.

    Returns the right operand where it is such an integer.
    """
    for value in (left, right):
        if isinstance(value, Integral) and not _fits(operation, dtype, int(value)):
            raise ArgumentError(
                f"{value} is not a value of {dtype.__name__}, the type of the other operand of {SYMBOLS[operation]}",
                at=user_location(),
                hint="convert the other operand to a wider type first, for example with .to(fx.Int64)",
            )
    number = static_integer(right)
    if number is not None and not dtype.is_float:
        check_right(SYMBOLS[operation], operation in _DIVISIONS, operation in _SHIFTS, dtype, number)
    return number


def _fits(operation: str, dtype: type[Numeric], number: int) -> bool:
    if not issubclass(dtype, Integer) or dtype.fits(number):
        return True
    # In bitwise operations a number such as 0xFFFFFFFF or -1 stands for its bits.
    return operation in _BITWISE and -(1 << (dtype.width - 1)) <= number < 1 << dtype.width
