"""Sine and cosine of any angle, from those of its distance to a multiple of pi / 2; of f32 and f64."""

from __future__ import annotations

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue


def sincos_of(
    x: ElementwiseValue, sine: ElementwiseValue, cosine: ElementwiseValue, quadrant: ElementwiseValue, bits: int
) -> tuple[ElementwiseValue, ElementwiseValue]:
    """(sin(x), cos(x)) for x = quadrant pi / 2 + r. sine, cosine: of r. quadrant: an integer of `bits` bits, like x."""
    swapped = (quadrant & 1).differs(0)
    # The sign bits: sin is negative in quadrants 2 and 3, cos in 1 and 2.
    sine_sign, cosine_sign = (quadrant & 2) << (bits - 2), ((quadrant + 1) & 2) << (bits - 2)
    sine, cosine = swapped.choose(cosine, sine), swapped.choose(sine, cosine)
    return x.equals(0.0).choose(x, _flip(sine, sine_sign)), _flip(cosine, cosine_sign)


def _flip(x: ElementwiseValue, sign_bit: ElementwiseValue) -> ElementwiseValue:
    return (x.bits() ^ sign_bit).op("arith.bitcast", kind=x.value.type)
