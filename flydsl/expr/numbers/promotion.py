"""The common type of an operator's operands, and checks of numbers that do not fit it.

The rules are FlyDSL's. Of scalars:

- a Python `int` is Int32, or Int64 where it does not fit; a `float` is Float32; a `bool` Boolean
- Booleans count as Int32 in sums, products and shifts
- a float wins over an integer: `h * 2` of a Float16 is Float16
- the wider wins: `fx.Int8(100) + 100` is an Int32 of 200, `h * 0.1` is Float32. Two of one type keep it, so the sum
  of two Int8 is an Int8, unlike in C. Float16 beside BFloat16 is Float16; other floats of one width meet in Float32
- of integers of one width the unsigned wins, as in C, and Index over all others
- `/` of integers is Float32, above 32 bits Float64; of an Index it is the unsigned quotient, an Index

Bare values stay as narrow as they are: beside one, a Python number takes its type, and so is the result of two of one
type. `arith.trunci(T.i8, x) + 100` is an Int8, `x & 0xFFFF0000` of a bare i32 one. Their integers have no sign of their
own: `>>` shifts zeros in, while comparisons and division take them as signed. Bare are an `ir.Value`, `ArithValue(x)`,
casts to an MLIR type, and what functions of `fx.arith`, `fx.math`, `fx.vector`, `fx.rocdl` and `fx.buffer_ops` give, as
far as their operands are. Values of the DSL (`fx.Int32(x)`, `tensor[i]`, `vec[i]`) are not. Of an operator, the left
operand decides.

A vector keeps its element type beside numbers and scalars: `v * 0.1` of Float16 stays Float16, of Int8 stays Int8.
Beside a float, an integer vector becomes a vector of floats; beside a wider integer scalar, one of that type. Two
vectors follow the rules of scalars.

`~x`, `-x` and `abs(x)` keep the type. `fx.arith.select`, `fx.max` and their like take two values of one type; there
a Python number takes the other's.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.elementwise import check_right, static_integer
from flydsl.expr.numeric import (
    ArithValue,
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Index,
    Int32,
    Integer,
    Numeric,
    as_numeric,
    is_python_number,
)

DIVISIONS = {"div", "floordiv", "mod"}
_SHIFTS = {"shl", "shr"}
_BITWISE = {"and", "or", "xor"}
# Operations that take a Boolean as the number 0 or 1.
_COUNTING = {"add", "sub", "mul", "pow", *DIVISIONS, *_SHIFTS}
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "pow": "**", "select": "select",
}  # fmt: skip


def common_type(operation: str, left: Any, right: Any) -> type[Numeric]:
    """The scalar type that an operation's operands are converted to."""
    return common_type_of(operation, wider(*_types(operation, left, right)))


def common_type_of(operation: str, dtype: type[Numeric]) -> type[Numeric]:
    """The scalar type that an operation computes in if both operands have one type."""
    if dtype is Boolean and operation in _COUNTING:
        dtype = Int32
    if operation != "div" or dtype.is_float or dtype is Index:
        return dtype
    return Float64 if dtype.width > 32 else Float32


def wider(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The common type of two. Float wins over integer, then Index, then the wider, then the unsigned."""
    if left.is_float and right.is_float and left.width == right.width and left is not right:
        return Float16 if {left, right} == {Float16, BFloat16} else Float32
    return max((left, right), key=lambda t: (t.is_float, t is Index, t.width, not t.signed))


def promote(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    """The type that an operator gives for scalars of two types; under FlyDSL's name `Numeric.promote`.

    Raises ArgumentError for anything but scalar types.
    """
    for given in (a, b):
        if not (isinstance(given, type) and issubclass(given, Numeric)):
            raise argument_error(
                f"promote({a!r}, {b!r}): {given!r} is not a scalar type", "pass fx.Int32 or fx.Float16, for example"
            )
    return wider(a, b)


def _types(operation: str, left: Any, right: Any) -> tuple[type[Numeric], type[Numeric]]:
    """The type that each operand is treated as."""
    vectors = [isinstance(value, ArithValue) and not isinstance(value, Numeric) for value in (left, right)]
    if all(vectors):
        return left.dtype, right.dtype
    if any(vectors):
        vector, scalar = (left, right) if vectors[0] else (right, left)
        return vector.dtype, _beside_vector(vector.dtype, scalar)
    if operation == "select" or stays_bare(left, right):
        return _alike(left, right), _alike(right, left)
    return _scalar_type(operation, left), _scalar_type(operation, right)


def _scalar_type(operation: str, value: Any) -> type[Numeric]:
    """The type of a scalar operand: a Boolean counts as Int32 where it is a number."""
    dtype = _dtype(value)
    return Int32 if dtype is Boolean and operation in _COUNTING else dtype


def stays_bare(left: Any, right: Any) -> bool:
    """True if an operator takes its operands as bare values, and gives one."""
    if is_python_number(left):
        left, right = right, left
    if not (isinstance(left, ArithValue) and left.bare):
        return False
    return is_python_number(right) or (isinstance(right, ArithValue) and right.dtype is left.dtype)


def _alike(value: Any, other: Any) -> type[Numeric]:
    """The operand's type. A Python number takes the other's type if that can hold its kind."""
    if not is_python_number(value) or not isinstance(other, ArithValue):
        return _dtype(value)
    return _beside_number(other.dtype, value)


def _beside_vector(dtype: type[Numeric], scalar: Any) -> type[Numeric]:
    """The type of a scalar operand beside a vector of `dtype`."""
    if is_python_number(scalar):
        return _beside_number(dtype, scalar)
    other = _dtype(scalar)
    fits = dtype.is_float or not (other.is_float or other.width > dtype.width or other is Index)
    return dtype if fits else other


def _beside_number(dtype: type[Numeric], number: Any) -> type[Numeric]:
    """The type of a Python number beside a value of type `dtype`."""
    if not dtype.is_float and not isinstance(number, Integral):
        return Float32
    return Int32 if dtype is Boolean and not isinstance(number, bool) else dtype


def _dtype(value: Any) -> type[Numeric]:
    return as_numeric(value).dtype


def check_numbers(operation: str, dtype: type[Numeric], left: Any, right: Any) -> int | None:
    """Refuse static numbers for which the operation has no result.

    Returns the right operand where it is such an integer.
    """
    for value in (left, right):
        stands_for_bits = operation in _BITWISE or stays_bare(left, right)
        if isinstance(value, Integral) and not _fits(dtype, int(value), stands_for_bits):
            raise argument_error(
                f"{value} is not a value of {dtype.__name__}, the type of the other operand of {SYMBOLS[operation]}",
                "convert the other operand to a wider type first, for example with .to(fx.Int64)",
            )
    number = static_integer(right)
    if number is not None and not dtype.is_float:
        check_right(SYMBOLS[operation], operation in DIVISIONS, operation in _SHIFTS, dtype, number)
    return number


def _fits(dtype: type[Numeric], number: int, stands_for_bits: bool) -> bool:
    """stands_for_bits: whether a number such as 0xFFFFFFFF or -1 means these bits, with or without a sign."""
    if not issubclass(dtype, Integer) or dtype.fits(number):
        return True
    return stands_for_bits and -(1 << (dtype.width - 1)) <= number < 1 << dtype.width


Numeric.promote = staticmethod(promote)  # type: ignore[attr-defined]
