"""Sine and cosine of f64.

The argument is reduced to a sum of two f64, whatever cancels: below 2^20 by multiples of pi / 2 in four parts; beyond,
in a branch, by its product with 1 / (2 pi), of which only the fraction counts.
"""

from __future__ import annotations

from mlir import ir

from flydsl.passes.rewriting import create
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue, holds_anywhere
from flydsl.passes.to_rocdl.math_functions.of_f64 import coefficients
from flydsl.passes.to_rocdl.math_functions.of_f64.pairs import Pair, constant_pair, exact_product, sum_of
from flydsl.passes.to_rocdl.math_functions.quadrants import sincos_of

_TWO_OVER_PI = 0.6366197723675814
_LARGE = 2.0**20
_PART_BITS, _PARTS = 53, 5
_FIRST_EXPONENT = 52
"""From this exponent on, the product with the first part of 1 / (2 pi) has whole turns alone in each bit that a second
one would add; after so many bits more, the same holds of the next part."""


def sincos(x: ElementwiseValue) -> tuple[ElementwiseValue, ElementwiseValue]:
    """(sin(x), cos(x)), each within 1 ulp, for every finite x; NaN for an infinite one."""
    r, quadrant = _reduce(x)
    return sincos_of(x, _sine(r), _cosine(r), quadrant.op("arith.extsi", kind=x.like("i64")), 64)


def sin(x: ElementwiseValue) -> ElementwiseValue:
    """sin(x), within 1 ulp."""
    return sincos(x)[0]


def cos(x: ElementwiseValue) -> ElementwiseValue:
    """cos(x), within 1 ulp."""
    return sincos(x)[1]


def tan(x: ElementwiseValue) -> ElementwiseValue:
    """tan(x), within 2 ulp."""
    sine, cosine = sincos(x)
    return sine / cosine


def _sine(r: Pair) -> ElementwiseValue:
    x = r.high
    z = x * x
    return x + (x * z).fma(z.polynomial(coefficients.SIN), r.low * z.fma(-0.5, 1.0))


def _cosine(r: Pair) -> ElementwiseValue:
    x = r.high
    z = x * x
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + (z * z).fma(z.polynomial(coefficients.COS), -(x * r.low)))


def _reduce(x: ElementwiseValue) -> tuple[Pair, ElementwiseValue]:
    """(r, q) with x = q pi / 2 + r + a multiple of 2 pi and |r| at most little over pi / 4; q is an i32."""
    kind = x.value.type
    condition = holds_anywhere(x.abs() >= _LARGE)
    branch = ir.Operation.create("scf.if", [kind, kind, x.like("i32")], [condition], regions=2, loc=x.at)
    for region, reduction in zip(branch.regions, (_reduce_large, _reduce_small), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            r, quadrant = reduction(x)
            create("scf.yield", [r.high.value, r.low.value, quadrant.value], [], x.at)
    high, low, quadrant = (ElementwiseValue(result, x.at) for result in branch.results)
    return Pair(high, low), quadrant


def _reduce_small(x: ElementwiseValue) -> tuple[Pair, ElementwiseValue]:
    first, second, third, fourth = coefficients.HALF_PI
    n = (x * _TWO_OVER_PI).nearest()
    product = exact_product(n, n.constant(-third))
    return sum_of([n.fma(-first, x), n * -second, product.high, product.low, n * -fourth]), n.to_int()


def _reduce_large(x: ElementwiseValue) -> tuple[Pair, ElementwiseValue]:
    """Reduce any argument: an element of a vector may be small."""
    scaled, parts = _parts_that_count(x)
    fractions = []
    for i, part in enumerate(parts):
        product = exact_product(scaled, part * 2.0 ** (-_PART_BITS * i))
        fractions += [_fraction(product.high), _fraction(product.low)]
    turns = fractions[-1]
    for fraction in reversed(fractions[:-1]):
        turns = turns + fraction
    n = (4.0 * turns).nearest().clamp(-64.0, 64.0)  # an infinite argument's NaN has no integer
    return sum_of([n * -0.25, *fractions]) * constant_pair(x, coefficients.TWO_PI), n.to_int()


def _parts_that_count(x: ElementwiseValue) -> tuple[ElementwiseValue, list[ElementwiseValue]]:
    """x without the weight of the first of some parts of 1 / (2 pi), and these parts: those before them give whole
    turns, those after them nothing."""
    exponent = ((x.bits() >> 52) & 0x7FF).op("arith.trunci", kind=x.like("i32")) - 1023
    skipped = exponent.constant(0)
    parts = [x.constant(part) for part in coefficients.TURN]
    selected = parts[:_PARTS]
    for group in range(1, len(parts) - _PARTS + 1):
        beyond = exponent >= _FIRST_EXPONENT + _PART_BITS * group
        skipped = beyond.choose(exponent.constant(-_PART_BITS * group), skipped)
        selected = [beyond.choose(part, old) for part, old in zip(parts[group:], selected, strict=False)]
    return x.ldexp(skipped), selected


def _fraction(x: ElementwiseValue) -> ElementwiseValue:
    """The difference to the nearest integer, exact."""
    return x - x.nearest()
