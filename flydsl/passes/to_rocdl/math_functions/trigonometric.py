"""Sine, cosine and tangent of f32.

The argument is reduced in f64, where two multiply-adds are exact enough for any argument below 2^30. Larger ones take
a branch: the product with 1 / (2 pi) in parts, each exact; only their fractions count.
"""

from __future__ import annotations

from mlir import ir

from flydsl.passes.rewriting import create
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue, holds_anywhere
from flydsl.passes.to_rocdl.math_functions import coefficients
from flydsl.passes.to_rocdl.math_functions.quadrants import sincos_of

_PI = 3.141592653589793
_LARGE = 2.0**30


def sincos(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    """(sin(x), cos(x)), each within 2 ulp, for every finite x; NaN for an infinite one."""
    r, quadrant = _reduce(x)
    z = r * r
    sine = (r * z).fma(z.polynomial(coefficients.SIN), r)
    cosine = (z * z).fma(z.polynomial(coefficients.COS), z.fma(-0.5, 1.0))
    return sincos_of(x, sine, cosine, quadrant, 32)


def sin(x: ElementwiseValue) -> ElementwiseValue:
    """sin(x), within 2 ulp."""
    return sincos(x)[0]


def cos(x: ElementwiseValue) -> ElementwiseValue:
    """cos(x), within 2 ulp."""
    return sincos(x)[1]


def tan(x: ElementwiseValue) -> ElementwiseValue:
    """tan(x), within 4 ulp."""
    sine, cosine = sincos(x)
    return sine / cosine


def _reduce(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    """(r, q) with x = q pi / 2 + r + a multiple of 2 pi and |r| at most little over pi / 4; q is an i32."""
    large = x.abs() >= _LARGE
    wide = x.to_float("f64")
    types = [wide.value.type, x.like("i32")]
    branch = ir.Operation.create("scf.if", types, [holds_anywhere(large)], regions=2, loc=x.at)
    for region, reduction in zip(branch.regions, (_reduce_large, _reduce_small), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            create("scf.yield", [value.value for value in reduction(wide)], [], x.at)
    r, quadrant = (ElementwiseValue(result, x.at) for result in branch.results)
    return r.to_float("f32"), quadrant


def _reduce_small(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    high, low = coefficients.HALF_PI
    n = (x * (2 / _PI)).nearest()
    return n.fma(-low, n.fma(-high, x)), n.to_int()


def _reduce_large(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    """Reduce any argument: an element of a vector may be small."""
    parts = _parts_that_count(x)
    turns = [_fraction(x * part) for part in parts[:2]] + [x * part for part in parts[2:]]
    # Within +-8 but for an infinite argument, whose NaN has no integer.
    n = (4.0 * (turns[0] + turns[1] + turns[2])).nearest().clamp(-8.0, 8.0)
    # In this order each difference is exact where much cancels.
    rest = (n.fma(-0.25, turns[0]) + turns[1]) + (turns[2] + turns[3])
    return rest * (2 * _PI), n.to_int()


def _parts_that_count(x: ElementwiseValue) -> list[ElementwiseValue]:
    """Four consecutive parts of 1 / (2 pi): those before them give whole turns, those after them nothing."""
    parts = [x.constant(part) for part in coefficients.TURN]
    selected, a = parts[:4], x.abs()
    for group in (1, 2, 3):
        beyond = a >= 2.0 ** (54 + 29 * (group - 1))
        selected = [beyond.choose(part, old) for part, old in zip(parts[group : group + 4], selected, strict=True)]
    return selected


def _fraction(x: ElementwiseValue) -> ElementwiseValue:
    """The difference to the nearest integer, exact."""
    return x - x.nearest()
