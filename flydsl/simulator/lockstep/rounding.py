"""The rounding modes besides nearest-even, on arrays: round to nearest, then step to the neighbour where that went the
wrong way.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep import exact

NEAREST, UP, DOWN, ZERO = range(4)
"""As the MODE register numbers them: to nearest even, towards +inf, towards -inf, towards zero."""


def stepped(nearest: Array, too_large: Array, too_small: Array, mode: int) -> Array:
    """A result rounded to nearest, corrected where too_large or too_small says on which side of the exact one it is."""
    if mode == NEAREST:
        return nearest
    negative = np.signbit(nearest)
    up = too_small & ((mode == UP) | ((mode == ZERO) & negative))
    down = too_large & ((mode == DOWN) | ((mode == ZERO) & ~negative))
    infinity = nearest.dtype.type(np.inf)
    stepped_up = np.where(up, np.nextafter(nearest, infinity), nearest)
    return np.where(down, np.nextafter(nearest, -infinity), stepped_up)


def narrowed(wide: Array, dtype: Any, mode: int) -> Array:
    """A narrower float from a wider one, or from an f64 that was rounded to odd."""
    nearest = wide.astype(dtype)
    back = nearest.astype(wide.dtype)
    return stepped(nearest, back > wide, back < wide, mode)


def from_integer(x: Array, dtype: Any, mode: int) -> Array:
    """A float from an integer of up to 32 bits, or from a 64-bit one that the type holds exactly."""
    if mode == NEAREST or x.dtype.itemsize == 8:
        return x.astype(dtype)
    return narrowed(x.astype(np.float64), dtype, mode)


def fma(x: Array, y: Array, z: Array, mode: int) -> Array:
    """x * y + z, rounded once."""
    if mode == NEAREST:
        return exact.fma(x, y, z)
    return scaled_fma(x, y, z, np.zeros((1, 1), np.int32), mode)


def scaled_fma(x: Array, y: Array, z: Array, exponent: Array, mode: int) -> Array:
    """(x * y + z) * 2**exponent, rounded once."""
    if mode == NEAREST:
        return exact.scaled_fma(x, y, z, exponent)
    x, y, z, exponent = np.broadcast_arrays(x, y, z, exponent)
    if x.dtype != np.float64:
        total = np.ldexp(exact.fma_to_odd(x, y, z), exponent)
        return _downward_zero(narrowed(total, x.dtype, mode), total == 0, x, y, z, mode)
    wanted = np.empty(x.shape, object)
    for at in np.ndindex(x.shape):
        if np.isfinite(x[at]) and np.isfinite(y[at]) and np.isfinite(z[at]):
            total = Fraction(x[at]) * Fraction(y[at]) + Fraction(z[at])
            wanted[at] = total * Fraction(2) ** int(exponent[at])
    result = _towards(exact.scaled_fma(x, y, z, exponent), wanted, mode)
    return _downward_zero(result, wanted == 0, x, y, z, mode)


def _towards(nearest: Array, wanted: Array, mode: int) -> Array:
    """An f64 and the exact numbers (or None) that it was rounded from."""
    too_large, too_small = np.zeros(nearest.shape, np.bool_), np.zeros(nearest.shape, np.bool_)
    for at in np.ndindex(nearest.shape):
        if wanted[at] is not None:
            got = float(nearest[at])
            difference = got if np.isinf(got) else Fraction(got) - wanted[at]
            too_large[at], too_small[at] = difference > 0, difference < 0
    return stepped(nearest, too_large, too_small, mode)


def _downward_zero(result: Array, is_zero: Array, x: Array, y: Array, z: Array, mode: int) -> Array:
    """Rounding down, an x * y and a z that cancel leave -0."""
    cancels = is_zero.astype(np.bool_) & ((np.signbit(x) != np.signbit(y)) != np.signbit(z))
    return np.where(cancels & (mode == DOWN), result.dtype.type(-0.0), result)


def ldexp(x: Array, exponent: Array, mode: int) -> Array:
    """x * 2**exponent, rounded once. The exponent is within -4096 and 4096."""
    if mode == NEAREST:
        return exact.ldexp(x, exponent)
    if x.dtype != np.float64:
        return narrowed(np.ldexp(x.astype(np.float64), np.clip(exponent, -400, 400)), x.dtype, mode)
    x, exponent = np.broadcast_arrays(x, exponent)
    wanted = np.empty(x.shape, object)
    for at in np.ndindex(x.shape):
        if np.isfinite(x[at]):
            wanted[at] = Fraction(x[at]) * Fraction(2) ** int(exponent[at])
    return _towards(np.ldexp(x, exponent), wanted, mode)
