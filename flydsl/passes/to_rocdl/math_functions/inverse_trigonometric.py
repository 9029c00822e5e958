"""Inverses of the trigonometric functions, of f32 and f64: formulas for both, with constants for each."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue, approximate
from flydsl.passes.to_rocdl.math_functions import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64 import coefficients as of_f64


@dataclass(frozen=True)
class _Angle:
    """A constant as the nearest number of the type, and the rest of it."""

    high: float
    low: float

    def minus(self, x: ElementwiseValue) -> ElementwiseValue:
        return self.high - (x - self.low)


@dataclass(frozen=True)
class _Constants:
    """pi, pi / 2 and the polynomials for a type."""

    pi: _Angle
    half_pi: _Angle
    atan: tuple[float, ...]
    asin: tuple[float, ...]


_CONSTANTS = {
    "f32": _Constants(
        _Angle(3.1415927410125732, -8.742278000372485e-08),
        _Angle(1.5707963705062866, -4.3711390001862426e-08),
        coefficients.ATAN,
        coefficients.ASIN,
    ),
    "f64": _Constants(
        _Angle(3.141592653589793, 1.2246467991473532e-16),
        _Angle(1.5707963267948966, 6.123233995736766e-17),
        of_f64.ATAN,
        of_f64.ASIN,
    ),
}


def _of(x: ElementwiseValue) -> _Constants:
    return _CONSTANTS[str(x.element)]


def _reciprocal(x: ElementwiseValue) -> ElementwiseValue:
    return approximate("rcp", x) if str(x.element) == "f32" else 1.0 / x


def atan(x: ElementwiseValue) -> ElementwiseValue:
    """atan(x), within 3 ulp."""
    a = x.abs()
    inverted = a > 1.0
    p = _atan_small(inverted.choose(_reciprocal(a), a))
    return inverted.choose(_of(x).half_pi.minus(p), p).copysign(x)


def _atan_small(x: ElementwiseValue) -> ElementwiseValue:
    """atan(x) for 0 <= x <= 1."""
    z = x * x
    return (x * z).fma(z.polynomial(_of(x).atan), x)


def atan2(y: ElementwiseValue, x: ElementwiseValue) -> ElementwiseValue:
    """The angle of the point (x, y), within 4 ulp; zeros and infinities as in C."""
    a, b = y.abs(), x.abs()
    steep = a > b
    large, small = steep.choose(a, b), steep.choose(b, a)
    ratio = small / large
    ratio = large.equals(0.0).choose(0.0, small.equals(float("inf")).choose(1.0, ratio))
    p = _atan_small(ratio)
    p = steep.choose(_of(x).half_pi.minus(p), p)
    left = x.bits() < 0
    angle = left.choose(_of(x).pi.minus(p), p).copysign(y)
    ordered = x.equals(x) & y.equals(y)
    return ordered.choose(angle, x + y)


def _asin_small(x: ElementwiseValue) -> ElementwiseValue:
    """asin(x) for |x| <= 1/2."""
    z = x * x
    return (x * z).fma(z.polynomial(_of(x).asin), x)


def _asin_of_root(a: ElementwiseValue) -> ElementwiseValue:
    """asin(sqrt((1 - a) / 2)), half of acos(a), for a >= 1/2."""
    return _asin_small(((1.0 - a) * 0.5).llvm("sqrt"))


def asin(x: ElementwiseValue) -> ElementwiseValue:
    """asin(x), within 3 ulp."""
    a = x.abs()
    large = _of(x).half_pi.minus(2.0 * _asin_of_root(a))
    return (a <= 0.5).choose(_asin_small(a), large).copysign(x)


def acos(x: ElementwiseValue) -> ElementwiseValue:
    """acos(x), within 3 ulp."""
    a = x.abs()
    middle = _of(x).half_pi.minus(_asin_small(x))
    outer = 2.0 * _asin_of_root(a)
    outer = (x < 0.0).choose(_of(x).pi.minus(outer), outer)
    return (a <= 0.5).choose(middle, outer)
