"""The common type of an operator's operands, and checks of numbers that do not fit it.

The rules are those of FlyDSL 0.4.2 and 0.5.0, or of 0.2.2 where `flydsl.language` asks for them:

- a Python `int` is Int32, or Int64 where it does not fit; a `float` is Float32; a `bool` Boolean
- Booleans count as Int32 in sums and products, and where two are shifted
- a float beside an integer that has more bits becomes Float32, or Float64 if the integer has over 32: `h * 2` of a
  Float16 is Float32, a Float32 plus an Int64 is Float64
- the wider wins: `fx.Int8(100) + 100` is an Int32 of 200, `h * 0.1` is Float32. Two of one type keep it, so the sum
  of two Int8 is an Int8, unlike in C. Two floats of one width meet in Float32, such as Float16 and BFloat16
- of integers of one width the unsigned wins, as in C. Index counts as one of 64 bits without a sign
- `/` of integers is Float32, above 32 bits Float64; of an Index it is the unsigned quotient, an Index
- a vector's elements follow the same rules, beside numbers, scalars and vectors

In FlyDSL 0.2.2 operators are narrower:

- a float wins over every integer: `h * 2` of a Float16 is Float16, a Float32 plus an Int64 is Float32
- Float16 and BFloat16 give the type of the left one
- a vector keeps its element type beside numbers and scalars: `v * 0.1` of Float16 stays Float16, of Int8 stays Int8.
  Beside a float, an integer vector becomes a vector of floats; beside a wider integer scalar, one of that type

Bare scalars keep their type: a Python number beside one takes its type, and two of one type give that type.
`arith.trunci(T.i8, x) + 100` is an Int8, and `x & 0xFFFF0000` of a bare i32 is an i32. Bare integers have no sign of
their own: `>>` shifts zeros in, while comparisons and division take them as signed. An `ir.Value`, an `ArithValue(x)`
and a cast to an MLIR type are bare, and so are the results of functions of `fx.arith`, `fx.math`, `fx.vector`,
`fx.rocdl` and `fx.buffer_ops` if their operands are. Values of the DSL (`fx.Int32(x)`, `tensor[i]`, `vec[i]`) are not.
The left operand of an operator decides whether it computes with bare scalars.

`~x`, `-x` and `abs(x)` keep the type. `fx.arith.select` takes two values of one type; there a Python number takes the
other's.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from flydsl import env
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
# Operations whose result has the same bits whether a number such as -1 has a sign or not.
_MODULAR = {"and", "or", "xor", "add", "sub", "mul"}
# Operations that take a Boolean as the number 0 or 1; shifts and powers do so of two Booleans.
_COUNTING = {"add", "sub", "mul", "extremum", *DIVISIONS}
_COUNTING_TWO = {"pow", *_COUNTING, *_SHIFTS}
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "pow": "**", "select": "select", "extremum": "max and min",
}  # fmt: skip


def common_type(operation: str, left: Any, right: Any) -> type[Numeric]:
    """The scalar type that an operation's operands are converted to."""
    return common_type_of(operation, wider(*_types(operation, left, right)))


def common_type_of(operation: str, dtype: type[Numeric]) -> type[Numeric]:
    """The scalar type that an operation computes in if both operands have one type."""
    if dtype is Boolean and operation in _COUNTING_TWO:
        dtype = Int32
    return _float_for(dtype) if operation == "div" and not dtype.is_float and dtype is not Index else dtype


def _float_for(dtype: type[Numeric]) -> type[Numeric]:
    """The float in which an integer type is divided, or meets a float of fewer bits."""
    return Float64 if dtype.width > 32 else Float32


def wider(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The common type of two: the wider, or the unsigned of one width; a third for a float beside a wider integer."""
    if left is right:
        return left
    if left.is_float and right.is_float:
        return _wider_float(left, right)
    if not left.is_float and not right.is_float:
        return max((left, right), key=lambda t: (t.width, t is Index or not t.signed))
    number, integer = (left, right) if left.is_float else (right, left)
    return number if number.width >= integer.width or env.is_language_0_2_2() else _float_for(integer)


def _wider_float(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    if left.width != right.width:
        return left if left.width > right.width else right
    return left if env.is_language_0_2_2() and {left, right} == {Float16, BFloat16} else Float32


def promote(a: type[Numeric], b: type[Numeric]) -> type[Numeric]:
    """The type that an operator gives for scalars of two types; under FlyDSL's name `Numeric.promote`.

    Raises ArgumentError for anything but scalar types.
    """
    for given in (a, b):
        if not (isinstance(given, type) and issubclass(given, Numeric)):
            raise argument_error(
                f"promote takes scalar types, got {given!r}", "pass fx.Int32 or fx.Float16, for example"
            )
    return wider(a, b)


def _types(operation: str, left: Any, right: Any) -> tuple[type[Numeric], type[Numeric]]:
    """The type that each operand is treated as."""
    has_vector = _is_vector(left) or _is_vector(right)
    if has_vector and (env.is_language_0_2_2() or operation == "select"):
        return _kept_by_vector(left, right), _kept_by_vector(right, left)
    if operation == "select" or stays_bare(left, right):
        return _alike(left, right), _alike(right, left)
    if has_vector:
        left, right = _beside_bare(left, right), _beside_bare(right, left)
    return _scalar_type(operation, left), _scalar_type(operation, right)


def _is_vector(value: Any) -> bool:
    return isinstance(value, ArithValue) and not isinstance(value, Numeric)


def _kept_by_vector(value: Any, other: Any) -> type[Numeric]:
    """The type of an operand where a vector keeps its element type beside a scalar that the type can hold."""
    return _dtype(value) if _is_vector(value) else _beside_vector(other.dtype, value)


def _beside_bare(value: Any, other: Any) -> Any:
    """The operand that decides an operand's type: a bare scalar beside a vector takes that of the elements."""
    return other if isinstance(value, Numeric) and value.bare else value


def _scalar_type(operation: str, value: Any) -> type[Numeric]:
    """The type of an operand or its elements: a Boolean counts as Int32 where it is a number."""
    dtype = _dtype(value)
    return Int32 if dtype is Boolean and operation in _COUNTING else dtype


def stays_bare(left: Any, right: Any) -> bool:
    """True if an operator takes its operands as bare scalars, and gives one."""
    if is_python_number(left):
        left, right = right, left
    if not (isinstance(left, Numeric) and left.bare):
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
        stands_for_bits = operation in _MODULAR or stays_bare(left, right)
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
