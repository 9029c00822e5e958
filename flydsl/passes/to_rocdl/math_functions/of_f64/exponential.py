"""Exponentials and logarithms of f64. The bounds of errors, in units in the last place (ulp), are what tests hold."""

from __future__ import annotations

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue
from flydsl.passes.to_rocdl.math_functions.of_f64 import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64.pairs import (
    Pair,
    constant_pair,
    exact_product,
    exact_sum,
    ordered_sum,
)

_INFINITY = float("inf")
_SMALLEST_NORMAL = 2.0**-1022
_SQUARE_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
"""Its bits."""


# --- exponentials


def reduced_expm1(x: Pair) -> tuple[Pair, ElementwiseValue]:
    """(exp(r) - 1, n) with x = n ln(2) + r and |r| <= ln(2) / 2; n is an i32. x is within +-1200."""
    n = (x.high * coefficients.LOG2_E[0]).nearest()
    ln2, rest = coefficients.LN_2
    return _expm1(exact_sum(n.fma(-ln2, x.high), n.fma(-rest, x.low))), n.to_int()


def _expm1(r: Pair) -> Pair:
    """exp(r) - 1 for |r| <= ln(2) / 2."""
    x = r.high
    return Pair(x, (x * x).fma(x.polynomial(coefficients.EXPM1), x.fma(r.low, r.low)))


def scaled_exp(x: Pair, exponent: int = 0) -> ElementwiseValue:
    """exp(x) * 2^exponent for |x| <= 1200, within 0.6 ulp unless it is denormal."""
    p, n = reduced_expm1(x)
    one = ordered_sum(p.high.constant(1.0), p.high)
    return (one.high + (one.low + p.low)).ldexp(n + exponent)


def exp(x: ElementwiseValue) -> ElementwiseValue:
    """exp(x), within 1 ulp."""
    return _or_nan(x, scaled_exp(_alone(x.clamp(-800.0, 800.0))))


def exp2(x: ElementwiseValue) -> ElementwiseValue:
    """2^x, within 1 ulp."""
    a = x.clamp(-1100.0, 1100.0)
    n = a.nearest()
    f = a - n
    ln2, rest = coefficients.LN_2_PAIR
    r = exact_product(f, f.constant(ln2))
    p = _expm1(Pair(r.high, f.fma(rest, r.low)))
    one = ordered_sum(f.constant(1.0), p.high)
    return _or_nan(x, (one.high + (one.low + p.low)).ldexp(n.to_int()))


def expm1(x: ElementwiseValue) -> ElementwiseValue:
    """exp(x) - 1, within 2 ulp."""
    p, n = reduced_expm1(_alone(x.clamp(-40.0, 710.0)))
    # Half of the result, which does not overflow before the result does.
    scale = x.constant(1.0).ldexp(n - 1)
    half = scale.fma(p.low, scale.fma(p.high, scale - 0.5))
    is_itself = (x.abs() < 2.0**-60) | x.differs(x)  # as a zero is with its sign, and a denormal, which has no half
    return is_itself.choose(x, half + half)


def sinh(x: ElementwiseValue) -> ElementwiseValue:
    """sinh(x), within 3 ulp."""
    a = x.abs()
    t = expm1(a.clamp(0.0, 22.0))
    small = 0.5 * (t + t / (t + 1.0))
    return _keep(x, (a < 22.0).choose(small, _half_exp(a)).copysign(x))


def cosh(x: ElementwiseValue) -> ElementwiseValue:
    """cosh(x), within 2 ulp."""
    half = _half_exp(x.abs())
    return _or_nan(x, half + 0.25 / half)


def _half_exp(x: ElementwiseValue) -> ElementwiseValue:
    """exp(x) / 2 for x >= 0, which does not overflow before sinh and cosh do."""
    return scaled_exp(_alone(x.clamp(0.0, 800.0)), -1)


def tanh(x: ElementwiseValue) -> ElementwiseValue:
    """tanh(x), within 2 ulp."""
    t = expm1(x.abs().clamp(0.0, 22.0) * 2.0)
    return _or_nan(x, (t / (t + 2.0)).copysign(x))


# --- logarithms


