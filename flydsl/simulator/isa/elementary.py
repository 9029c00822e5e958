"""Exponential, logarithm, sine and cosine of f64, written once for every backend.

Each is a fixed sequence of additions, multiplications and divisions, every one of which IEEE 754 defines to the bit.
So all backends give the same results on every host, which no host's mathematical library promises. The error is below
2 ulp of f64: rounded to f32 or f16 it does not show.

Sources: range reduction and series as in Muller, "Elementary Functions", chapters 5 and 11; coefficients are those of
Taylor, exact but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

Value = Any

_MAGIC = 1.5 * 2.0**52
"""Added to a whole number below 2**51 in magnitude, it leaves that number in the lowest bits."""
_MAGIC_BITS = 0x4338_0000_0000_0000
_EXPONENT_BIAS = 1023

_LOG_2 = 0.6931471805599453
_UPPER, _LOWER = _LOG_2.as_integer_ratio()
_EXP2 = [_UPPER**k / (_LOWER**k * math.factorial(k)) for k in range(14)]  # rounded once
_ATANH = [1 / (2 * k + 1) for k in range(12)]
_SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
_COS = [(-1) ** k / math.factorial(2 * k) for k in range(9)]


class Doubles(Protocol):
    """The operations needed from a builder. float_op, float_compare and float_round ignore float modes."""

    def const(self, type_: str, value: int | float) -> Value: ...
    def bitcast(self, x: Value, type_: str) -> Value: ...
    def add(self, x: Value, y: Value) -> Value: ...
    def sub(self, x: Value, y: Value) -> Value: ...
    def and_(self, x: Value, y: Value) -> Value: ...
    def or_(self, x: Value, y: Value) -> Value: ...
    def shl(self, x: Value, amount: Value) -> Value: ...
    def lshr(self, x: Value, amount: Value) -> Value: ...
    def icmp(self, predicate: str, x: Value, y: Value) -> Value: ...
    def select(self, condition: Value, x: Value, y: Value) -> Value: ...
    def fneg(self, x: Value) -> Value: ...
    def float_op(self, operation: str, x: Value, y: Value) -> Value: ...
    def float_compare(self, predicate: str, x: Value, y: Value) -> Value: ...
    def float_round(self, x: Value) -> Value: ...


def exp2(b: Doubles, x: Value) -> Value:
    """2**x for x within [-1000, 1000]; beyond, the value at the nearer end, which no narrower format tells apart."""
    high, low = b.const("f64", 1000.0), b.const("f64", -1000.0)
    bounded = b.select(b.float_compare("ogt", x, high), high, x)
    bounded = b.select(b.float_compare("olt", bounded, low), low, bounded)
    whole = b.float_round(bounded)
    fraction = b.float_op("fsub", bounded, whole)
    power = b.shl(b.add(_to_integer(b, whole), b.const("i64", _EXPONENT_BIAS)), b.const("i64", 52))
    result = b.float_op("fmul", _polynomial(b, fraction, _EXP2), b.bitcast(power, "f64"))
    return _or_nan(b, x, result)


def log2(b: Doubles, x: Value) -> Value:
    """log2(x) for x that is not denormal."""
    bits = b.bitcast(x, "i64")
    fraction_bits = b.and_(bits, b.const("i64", (1 << 52) - 1))
    mantissa = b.bitcast(b.or_(fraction_bits, b.const("i64", _EXPONENT_BIAS << 52)), "f64")
    biased = b.and_(b.lshr(bits, b.const("i64", 52)), b.const("i64", 0x7FF))
    exponent = _from_integer(b, b.sub(biased, b.const("i64", _EXPONENT_BIAS)))
    one, half = b.const("f64", 1.0), b.const("f64", 0.5)
    large = b.float_compare("ogt", mantissa, b.const("f64", math.sqrt(2)))
    mantissa = b.select(large, b.float_op("fmul", mantissa, half), mantissa)
    exponent = b.select(large, b.float_op("fadd", exponent, one), exponent)
    # log(m) = 2 artanh(s), s = (m - 1) / (m + 1)
    s = b.float_op("fdiv", b.float_op("fsub", mantissa, one), b.float_op("fadd", mantissa, one))
    series = b.float_op("fmul", s, _polynomial(b, b.float_op("fmul", s, s), _ATANH))
    result = b.float_op("fadd", exponent, b.float_op("fmul", series, b.const("f64", 2 / _LOG_2)))
    zero, infinity = b.const("f64", 0.0), b.const("f64", math.inf)
    result = b.select(b.float_compare("oeq", x, infinity), infinity, result)
    result = b.select(b.float_compare("olt", x, zero), b.const("f64", math.nan), result)
    result = b.select(b.float_compare("oeq", x, zero), b.const("f64", -math.inf), result)
    return _or_nan(b, x, result)


def sin_turns(b: Doubles, x: Value) -> Value:
    """sin(2 pi x)."""
    return _periodic(b, x, 0)


def cos_turns(b: Doubles, x: Value) -> Value:
    """cos(2 pi x)."""
    return _periodic(b, x, 1)


def _periodic(b: Doubles, x: Value, quarter_turns: int) -> Value:
    """sin(2 pi x + quarter_turns * pi / 2)."""
    turn = b.float_op("fsub", x, b.float_round(x))
    quarter = b.float_round(b.float_op("fmul", turn, b.const("f64", 4.0)))
    rest = b.float_op("fsub", turn, b.float_op("fmul", quarter, b.const("f64", 0.25)))
    angle = b.float_op("fmul", rest, b.const("f64", 2 * math.pi))
    square = b.float_op("fmul", angle, angle)
    sine = b.float_op("fmul", angle, _polynomial(b, square, _SIN))
    cosine = _polynomial(b, square, _COS)
    quadrant = b.add(_to_integer(b, quarter), b.const("i64", quarter_turns))
    is_odd = b.icmp("ne", b.and_(quadrant, b.const("i64", 1)), b.const("i64", 0))
    is_negative = b.icmp("ne", b.and_(quadrant, b.const("i64", 2)), b.const("i64", 0))
    result = b.select(is_odd, cosine, sine)
    return _or_nan(b, turn, b.select(is_negative, b.fneg(result), result))


def _polynomial(b: Doubles, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule, the constant coefficient first."""
    total = b.const("f64", coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = b.float_op("fadd", b.float_op("fmul", total, x), b.const("f64", coefficient))
    return total


def _to_integer(b: Doubles, whole: Value) -> Value:
    shifted = b.float_op("fadd", whole, b.const("f64", _MAGIC))
    return b.sub(b.bitcast(shifted, "i64"), b.const("i64", _MAGIC_BITS))


def _from_integer(b: Doubles, number: Value) -> Value:
    shifted = b.bitcast(b.add(number, b.const("i64", _MAGIC_BITS)), "f64")
    return b.float_op("fsub", shifted, b.const("f64", _MAGIC))


def _or_nan(b: Doubles, x: Value, result: Value) -> Value:
    """`result`, or x made quiet where it is a NaN."""
    return b.select(b.float_compare("uno", x, x), b.float_op("fadd", x, x), result)
