"""Sums of two f64, of which the second is what the first lacks: about 100 bits.

The exact sum and product of two floats are such pairs (T. J. Dekker, "A floating-point technique for extending the
available precision", 1971). Nothing here may be reassociated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue


@dataclass(frozen=True)
class Pair:
    """high + low, where low is at most about a unit in the last place of high."""

    high: ElementwiseValue
    low: ElementwiseValue

    def __add__(self, other: Pair) -> Pair:
        """The sum, exact to some 100 bits where not much cancels."""
        total = exact_sum(self.high, other.high)
        return ordered_sum(total.high, total.low + (self.low + other.low))

    def __mul__(self, other: Pair) -> Pair:
        product = exact_product(self.high, other.high)
        return ordered_sum(product.high, self.high.fma(other.low, self.low.fma(other.high, product.low)))

    def rounded(self) -> ElementwiseValue:
        """The one f64 that is nearest, or a neighbour."""
        return self.high + self.low


def constant_pair(x: ElementwiseValue, parts: tuple[float, float]) -> Pair:
    """A constant of x's type."""
    return Pair(x.constant(parts[0]), x.constant(parts[1]))


def exact_sum(a: ElementwiseValue, b: ElementwiseValue) -> Pair:
    """a + b."""
    high = a + b
    from_b = high - a
    return Pair(high, (a - (high - from_b)) + (b - from_b))


def ordered_sum(a: ElementwiseValue, b: ElementwiseValue) -> Pair:
    """a + b, where a is not smaller, or zero."""
    high = a + b
    return Pair(high, b - (high - a))


def exact_product(a: ElementwiseValue, b: ElementwiseValue) -> Pair:
    """a * b, unless its lower half underflows."""
    high = a * b
    return Pair(high, a.fma(b, -high))


def sum_of(terms: Sequence[ElementwiseValue]) -> Pair:
    """The sum of terms in descending order, however much of them cancels: it is kept three times as long as an f64
    (T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", 2005)."""
    for _ in range(2):
        terms = _distilled(terms)
    low = terms[-1]
    for term in reversed(terms[1:-1]):
        low = low + term
    return ordered_sum(terms[0], low)


def _distilled(terms: Sequence[ElementwiseValue]) -> list[ElementwiseValue]:
    """Terms of the same sum, of which the first is the sum as it is rounded term by term."""
    total, errors = terms[-1], []
    for term in reversed(terms[:-1]):
        pair = exact_sum(term, total)
        total = pair.high
        errors.append(pair.low)
    return [total, *reversed(errors)]
