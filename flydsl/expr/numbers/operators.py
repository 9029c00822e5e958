"""Python's operators on scalars and vectors, and the operations that they emit.

Operands may differ in type; `flydsl.expr.numbers.promotion` has the rules for their common type. `/` is a float
division and `//` rounds down. `%` has the sign of the dividend, as in C and on the machine: `-7 % 3` is -1; on floats
it is `fmod`. (Python's own numbers, such as those of `range_constexpr`, follow Python: `-7 % 3` is 2.) Divisions,
comparisons and `>>` take an Index as a number without a sign. `**` of floats is `math.powf` or, by an integer,
`math.fpowi`; of integers `math.ipowi`.

A shift uses only the low bits of the amount, as the hardware does: `x << 33` of 32 bits is `x << 1`.

Integer division by zero has a result where the divisor is a runtime value: `x // 0` is `x` and `x % 0` is 0. The
smallest number `// -1` is itself, and `% -1` is 0. Division by a zero that is known at compile time is an error.

A runtime index past a register tensor or vector, or a negative one, is that of the last element; where LLVM knows that
the index is inside, this costs nothing. An index that is known at compile time and outside is an error. A read of
registers that nothing wrote is one, too: see `make_rmem_tensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, reduce
from math import copysign
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr import arith, math
from flydsl.expr.arith import CmpFPredicate, CmpIPredicate
from flydsl.expr.numbers.arith_value import ArithValue, functions
from flydsl.expr.numbers.elementwise import converted_like, emit_alike, emit_binary, from_ir, is_operand, static_integer
from flydsl.expr.numbers.promotion import DIVISIONS, SYMBOLS, check_numbers, common_type, common_type_of, stays_bare
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import (
    BFloat16,
    Boolean,
    Float32,
    Index,
    Int32,
    Numeric,
    Uint16,
    Uint32,
    as_numeric,
    bare_like,
    has_arithmetic,
    is_python_number,
)

if TYPE_CHECKING:
    from flydsl.expr.kinds import Items, Result, Value

# Operator -> the operation for floats, signed and unsigned integers; None where there is none, or it takes several.
# Of signed integers only Index has `/`.
_OPERATIONS = {
    "add": ("addf", "addi", "addi"),
    "sub": ("subf", "subi", "subi"),
    "mul": ("mulf", "muli", "muli"),
    "div": ("divf", None, "divui"),
    "floordiv": (None, None, "divui"),
    "mod": (None, None, "remui"),
    "and": (None, "andi", "andi"),
    "or": (None, "ori", "ori"),
    "xor": (None, "xori", "xori"),
    "shl": (None, "shli", "shli"),
    "shr": (None, "shrsi", "shrui"),
}
# Comparison -> the predicate for floats (ordered, but `!=` is true for NaN), signed and unsigned integers.
_PREDICATES = {
    "eq": (CmpFPredicate.OEQ, CmpIPredicate.eq, CmpIPredicate.eq),
    "ne": (CmpFPredicate.UNE, CmpIPredicate.ne, CmpIPredicate.ne),
    "lt": (CmpFPredicate.OLT, CmpIPredicate.slt, CmpIPredicate.ult),
    "le": (CmpFPredicate.OLE, CmpIPredicate.sle, CmpIPredicate.ule),
    "gt": (CmpFPredicate.OGT, CmpIPredicate.sgt, CmpIPredicate.ugt),
    "ge": (CmpFPredicate.OGE, CmpIPredicate.sge, CmpIPredicate.uge),
}

_INDEX_BITS = (1 << 64) - 1
_WITHOUT_SIGN = frozenset({*DIVISIONS, *_PREDICATES, "shr"})
"""The operations that take an Index as a number without a sign, as in FlyDSL."""
_PYTHON: dict[str, Callable[[Any, Any], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,  # of Index; of other integers it is one of floats
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def binary(operation: str, left: Any, right: Any) -> Any:
    """`left <operation> right` for an operator's operands."""
    left, right = from_ir(left), from_ir(right)
    if not stays_bare(left, right):
        return _typed(operation, left, right)
    result = _logical_shift(left, right) if operation == "shr" else _typed(operation, left, right)
    return bare_like(result)


