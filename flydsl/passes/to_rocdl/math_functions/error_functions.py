"""The error function of f32 and its complement."""

from __future__ import annotations

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue
from flydsl.passes.to_rocdl.math_functions import coefficients
from flydsl.passes.to_rocdl.math_functions.exponential import exp_hardware, reduced_expm1


def erf(x: ElementwiseValue) -> ElementwiseValue:
    """erf(x), within 2 ulp: a polynomial near 0, else 1 - 2^p of a polynomial p."""
    a = x.abs()
    small = _erf_small(a)
    large = 1.0 - exp_hardware(a.clamp(0.0, 4.0).polynomial(coefficients.LOG2_ERFC))
    result = (a < 0.95).choose(small, large).copysign(x)
    return x.differs(x).choose(x, result)


def _erf_small(x: ElementwiseValue) -> ElementwiseValue:
    """erf(x) for |x| <= 0.95."""
    return x.fma((x * x).polynomial(coefficients.ERF), x)


def erfc(x: ElementwiseValue) -> ElementwiseValue:
    """1 - erf(x), within 4 ulp, also where it is tiny: exp(-x^2) times a polynomial of (x - 4) / (x + 4)."""
    a = x.abs().clamp(0.0, 10.5)
    square = a * a
    lost = a.fma(a, -square)  # what rounding took from the square
    p, n = reduced_expm1(-square)
    factor = ((a - 4.0) / (a + 4.0)).polynomial(coefficients.ERFC) / a.fma(2.0, 1.0)
    exponential = (p + 1.0).fma(-lost, p + 1.0)
    positive = (exponential * factor).ldexp(n)
    result = (x < 0.0).choose(2.0 - positive, positive)
    result = (a < 0.5).choose(1.0 - _erf_small(x), result)
    return x.differs(x).choose(x, result)
