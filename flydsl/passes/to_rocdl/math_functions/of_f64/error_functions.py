"""The error function of f64 and its complement."""

from __future__ import annotations

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue
from flydsl.passes.to_rocdl.math_functions.of_f64 import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64.exponential import scaled_exp
from flydsl.passes.to_rocdl.math_functions.of_f64.pairs import Pair

_SPARE_BITS = 512


def erf(x: ElementwiseValue) -> ElementwiseValue:
    """erf(x), within 1 ulp: a polynomial near 0, else 1 - erfc(x)."""
    a = x.abs()
    result = (a < 0.9).choose(_erf_small(a), 1.0 - _erfc_positive(a.clamp(0.4, 6.0))).copysign(x)
    return x.differs(x).choose(x, result)


def erfc(x: ElementwiseValue) -> ElementwiseValue:
    """1 - erf(x), within 4 ulp, also where it is tiny."""
    positive = _erfc_positive(x.abs().clamp(0.4, 28.0))
    result = (x < 0.0).choose(2.0 - positive, positive)
    result = (x.abs() < 0.5).choose(1.0 - _erf_small(x), result)
    return x.differs(x).choose(x, result)


def _erf_small(x: ElementwiseValue) -> ElementwiseValue:
    """erf(x) for |x| <= 0.95."""
    return x.fma((x * x).polynomial(coefficients.ERF), x)


def _erfc_positive(a: ElementwiseValue) -> ElementwiseValue:
    """erfc(a) for a from 0.4 to 28: exp(-a^2) times a polynomial of (a - 4) / (a + 4)."""
    square = a * a
    lost = a.fma(a, -square)  # what rounding took from the square
    factor = ((a - 4.0) / (a + 4.0)).polynomial(coefficients.ERFC) / a.fma(2.0, 1.0)
    # A denormal result is rounded once.
    return scaled_exp(Pair(-square, -lost), _SPARE_BITS) * factor * 2.0**-_SPARE_BITS