def _logical_shift(left: Any, right: Any) -> Any:
    dtype = common_type("shr", left, right)
    check_numbers("shr", dtype, left, right)
    return emit_binary("shrui", converted_like(left, dtype, right), converted_like(right, dtype, left))


def _typed(operation: str, left: Any, right: Any) -> Any:
    if _are_alike(left, right) and (name := _one_operation(operation, left.dtype)) is not None:
        return emit_alike(name, left, right)
    if not is_operand(left) or not is_operand(right):
        return _no_operand(operation, left, right)
    if operation == "pow":
        return _power(left, right)
    dtype = common_type(operation, left, right)
    number = check_numbers(operation, dtype, left, right)
    left, right = converted_like(left, dtype, right), converted_like(right, dtype, left)
    if isinstance(left, Numeric) and isinstance(right, Numeric) and left.is_static and right.is_static:
        folded = _fold(operation, dtype, left.value, right.value)
        if folded is not None:
            return folded
    if operation in _PREDICATES:
        return _compare(operation, dtype, left, right)
    if operation in DIVISIONS and not dtype.is_float and _has_sign(operation, dtype):
        return _signed_division(operation, left, right, number)
    if operation == "floordiv" and dtype.is_float:
        return math.floor(arith.divf(left, right))
    if operation == "mod" and dtype.is_float:
        return _float_remainder(left, right, dtype)
    name = _one_operation(operation, dtype)
    if name is not None and isinstance(left, Numeric):
        return emit_alike(name, left, right)
    return emit_binary(name or _operation(operation, dtype), left, right)


