"""Float operations that numpy lacks, rounded once and to nearest even, on arrays.

Sources of the methods: Knuth's TwoSum; Dekker's product; Boldo and Melquiond, "Emulation of FMA and correctly rounded
sums: proved algorithms using rounding to odd" (IEEE Transactions on Computers, 2008).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from flydsl.simulator.arrays import Array


def flush_denormals(x: Array) -> Array:
    """Replace denormals by zeros of the same sign."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def quiet(x: Array) -> Array:
    """Set the quiet bit of NaNs."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    bit = unsigned.type(1 << (np.finfo(x.dtype).nmant - 1))
    return np.where(np.isnan(x), (np.ascontiguousarray(x).view(unsigned) | bit).view(x.dtype), x)


def to_integer(x: Array, low: int, high: int) -> Array:
    """x rounded towards zero and saturated to [low, high] (at most 32 bits wide), as i64; 0 for a NaN."""
    wide = np.where(np.isnan(x), 0.0, x.astype(np.float64))
    return np.clip(np.trunc(wide), low, high).astype(np.int64)


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded sum and its rounding error: together exactly x + y."""
    total = x + y
    y_part = total - x
    return total, (x - (total - y_part)) + (y - y_part)


def add_to_odd(x: Array, y: Array) -> Array:
    """x + y (f64) rounded to odd: an inexact sum ends in a one bit, so that rounding it again is harmless."""
    total, error = two_sum(x, y)
    bits = np.ascontiguousarray(total).view(np.int64)
    inexact_and_even = (error != 0) & ((bits & 1) == 0) & np.isfinite(total)
    # Towards the error: away from zero if the signs of sum and error agree, else towards zero.
    step = np.where((error > 0) == (total > 0), 1, -1)
    return (bits + np.where(inexact_and_even, step, 0)).view(np.float64)


def fma(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once to the type of the operands."""
    if x.dtype == np.float64:
        return _fma_f64(x, y, z)
    return fma_to_odd(x, y, z).astype(x.dtype)


def scaled_fma(x: Array, y: Array, z: Array, exponent: Array) -> Array:
    """(x * y + z) * 2**exponent, rounded once."""
    if x.dtype != np.float64:
        return np.ldexp(fma_to_odd(x, y, z), exponent).astype(x.dtype)
    result = np.asarray(np.ldexp(_fma_f64(x, y, z), exponent))
    denormal = (np.abs(result) < 2.0**-1021) & np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    for where in zip(*np.nonzero(denormal), strict=True):
        x1, y1, z1, e = (np.broadcast_to(v, result.shape)[where] for v in (x, y, z, exponent))
        result[where] = _by_fractions(float(x1), float(y1), float(z1), int(e))
    return result


def fma_to_odd(x: Array, y: Array, z: Array) -> Array:
    """x * y + z of narrower floats in f64, rounded to odd. The product is exact."""
    return add_to_odd(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64))


def _fma_f64(x: Array, y: Array, z: Array) -> Array:
    x, y, z = (np.ascontiguousarray(v) for v in np.broadcast_arrays(x, y, z))
    # An infinite z would meet the infinity of a product that overflows.
    result = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, x * y + z)
    high, low = _product(x, y)
    upper, upper_error = two_sum(z, low)
    total, total_error = two_sum(high, upper)
    careful = total + add_to_odd(total_error, upper_error)
    # The proof needs that no intermediate overflows or is denormal; a zero result has its sign from the plain sum.
    safe = _moderate(x) & _moderate(y) & _moderate(z) & _moderate(high) & _moderate(careful)
    safe &= (high != 0) | (x == 0) | (y == 0)
    result = np.where(safe & (careful != 0), careful, result)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    for where in zip(*np.nonzero(~safe & finite), strict=True):
        result[where] = _by_fractions(float(x[where]), float(y[where]), float(z[where]))
    return result


def _moderate(x: Array) -> Array:
    magnitude = np.abs(x)
    return ((magnitude < 1e290) & (magnitude > 1e-250)) | (x == 0)


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded product and its error (Dekker); exact where nothing overflows or underflows."""
    x_high, y_high = _upper_half(x), _upper_half(y)
    x_low, y_low = x - x_high, y - y_high
    product = x * y
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _upper_half(x: Array) -> Array:
    scaled = x * 134217729.0  # 2**27 + 1
    return scaled - (scaled - x)


def _by_fractions(x: float, y: float, z: float, exponent: int = 0) -> float:
    exact = (Fraction(x) * Fraction(y) + Fraction(z)) * Fraction(2) ** exponent
    if exact == 0:
        return x * y + z  # the plain sum has the right sign of zero
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def ldexp(x: Array, exponent: Array) -> Array:
    """x * 2**exponent rounded once, to x's type."""
    if x.dtype == np.float64:
        return np.ldexp(x, exponent)
    return np.ldexp(x.astype(np.float64), np.clip(exponent, -1000, 900)).astype(x.dtype)
