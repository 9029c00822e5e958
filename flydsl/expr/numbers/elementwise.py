"""Helpers for operations on scalars and vectors: convert operands to `ir.Value`s of one type, and wrap the results."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from numbers import Integral
from typing import Any

from mlir import ir

from flydsl.dialect.elements import ARITHMETIC_FLOATS
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.fastmath_flags import fastmath_attribute
from flydsl.expr.numbers.vector_value import Vector, broadcast_shape
from flydsl.expr.numeric import (
    Boolean,
    Integer,
    Numeric,
    as_numeric,
    bare_like,
    element_of,
    is_python_number,
    wrap_scalar,
)
from flydsl.expr.tracing.emit import emit


def ir_value_of(value: Any) -> ir.Value:
    """A scalar or vector, or a Python number, as an `ir.Value`."""
    return value if isinstance(value, ir.Value) else as_numeric(value).ir_value()


def arith_result(value: ir.Value, dtype: type[Numeric] | None = None, shape: Any = None) -> Any:
    """A result as a scalar or Vector.

    dtype: the operand's type, kept where the MLIR type does not tell signed from unsigned. shape: the operand's.
    """
    keeps = dtype is not None and dtype.ir_type == element_of(value)
    if isinstance(value.type, ir.VectorType):
        return Vector(value, shape, dtype if keeps else None)
    return dtype.of(value) if dtype is not None and keeps else wrap_scalar(value)


def shape_of(*values: Any) -> Any:
    """The shape of the first Vector among operands, or None if there is none."""
    return next((value.shape for value in values if isinstance(value, Vector)), None)


def broadcast_together(left: Any, right: Any) -> tuple[Any, Any]:
    """Two operands broadcast to one shape, if both are vectors that allow it."""
    if not (isinstance(left, Vector) and isinstance(right, Vector)) or left.shape == right.shape:
        return left, right
    shape = broadcast_shape(left.shape, right.shape)
    return (left, right) if shape is None else (left.broadcast_to(shape), right.broadcast_to(shape))


def check_kind(name: str, value: ir.Value, wants_float: bool) -> None:
    """Raise ArgumentError unless the elements are integers, or floats that support arithmetic."""
    element = element_of(value)
    if wants_float and isinstance(element, ir.FloatType) and str(element) not in ARITHMETIC_FLOATS:
        raise argument_error(
            f"{name} of {value.type}: {element} is a format to store, without arithmetic",
            "convert it first: value.to(fx.Float32)",
        )
    if isinstance(element, ir.FloatType) != wants_float:
        raise argument_error(
            f"{name} takes {'floats' if wants_float else 'integers'}, not {value.type}",
            f"convert it: .to({'fx.Float32' if wants_float else 'fx.Int32'}); "
            "the operators + - * / choose the operation by the operand types",
        )


def number_like(value: Any, other: Any) -> Any:
    """`value`, or if it is a Python number, that number with the other operand's type and shape."""
    if not is_python_number(value):
        return value
    if not isinstance(other, ArithValue):
        return as_numeric(value)
    return converted_like(other.dtype.exactly(value), other.dtype, other)


def check_operands(name: str, lhs: ir.Value, rhs: ir.Value, wants_float: bool) -> None:
    """Raise ArgumentError unless two operands have one type, of floats or of integers."""
    if lhs.type != rhs.type:
        raise argument_error(
            f"{name} of {lhs.type} and {rhs.type}: the types differ",
            "convert one of them, for example with .to(fx.Float32)"
            if element_of(lhs) != element_of(rhs)
            else "vectors need one shape: v[i] takes an element, v.reshape(...) and v.broadcast_to(...) change shapes",
        )
    check_kind(name, lhs, wants_float)


_OVERFLOWS = ("none", "nsw", "nuw")


def overflow_attribute(flags: Any) -> dict[str, ir.Attribute]:
    """The attributes of a promise that integers do not overflow: None, "nsw" (signed), "nuw" (unsigned), "nsw,nuw"."""
    if flags is None:
        return {}
    if isinstance(flags, ir.Attribute):
        return {"overflowFlags": flags}
    names = [name.strip() for name in str(flags).replace("|", ",").split(",")]
    if any(name not in _OVERFLOWS for name in names):
        raise argument_error(
            f"there are no overflow_flags {flags!r}", f"join some of these by commas: {', '.join(_OVERFLOWS)}"
        )
    return {"overflowFlags": ir.Attribute.parse(f"#arith.overflow<{', '.join(names)}>")}