def _are_alike(left: Any, right: Any) -> bool:
    """True if two operands are runtime values of one type and shape."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Vector):
        return left.dtype is right.dtype and left.shape == right.shape
    return isinstance(left, Numeric) and isinstance(left.value, ir.Value) and isinstance(right.value, ir.Value)


@cache
def _one_operation(operation: str, dtype: type[Numeric]) -> str | None:
    """The single arith operation of an operator on two values of a type; None if it takes several, or is an error."""
    if operation not in _OPERATIONS or not has_arithmetic(dtype):
        return None
    if common_type_of(operation, dtype) is not dtype:
        return None
    return _OPERATIONS[operation][_column(operation, dtype)]


def _operation(operation: str, dtype: type[Numeric]) -> str:
    name = _OPERATIONS[operation][_column(operation, dtype)]
    if name is None:
        raise argument_error(
            f"{dtype.__name__} has no operator {SYMBOLS[operation]}",
            "it is one of integers: convert with .to(fx.Int32)"
            if dtype.is_float
            else "convert first, for example with .to(fx.Float32)",
        )
    return name


def _column(operation: str, dtype: type[Numeric]) -> int:
    return 0 if dtype.is_float else 1 if _has_sign(operation, dtype) else 2


def _has_sign(operation: str, dtype: type[Numeric]) -> bool:
    return dtype.signed and not (dtype is Index and operation in _WITHOUT_SIGN)


def _float_remainder(left: Any, right: Any, dtype: type[Numeric]) -> Any:
    """`fmod`, which is exact in Float32 too. LLVM narrows it again, and cannot expand it in BFloat16.

    There the result of Float32 loses its lower half, which is zero.
    """
    if dtype is not BFloat16:
        return emit_binary("remf", left, right)
    wide = emit_binary("remf", left.to(Float32), right.to(Float32))
    return (wide.bitcast(Uint32) >> 16).to(Uint16).bitcast(BFloat16)


def _power(left: Any, right: Any) -> Any:
    """`left ** right`; a Python integer as the exponent stays an integer."""
    if not isinstance(left, ArithValue):
        left = as_numeric(left)
    exponent = right if isinstance(right, ArithValue) else as_numeric(right)
    if left.dtype.is_float and not exponent.dtype.is_float:
        return math.fpowi(left, right if is_python_number(right) else exponent)
    dtype = common_type("pow", left, right)
    check_numbers("pow", dtype, left, right)
    number = static_integer(right)
    if not dtype.is_float and number is not None and number < 0:
        raise argument_error(f"an integer to the power of {number}", "convert it first: .to(fx.Float32)")
    left, right = converted_like(left, dtype, right), converted_like(right, dtype, left)
    if dtype.is_float:
        return math.powf(left, right)
    if isinstance(left, Numeric) and left.is_static and number is not None:
        return dtype(dtype.wrapped_to_width(pow(int(left.value), number, 1 << dtype.width)))  # type: ignore[attr-defined]
    return math.ipowi(left, right)


def absolute(value: Any) -> Any:
    """`abs(value)`; the smallest signed integer is returned unchanged."""
    if isinstance(value, Numeric) and value.is_static:
        if value.dtype.is_float:
            return value.dtype(abs(value.value))  # of -0.0, too
        return -value if value.value < 0 else value
    if value.dtype.is_float:
        return math.absf(value)
    return math.absi(value) if value.dtype.signed else value


def rounded(value: Any, function: str, digits: int | None = None) -> Any:
    """A float rounded to an integer by a function of `math`, in its own type; an integer unchanged."""
    if digits is not None:
        raise argument_error("round() of a traced value to digits", "scale, round, scale back")
    return getattr(math, function)(value) if value.dtype.is_float else value


def _no_operand(operation: str, left: Any, right: Any) -> Any:
    """Return NotImplemented. Refuse built-in objects, which cannot take over the operator; equality is identity."""
    other = right if isinstance(left, ArithValue) else left
    if type(other).__module__ == "builtins" and operation not in ("eq", "ne"):
        raise argument_error(
            f"{left!r} {SYMBOLS[operation]} {right!r}: {other!r} is not a number",
            "both sides are numbers: Python's or the DSL's",
        )
    return NotImplemented


def _fold(operation: str, dtype: type[Numeric], left: Any, right: Any) -> Any:
    """The result for two Python numbers, or None if it is left to the program, as arithmetic of floats is."""
    if operation not in (_PREDICATES if dtype.is_float else _PYTHON):
        return None
    if dtype is Index and operation in _WITHOUT_SIGN:
        left, right = left & _INDEX_BITS, right & _INDEX_BITS
    result = _PYTHON[operation](left, right)
    if operation in _PREDICATES:
        return Boolean(result)
    return dtype(result) if dtype is Boolean else dtype(dtype.wrapped_to_width(result))  # type: ignore[attr-defined]


def _compare(operation: str, dtype: type[Numeric], left: ArithValue, right: ArithValue) -> Any:
    of_floats, signed, unsigned = _PREDICATES[operation]
    if dtype.is_float:
        return arith.cmpf(of_floats, left, right)
    return arith.cmpi(signed if _has_sign(operation, dtype) else unsigned, left, right)


def _signed_division(operation: str, left: Any, right: Any, divisor: int | None) -> Any:
    """`//` and `%`. Division by a constant power of two is one shift, which rounds down.

    divisor: the right operand where it is known. By -1 the machine's division of the smallest integer is undefined;
    the negation wraps.
    """
    floor = operation == "floordiv"
    if divisor == 1:
        return left if floor else emit_binary("xori", left, left)
    if divisor == -1:
        return negate(left) if floor else emit_binary("xori", left, left)
    if floor and divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return arith.shrsi(left, divisor.bit_length() - 1)
    return arith.floordivsi(left, right) if floor else arith.remsi(left, right)


def negate(value: Any) -> Any:
    """`-value`, in its own type; for a Boolean an Int32."""
    static = isinstance(value, Numeric) and value.is_static
    if value.dtype.is_float:
        return value.dtype(-value.value) if static else arith.negf(value)
    value = value.to(Int32) if value.dtype is Boolean else value
    return value.dtype(value.dtype.wrapped_to_width(-value.value)) if static else arith.subi(0, value)


def inverted(value: Any) -> Any:
    """`~value`, in its own type."""
    if isinstance(value, Numeric) and value.is_static and not value.dtype.is_float:
        if value.dtype is Boolean:
            return Boolean(not value.value)
        return value.dtype(value.dtype.wrapped_to_width(~value.value))  # type: ignore[attr-defined]
    return arith.xori(value, True if value.dtype is Boolean else converted_like(-1, value.dtype, value))


# --- the larger and the smaller of two values, for which Python's `max` and `min` branch ------------------------------


def max(*values: Items) -> Result:
    """The largest of scalars, or of vectors element by element; NaN if any is. Lists stand for their elements.

    Operands of different types meet in a common one, as those of `+` do. Of numbers that are known while tracing the
    result is one, too.

    >>> max(3, 4, Int32(7)), min(1.5, 2)
    (Int32(7), Float32(1.5))
    """
    return _extremum_of("max", values)


def min(*values: Items) -> Result:
    """The smallest of scalars, or of vectors element by element; NaN if any is. See `max`."""
    return _extremum_of("min", values)


def _extremum_of(which: str, values: tuple[Any, ...]) -> Any:
    operands = _flattened(values)
    if not operands:
        raise argument_error(f"fx.{which}() of nothing", f"pass values: fx.{which}(a, b)")
    return reduce(partial(_extremum, which), operands) if len(operands) > 1 else as_numeric(operands[0])


def _flattened(values: Any) -> list[Any]:
    return [leaf for value in values for leaf in (_flattened(value) if isinstance(value, list | tuple) else [value])]


def _extremum(which: str, lhs: Any, rhs: Any) -> Any:
    left, right = from_ir(lhs), from_ir(rhs)
    dtype = common_type("extremum", left, right)
    check_numbers("extremum", dtype, left, right)
    left, right = converted_like(left, dtype, right), converted_like(right, dtype, left)
    if _are_known(left, right):
        return dtype(_known_extremum(which, left.value, right.value))
    suffix = "imumf" if dtype.is_float else "si" if dtype.signed else "ui"
    return getattr(arith, which + suffix)(left, right)


def _known_extremum(which: str, left: Any, right: Any) -> Any:
    """The larger or smaller of two numbers as the device has it: NaN wins over all, and +0 is larger than -0."""
    if left != left or right != right:
        return float("nan")
    if left == right == 0:
        is_left = (copysign(1, left) < 0) == (which == "min")
        return left if is_left else right
    return left if (left > right) == (which == "max") else right


def ceildiv(lhs: Value, rhs: Value) -> Result:
    """The integer quotient, rounded up, in the common type of the operands, as of `+`.

    Of numbers that are known while tracing the result is one, too. Raises ArgumentError for floats and Booleans, and
    for a divisor that is known to be zero.

    >>> ceildiv(7, 2), ceildiv(-7, 2)
    (Int32(4), Int32(-3))
    """
    left, right = from_ir(lhs), from_ir(rhs)
    dtype = common_type("and", left, right)  # where Booleans do not count as numbers
    if dtype.is_float or dtype is Boolean:
        raise argument_error(f"ceildiv of {dtype.__name__}", "it divides integers: convert with .to(fx.Int32)")
    check_numbers("floordiv", dtype, left, right)
    left, right = converted_like(left, dtype, right), converted_like(right, dtype, left)
    if _are_known(left, right):
        return dtype(-(-left.value // right.value))
    return (arith.ceildivsi if dtype.signed else arith.ceildivui)(left, right)


def _are_known(*values: Any) -> bool:
    return all(isinstance(value, Numeric) and value.is_static for value in values)


functions.binary = binary
functions.negate = negate
functions.absolute = absolute
functions.rounded = rounded
functions.inverted = inverted
