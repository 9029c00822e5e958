"""Mathematical functions of scalars and vectors.

Each emits one operation of MLIR's `math` dialect, which the compiler turns into arithmetic and instructions without a
device library (`flydsl.passes.to_rocdl.math_functions`). Results of f32 and f64 are within 4 ulp for every argument;
those of f16 and bf16 are the rounded results of f32. Python numbers become Float32, or the type of the other operand.

fastmath: flags such as "afn" or "fast". With one of these two, exp, exp2, log, log2, log10, sqrt, rsqrt, sin, cos, tan
and powf of f32 become the bare instructions: a few ulp, without denormals, and sin and cos less exact the larger the
argument is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.arith_value import ArithValue, add_methods
from flydsl.expr.numbers.elementwise import (
    arith_result,
    check_operands,
    converted_like,
    ir_value_of,
    number_like,
    shape_of,
    type_like,
)
from flydsl.expr.numbers.fastmath_flags import fastmath_attribute
from flydsl.expr.numbers.rounding_mode import RoundingMode, require_nearest
from flydsl.expr.numeric import Boolean, Float32, Int32, as_numeric, bare_like, is_python_number
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit

if TYPE_CHECKING:
    from flydsl.expr.kinds import FastMath, Number, Value

__all__ = [
    "absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clampf",
    "copysign", "cos", "cosh", "ctlz", "ctpop", "cttz", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma",
    "fpowi", "ipowi", "isfinite", "isinf", "isnan", "isnormal", "log", "log1p", "log2", "log10", "powf", "round",
    "roundeven", "rsqrt", "sin", "sincos", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


def _operands(name: str, values: tuple[Any, ...], wants_float: bool) -> list[ir.Value]:
    """The operands as floats or integers of one type and shape. Python numbers take the type of the others."""
    typed = [as_numeric(value) for value in values if not is_python_number(value)]
    if not typed:
        typed = [(Float32 if wants_float else as_numeric)(values[0])]
    operands = [ir_value_of(number_like(value, typed[0])) for value in values]
    for operand in operands:
        check_operands(f"math.{name}", operands[0], operand, wants_float)
    return operands


def _emit(name: str, operands: list[ir.Value], results: list[ir.Type], fastmath: Any = None) -> ir.Operation:
    return emit(f"math.{name}", operands, results, fastmath_attribute(fastmath))


def _float_function(name: str, count: int, summary: str) -> Callable[..., Any]:
    def function(*values: Value, fastmath: FastMath = None) -> ArithValue:
        _check_count(name, values, count)
        operands = _operands(name, values, True)
        result = _emit(name, operands, [operands[0].type], fastmath).result
        return bare_like(arith_result(result, shape=shape_of(*values)), *values)

    return described(function, name, f"{summary}. Floats: scalars or vectors of one type.")


def _integer_function(name: str, count: int, summary: str) -> Callable[..., Any]:
    def function(*values: Value) -> ArithValue:
        _check_count(name, values, count)
        operands = _operands(name, values, False)
        dtype = next((value.dtype for value in values if isinstance(value, ArithValue)), None)
        result = _emit(name, operands, [operands[0].type]).result
        return bare_like(arith_result(result, dtype, shape_of(*values)), *values)

    return described(function, name, f"{summary}. Integers: scalars or vectors of one type.")


def _predicate(name: str, summary: str) -> Callable[..., Any]:
    def function(*values: Value, fastmath: FastMath = None) -> ArithValue:
        _check_count(name, values, 1)
        (operand,) = _operands(name, values, True)
        return arith_result(
            _emit(name, [operand], [type_like(operand, Boolean)], fastmath).result, shape=shape_of(*values)
        )

    return described(function, name, f"{summary}, as a Boolean.")


def _check_count(name: str, values: tuple[Any, ...], count: int) -> None:
    if len(values) != count:
        raise argument_error(
            f"math.{name} takes {count} operands, not {len(values)}",
            "pass scalars or vectors of one type, one for each operand",
        )


absf = _float_function("absf", 1, "magnitude, exact")
ceil = _float_function("ceil", 1, "rounded up, exact")
floor = _float_function("floor", 1, "rounded down, exact")
trunc = _float_function("trunc", 1, "rounded toward zero, exact")
round = _float_function("round", 1, "the nearest integer, halves away from zero, exact")
roundeven = _float_function("roundeven", 1, "the nearest integer, halves to even, exact")
exp = _float_function("exp", 1, "e^x, 2 ulp")
exp2 = _float_function("exp2", 1, "2^x, 2 ulp")
expm1 = _float_function("expm1", 1, "e^x - 1 without cancellation, 2 ulp")
log = _float_function("log", 1, "natural logarithm, 2 ulp")
log2 = _float_function("log2", 1, "logarithm to base 2, 2 ulp")
log10 = _float_function("log10", 1, "logarithm to base 10, 2 ulp")
log1p = _float_function("log1p", 1, "log(1 + x) without cancellation, 3 ulp")
sqrt = _float_function("sqrt", 1, "square root, correctly rounded")
rsqrt = _float_function("rsqrt", 1, "1 / sqrt(x), 2 ulp")
cbrt = _float_function("cbrt", 1, "cube root, 1 ulp")
sin = _float_function("sin", 1, "sine, 2 ulp for every argument")
cos = _float_function("cos", 1, "cosine, 2 ulp for every argument")
tan = _float_function("tan", 1, "tangent, 4 ulp for every argument")
asin = _float_function("asin", 1, "arc sine, 3 ulp")
acos = _float_function("acos", 1, "arc cosine, 3 ulp")
atan = _float_function("atan", 1, "arc tangent, 3 ulp")
sinh = _float_function("sinh", 1, "hyperbolic sine, 3 ulp")
cosh = _float_function("cosh", 1, "hyperbolic cosine, 3 ulp")
tanh = _float_function("tanh", 1, "hyperbolic tangent, 3 ulp")
asinh = _float_function("asinh", 1, "inverse hyperbolic sine, 4 ulp")
acosh = _float_function("acosh", 1, "inverse hyperbolic cosine, 4 ulp")
atanh = _float_function("atanh", 1, "inverse hyperbolic tangent, 4 ulp")
erf = _float_function("erf", 1, "error function, 2 ulp")
erfc = _float_function("erfc", 1, "1 - erf(x) without cancellation, 4 ulp")
powf = _float_function("powf", 2, "x^y, 1 ulp")
atan2 = _float_function("atan2", 2, "the angle of the point (x, y), given as (y, x), 4 ulp")
copysign = _float_function("copysign", 2, "the magnitude of the first with the sign of the second, exact")
_fma = _float_function("fma", 3, "a * b + c with one rounding; of bf16 to f32, then to bf16")


def fma(*values: Value, fastmath: FastMath = None, roundingmode: RoundingMode | None = None) -> ArithValue:
    """a * b + c with one rounding, to the nearest; of bf16 to f32, then to bf16. Scalars or vectors of one type."""
    require_nearest("math.fma", roundingmode)
    return _fma(*values, fastmath=fastmath)


clampf = _float_function("clampf", 3, "x within [low, high], NaN if one is")
isnan = _predicate("isnan", "whether x is a NaN")
isinf = _predicate("isinf", "whether x is infinite")
isfinite = _predicate("isfinite", "whether x is neither infinite nor a NaN")
isnormal = _predicate("isnormal", "whether x is finite, not zero and not denormal")
absi = _integer_function("absi", 1, "magnitude of a signed integer; the smallest one stays")
ctlz = _integer_function("ctlz", 1, "number of leading zeros; the width for 0")
cttz = _integer_function("cttz", 1, "number of trailing zeros; the width for 0")
ctpop = _integer_function("ctpop", 1, "number of bits set")
ipowi = _integer_function("ipowi", 2, "x^n, wrapping; a negative n gives 1 / x^-n rounded toward zero")


def sincos(x: Value, *, fastmath: FastMath = None) -> tuple[ArithValue, ArithValue]:
    """(sin(x), cos(x)), cheaper than two calls; 2 ulp for every argument."""
    (operand,) = _operands("sincos", (x,), True)
    sine, cosine = _emit("sincos", [operand], [operand.type] * 2, fastmath).results
    return arith_result(sine, shape=shape_of(x)), arith_result(cosine, shape=shape_of(x))


def fpowi(base: Value, exponent: Number, *, fastmath: FastMath = None) -> ArithValue:
    """Raise a float to the power of a signed integer, 1 ulp. base, exponent: scalars, or vectors of one shape.

    A scalar is taken for every element of a vector. f64 is supported if the exponent is a Python number from -4 to 4.
    """
    number = Int32(exponent) if is_python_number(exponent) else as_numeric(exponent)
    base = as_numeric(base)
    (x,) = _operands("fpowi", (converted_like(base, base.dtype, number),), True)
    n = ir_value_of(converted_like(number, number.dtype, arith_result(x)))
    check_operands("math.fpowi", n, n, False)
    if shape_of(base) != shape_of(number) and None not in (shape_of(base), shape_of(number)):
        raise argument_error(f"math.fpowi of {base!r} and {number!r}", "give both one shape: .broadcast_to(shape)")
    return arith_result(_emit("fpowi", [x, n], [x.type], fastmath).result, shape=shape_of(base, number))


add_methods(exp, exp2, log, log2, sqrt, rsqrt, sin, cos, tanh)
__getattr__ = unknown_name(__name__, globals())