def logarithm(x: ElementwiseValue) -> tuple[ElementwiseValue, Pair]:
    """(n, log(m)) with x = 2^n m and m from sqrt(1/2) to sqrt(2), for a positive and finite x; n is an f64."""
    tiny = x < _SMALLEST_NORMAL
    bits = tiny.choose(x * 2.0**54, x).bits()
    n = (bits - _SQUARE_ROOT_OF_HALF).op("arith.shrsi", 52)
    mantissa = (bits - (n << 52)).op("arith.bitcast", kind=x.value.type)
    exponent = n.op("arith.trunci", kind=x.like("i32")).to_float("f64")
    return exponent - tiny.choose(54.0, x.constant(0.0)), _log_of_mantissa(mantissa - 1.0)


def _log_of_mantissa(f: ElementwiseValue) -> Pair:
    """log(1 + f), by 2 atanh(s) with s = f / (2 + f)."""
    d = ordered_sum(f.constant(2.0), f)
    inverse = 1.0 / d.high
    s = f * inverse
    rest = (-s).fma(d.low, (-s).fma(d.high, f)) * inverse
    s_exact = Pair(s, rest)
    z = s_exact * s_exact
    series = ordered_sum(f.constant(coefficients.TWO_THIRDS[0]), z.high * z.high.polynomial(coefficients.LOG))
    cubic = z * s_exact * Pair(series.high, series.low + coefficients.TWO_THIRDS[1])
    return Pair(s + s, rest + rest) + cubic


def natural(n: ElementwiseValue, log_of_mantissa: Pair) -> Pair:
    """n log(2) + log(m), to some 65 bits."""
    return _combined(n, coefficients.LN_2, log_of_mantissa)


def _combined(n: ElementwiseValue, unit: tuple[float, float], rest: Pair) -> Pair:
    """n * unit + rest. unit: in parts, the product of the first of which with n is exact."""
    total = exact_sum(n * unit[0], rest.high)
    return ordered_sum(total.high, total.low + n.fma(unit[1], rest.low))


def log(x: ElementwiseValue) -> ElementwiseValue:
    """log(x), within 1 ulp."""
    return with_its_limits(x, natural(*logarithm(x)).rounded())


def log2(x: ElementwiseValue) -> ElementwiseValue:
    """log2(x), within 1 ulp."""
    n, rest = logarithm(x)
    return with_its_limits(x, _combined(n, (1.0, 0.0), rest * constant_pair(x, coefficients.LOG2_E)).rounded())


def log10(x: ElementwiseValue) -> ElementwiseValue:
    """log10(x), within 1 ulp."""
    n, rest = logarithm(x)
    scaled = rest * constant_pair(x, coefficients.LOG10_E)
    return with_its_limits(x, _combined(n, coefficients.LOG10_2, scaled).rounded())


def log1p(x: ElementwiseValue) -> ElementwiseValue:
    """log(1 + x), within 1 ulp: the logarithm of the rounded sum, and what rounding took."""
    u = exact_sum(x.constant(1.0), x)
    total = natural(*logarithm(u.high))
    result = with_its_limits(u.high, total.high + (total.low + u.low / u.high))
    return _keep(x, x.equals(_INFINITY).choose(x, x.equals(-1.0).choose(-_INFINITY, result)))


def cbrt(x: ElementwiseValue) -> ElementwiseValue:
    """The cube root, within 1 ulp: a logarithm, then a step of Newton's method. Small arguments are scaled."""
    small = x.abs() < 2.0**-900
    a = small.choose(x * 2.0**60, x).abs()
    estimate = exp2(log2(a) * (1 / 3))
    square = estimate * estimate
    root = estimate + (-square).fma(estimate, a) / (3.0 * square)
    root = small.choose(root * 2.0**-20, root)
    regular = (a > 0.0) & (a < _INFINITY)
    return regular.choose(root.copysign(x), x)


def _alone(x: ElementwiseValue) -> Pair:
    return Pair(x, x.constant(0.0))


def with_its_limits(x: ElementwiseValue, result: ElementwiseValue) -> ElementwiseValue:
    """A logarithm's result, or its value for what is not positive and finite."""
    result = x.equals(0.0).choose(-_INFINITY, (x < 0.0).choose(float("nan"), result))
    return _or_nan(x, x.equals(_INFINITY).choose(x, result))


def _or_nan(x: ElementwiseValue, result: ElementwiseValue) -> ElementwiseValue:
    return x.differs(x).choose(x, result)


def _keep(x: ElementwiseValue, result: ElementwiseValue) -> ElementwiseValue:
    """`result`, but x itself where x is a zero, whose sign it keeps, or a NaN."""
    return (x.abs() > 0.0).choose(result, x)