def emit_binary(name: str, left: Any, right: Any, fastmath: Any = None, overflow_flags: Any = None) -> Any:
    """Emit `arith.<name>` on two operands of one type; a Python number takes the other's type."""
    left, right = from_ir(left), from_ir(right)
    number = static_integer(right)
    left, right = broadcast_together(number_like(left, right), number_like(right, left))
    lhs, rhs = ir_value_of(left), ir_value_of(right)
    check_operands(f"arith.{name}", lhs, rhs, name.endswith("f"))
    if number is not None:
        divides = name.startswith(("div", "rem", "floordiv", "ceildiv"))
        check_right(f"arith.{name}", divides, name in ("shli", "shrsi", "shrui"), left.dtype, number)
    result = emit(
        f"arith.{name}", [lhs, rhs], [lhs.type], fastmath_attribute(fastmath) | overflow_attribute(overflow_flags)
    ).result
    return bare_like(arith_result(result, dtype_of(left), shape_of(left)), left, right)


after_operation: ContextVar[Callable[[str, Any, Any, Any], None] | None] = ContextVar("flydsl_after", default=None)
"""A function that is called after each operator of two values: its name in `arith`, the operands, and the result."""


def emit_alike(name: str, left: ArithValue, right: ArithValue) -> Any:
    """Emit `arith.<name>` on two operands that already have one type and shape, supported by the operation."""
    lhs = left.ir_value()
    made = emit(f"arith.{name}", (lhs, right.ir_value()), (lhs.type,)).result
    result = Vector(made, left.shape, left.dtype) if isinstance(left, Vector) else left.dtype.of(made)
    after = after_operation.get()
    if after is not None:
        after(name, left, right, result)
    return result


def is_operand(value: Any) -> bool:
    """True if operators take this value."""
    return isinstance(value, ArithValue | ir.Value) or is_python_number(value)


def from_ir(value: Any) -> Any:
    """A bare `ir.Value` as a DSL value; anything else unchanged."""
    return as_numeric(value) if isinstance(value, ir.Value) else value


def static_integer(value: Any) -> int | None:
    """An integer that is known while tracing, or None for anything else."""
    if isinstance(value, Numeric) and value.is_static:
        value = value.value
    return int(value) if isinstance(value, Integral) else None


def check_right(symbol: str, divides: bool, shifts: bool, dtype: type[Numeric], number: int) -> None:
    """Raise ArgumentError for a static right operand without a result: division by zero, or a too large shift."""
    if divides and number == 0:
        raise argument_error(
            f"{symbol} of a {dtype.__name__} by zero",
            "a divisor of run time gives a result for 0, too; this one is known to be 0",
        )
    if shifts and not 0 <= number < dtype.width:
        raise argument_error(
            f"{symbol} of a {dtype.__name__} by {number}: it has {dtype.width} bits", f"shift by 0 to {dtype.width - 1}"
        )


def converted_like(value: Any, dtype: type[Numeric], other: Any) -> Any:
    """`value` as `dtype`; a scalar beside a vector becomes a vector."""
    if isinstance(value, Vector):
        return value.to(dtype)
    if isinstance(value, Integral) and issubclass(dtype, Integer) and dtype is not Boolean:
        value = dtype.wrapped_to_width(int(value))
    scalar = value if isinstance(value, Numeric) and value.dtype is dtype else dtype.exactly(value)
    return Vector.filled(other.shape, scalar, dtype) if isinstance(other, Vector) else scalar


def dtype_of(value: Any) -> type[Numeric] | None:
    """The scalar type of a DSL value, or None for a bare `ir.Value`."""
    return value.dtype if isinstance(value, ArithValue) else None


def type_like(value: ir.Value, dtype: type[Numeric]) -> ir.Type:
    """The type with a value's shape and elements of a scalar type."""
    if isinstance(value.type, ir.VectorType):
        return ir.VectorType.get(value.type.shape, dtype.ir_type)
    return dtype.ir_type
