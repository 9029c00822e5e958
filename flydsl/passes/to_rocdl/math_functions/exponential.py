"""Exponentials and logarithms of f32 that LLVM has no instructions for; asinh, acosh and atanh of f64, too.

Bounds are in units in the last place (ulp) against the exact result; the tests measure them.
"""

from __future__ import annotations

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue, approximate
from flydsl.passes.to_rocdl.math_functions import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64 import exponential as of_f64

_LOG2_E = 1.4426950408889634
# ln(2) in two parts: the product of the first with an integer up to 2^9 is exact in f32.
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.428606765330187e-06
_NAN = float("nan")
_INFINITY = float("inf")


def reduced_expm1(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    """(exp(r) - 1, n) with x = n ln(2) + r and |r| <= ln(2) / 2; n is an i32. x is within +-200."""
    n = (x * _LOG2_E).nearest()
    r = n.fma(-_LN2_LOW, n.fma(-_LN2_HIGH, x))
    return (r * r).fma(r.polynomial(coefficients.EXPM1), r), n.to_int()


def half_exp(x: ElementwiseValue) -> ElementwiseValue:
    """exp(x) / 2 for x >= 0, which does not overflow before sinh and cosh do. 2 ulp."""
    p, n = reduced_expm1(x.clamp(0.0, 100.0))
    return (p + 1.0).ldexp(n - 1)


def exp_hardware(x: ElementwiseValue) -> ElementwiseValue:
    """2^x by the instruction alone; results below 2^-126 are 0."""
    return approximate("exp2", x)


def expm1(x: ElementwiseValue) -> ElementwiseValue:
    """exp(x) - 1, within 2 ulp."""
    p, n = reduced_expm1(x.clamp(-20.0, 89.0))
    # Half of the result, which does not overflow before the result does.
    scale = x.constant(1.0).ldexp(n - 1)
    half = scale.fma(p, scale - 0.5)
    return _keep(x, half + half)


def sinh(x: ElementwiseValue) -> ElementwiseValue:
    """sinh(x), within 3 ulp."""
    a, z = x.abs(), x * x
    half = half_exp(a)
    small = (a * z).fma(z.polynomial(coefficients.SINH), a)
    return _keep(x, (a < 1.0).choose(small, half - 0.25 / half).copysign(x))


def cosh(x: ElementwiseValue) -> ElementwiseValue:
    """cosh(x), within 3 ulp."""
    half = half_exp(x.abs())
    return x.differs(x).choose(x, half + 0.25 / half)


def tanh(x: ElementwiseValue) -> ElementwiseValue:
    """tanh(x), within 3 ulp."""
    a, z = x.abs(), x * x
    large = 1.0 - 2.0 * approximate("rcp", exp_hardware(a * (2 * _LOG2_E)) + 1.0)
    small = (a * z).fma(z.polynomial(coefficients.TANH), a)
    return (a < 0.6).choose(small, large).copysign(x)


def log1p(x: ElementwiseValue) -> ElementwiseValue:
    """log(1 + x), within 3 ulp: the logarithm of the rounded sum, with the rounding undone by a factor."""
    u = x + 1.0
    corrected = u.llvm("log") * (x / (u - 1.0))
    plain = u.equals(1.0).choose(x, corrected)
    return u.equals(_INFINITY).choose(x, plain)


def asinh(x: ElementwiseValue) -> ElementwiseValue:
    """asinh(x), within 4 ulp."""
    a = x.abs()
    z = a * a
    small = _log1p(a + z / ((z + 1.0).llvm("sqrt") + 1.0))
    large = _log(a) + 0.6931471805599453
    return (a > _large(x)).choose(large, small).copysign(x)


def acosh(x: ElementwiseValue) -> ElementwiseValue:
    """acosh(x), within 4 ulp; NaN below 1, where the root's operand is positive again from -1 downwards."""
    t = x - 1.0
    small = _log1p(t + (t.fma(t, t + t)).llvm("sqrt"))
    large = _log(x) + 0.6931471805599453
    return (x < 1.0).choose(_NAN, (x > _large(x)).choose(large, small))


def atanh(x: ElementwiseValue) -> ElementwiseValue:
    """atanh(x), within 4 ulp."""
    a = x.abs()
    return (0.5 * _log1p((a + a) / (1.0 - a))).copysign(x)


def _log(x: ElementwiseValue) -> ElementwiseValue:
    return x.llvm("log") if str(x.element) == "f32" else of_f64.log(x)


def _log1p(x: ElementwiseValue) -> ElementwiseValue:
    return log1p(x) if str(x.element) == "f32" else of_f64.log1p(x)


def _large(x: ElementwiseValue) -> float:
    """A number whose square's neighbour below is no other one to the type."""
    return 4096.0 if str(x.element) == "f32" else 2.0**28


def cbrt(x: ElementwiseValue) -> ElementwiseValue:
    """The cube root, within 1 ulp: a logarithm, then a step of Newton's method. Small arguments are scaled."""
    small = x.abs() < 2.0**-90
    a = small.choose(x * 2.0**60, x).abs()
    estimate = (a.llvm("log2") * (1 / 3)).llvm("exp2")
    square = estimate * estimate
    root = estimate + (-square).fma(estimate, a) / (3.0 * square)
    root = small.choose(root * 2.0**-20, root)
    regular = (a > 0.0) & (a < _INFINITY)
    return regular.choose(root.copysign(x), x)


def rsqrt(x: ElementwiseValue) -> ElementwiseValue:
    """1 / sqrt(x), within 2 ulp. The instruction takes no denormals, so those are scaled."""
    denormal = x < 2.0**-126
    scaled = denormal.choose(x * 2.0**24, x)
    root = approximate("rsq", scaled)
    return denormal.choose(root * 2.0**12, root)


def _keep(x: ElementwiseValue, result: ElementwiseValue) -> ElementwiseValue:
    """`result`, but x itself where x is a zero, whose sign it keeps, or a NaN."""
    return (x.abs() > 0.0).choose(result, x)
