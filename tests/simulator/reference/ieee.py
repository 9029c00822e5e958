"""IEEE 754 arithmetic on bit patterns, with exact integers: every rounding mode, denormals kept or flushed.

A number is held as a bit pattern (a Python int). `Mode` is the MODE register (CDNA3 ISA, "MODE register").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

NEAREST, UP, DOWN, ZERO = range(4)
"""Rounding modes by their number in the MODE register: to nearest even, towards +inf, towards -inf, towards zero."""


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    mantissa_bits: int

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @cached_property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @cached_property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @cached_property
    def largest(self) -> int:
        return self.infinity - 1

    @cached_property
    def smallest_normal(self) -> int:
        return 1 << self.mantissa_bits

    @cached_property
    def quiet_bit(self) -> int:
        return 1 << (self.mantissa_bits - 1)

    @cached_property
    def default_nan(self) -> int:
        return self.infinity | self.quiet_bit

    @cached_property
    def one(self) -> int:
        return self.bias << self.mantissa_bits


F16, F32, F64 = Format(5, 10), Format(8, 23), Format(11, 52)
BF16 = Format(8, 7)
FORMATS = {"f16": F16, "f32": F32, "f64": F64}


@dataclass(frozen=True)
class Mode:
    """The MODE register's bits."""

    bits: int = 0x3F0

    def rounding(self, f: Format) -> int:
        return self.bits & 3 if f == F32 else self.bits >> 2 & 3

    def _denormals(self, f: Format) -> int:
        return self.bits >> 4 & 3 if f == F32 else self.bits >> 6 & 3

    def flush_in(self, f: Format, x: int) -> int:
        return x if self._denormals(f) & 1 else flush(f, x)

    def flush_out(self, f: Format, x: int) -> int:
        return x if self._denormals(f) & 2 else flush(f, x)

    @property
    def dx10_clamp(self) -> bool:
        return bool(self.bits >> 8 & 1)

    @property
    def ieee(self) -> bool:
        return bool(self.bits >> 9 & 1)

    @property
    def fp16_overflow(self) -> bool:
        return bool(self.bits >> 23 & 1)


def flush(f: Format, x: int) -> int:
    """A denormal becomes the zero of its sign."""
    return x & f.sign_bit if 0 < magnitude(f, x) < f.smallest_normal else x


def magnitude(f: Format, x: int) -> int:
    return x & ~f.sign_bit


def is_negative(f: Format, x: int) -> bool:
    return bool(x & f.sign_bit)


def is_nan(f: Format, x: int) -> bool:
    return magnitude(f, x) > f.infinity


def is_signaling(f: Format, x: int) -> bool:
    return is_nan(f, x) and not x & f.quiet_bit


def is_infinite(f: Format, x: int) -> bool:
    return magnitude(f, x) == f.infinity


def is_zero(f: Format, x: int) -> bool:
    return magnitude(f, x) == 0


def is_denormal(f: Format, x: int) -> bool:
    return 0 < magnitude(f, x) < f.smallest_normal


def quiet(f: Format, x: int) -> int:
    return x | f.quiet_bit


def exponent_field(f: Format, x: int) -> int:
    return magnitude(f, x) >> f.mantissa_bits


def order(f: Format, x: int) -> int:
    """An integer that orders numbers (not NaNs) as their values; both zeros are 0."""
    return -magnitude(f, x) if is_negative(f, x) else magnitude(f, x)


def number(f: Format, x: int) -> tuple[int, int]:
    """A finite number exactly: (m, e) with value m * 2**e."""
    field, fraction = exponent_field(f, x), x & (f.smallest_normal - 1)
    m = fraction if field == 0 else fraction | f.smallest_normal
    return (-m if is_negative(f, x) else m), max(field, 1) - f.bias - f.mantissa_bits


def encode(f: Format, m: int, e: int, rounding: int = NEAREST, zero_sign: bool = False) -> int:
    """m * 2**e rounded to the format."""
    negative = m < 0 or (m == 0 and zero_sign)
    sign = f.sign_bit if negative else 0
    if m == 0:
        return sign
    m = abs(m)
    smallest_exponent = 1 - f.bias
    unit = max(m.bit_length() - 1 + e, smallest_exponent) - f.mantissa_bits
    kept = _rounded_shift(m, unit - e, rounding, negative)
    if kept >> (f.mantissa_bits + 1):
        kept, unit = kept >> 1, unit + 1
    if kept < f.smallest_normal:
        return sign | kept
    field = unit + f.mantissa_bits + f.bias
    if field >= (1 << f.exponent_bits) - 1:
        return sign | _overflow(f, rounding, negative)
    return sign | field << f.mantissa_bits | (kept & (f.smallest_normal - 1))


def _rounded_shift(m: int, distance: int, rounding: int, negative: bool) -> int:
    if distance <= 0:
        return m << -distance
    kept, rest, half = m >> distance, m & ((1 << distance) - 1), 1 << (distance - 1)
    if rounding == NEAREST:
        up = rest > half or (rest == half and kept & 1)
    else:
        up = rest != 0 and rounding == (DOWN if negative else UP)
    return kept + bool(up)


def _overflow(f: Format, rounding: int, negative: bool) -> int:
    away = rounding in (NEAREST, DOWN if negative else UP)
    return f.infinity if away else f.largest


def ratio(f: Format, numerator: int, denominator: int, rounding: int = NEAREST) -> int:
    """numerator / denominator rounded; a zero is positive."""
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    numerator, denominator = abs(numerator), abs(denominator)
    extra = max(denominator.bit_length() - numerator.bit_length(), 0) + 2 * f.mantissa_bits + 8
    quotient, rest = divmod(numerator << extra, denominator)
    return encode(f, sign * (2 * quotient + bool(rest)), -extra - 1, rounding)


def first_nan(f: Format, *operands: int) -> int | None:
    for x in operands:
        if is_nan(f, x):
            return quiet(f, x)
    return None


def fma(mode: Mode, f: Format, x: int, y: int, z: int, exponent: int = 0) -> int:
    """(x * y + z) * 2**exponent, rounded once."""
    x, y, z = (mode.flush_in(f, v) for v in (x, y, z))
    nan = first_nan(f, x, y, z)
    if nan is not None:
        return nan
    product_sign = (x ^ y) & f.sign_bit
    if is_infinite(f, x) or is_infinite(f, y):
        opposite = is_infinite(f, z) and product_sign != z & f.sign_bit
        invalid = is_zero(f, x) or is_zero(f, y) or opposite
        return f.default_nan if invalid else product_sign | f.infinity
    if is_infinite(f, z):
        return z
    (mx, ex), (my, ey), (mz, ez) = (number(f, v) for v in (x, y, z))
    m, e, low = mx * my, ex + ey, min(ex + ey, ez)
    total = (m << (e - low)) + (mz << (ez - low))
    rounding = mode.rounding(f)
    if total == 0:
        both_zero = m == 0 and mz == 0
        same = product_sign == z & f.sign_bit
        negative = bool(product_sign) if both_zero and same else rounding == DOWN
        return f.sign_bit if negative else 0
    return mode.flush_out(f, encode(f, total, low + exponent, rounding))


def add(mode: Mode, f: Format, x: int, y: int) -> int:
    return fma(mode, f, x, f.one, y)


def subtract(mode: Mode, f: Format, x: int, y: int) -> int:
    return add(mode, f, x, y ^ f.sign_bit)


def multiply(mode: Mode, f: Format, x: int, y: int) -> int:
    x, y = mode.flush_in(f, x), mode.flush_in(f, y)
    nan = first_nan(f, x, y)
    if nan is not None:
        return nan
    sign = (x ^ y) & f.sign_bit
    if is_infinite(f, x) or is_infinite(f, y):
        return f.default_nan if is_zero(f, x) or is_zero(f, y) else sign | f.infinity
    (mx, ex), (my, ey) = number(f, x), number(f, y)
    return mode.flush_out(f, encode(f, mx * my, ex + ey, mode.rounding(f), zero_sign=bool(sign)))


def convert(mode: Mode, source: Format, target: Format, x: int, rounding: int | None = None) -> int:
    """From one format to another; a NaN keeps its sign and the upper bits of its payload."""
    x = mode.flush_in(source, x)
    sign = target.sign_bit if is_negative(source, x) else 0
    if is_nan(source, x):
        payload = quiet(source, x) & (source.smallest_normal - 1)
        distance = source.mantissa_bits - target.mantissa_bits
        moved = payload >> distance if distance > 0 else payload << -distance
        return sign | target.infinity | moved
    if is_infinite(source, x):
        return sign | target.infinity
    m, e = number(source, x)
    rounding = mode.rounding(target) if rounding is None else rounding
    result = encode(target, m, e, rounding, zero_sign=is_negative(source, x))
    if target == F16 and mode.fp16_overflow and is_infinite(target, result):
        result = sign | target.largest
    return mode.flush_out(target, result)


def to_integer(mode: Mode, f: Format, x: int, low: int, high: int) -> int:
    """Towards zero, saturated; NaN gives 0."""
    x = mode.flush_in(f, x)
    if is_nan(f, x):
        return 0
    if is_infinite(f, x):
        return low if is_negative(f, x) else high
    m, e = number(f, x)
    value = m << e if e >= 0 else (abs(m) >> -e) * (-1 if m < 0 else 1)
    return max(low, min(high, value))


def integral(mode: Mode, f: Format, x: int, rounding: int | None) -> int:
    """x rounded to an integer: DOWN is floor, UP ceil, ZERO trunc, NEAREST rndne. The sign of x stays on a zero."""
    x = mode.flush_in(f, x)
    if is_nan(f, x):
        return quiet(f, x)
    if is_infinite(f, x) or is_zero(f, x):
        return x
    m, e = number(f, x)
    if e >= 0:
        return x
    negative = m < 0
    assert rounding is not None
    whole = _rounded_shift(abs(m), -e, rounding, negative)
    return encode(f, -whole if negative else whole, 0, NEAREST, zero_sign=negative)


def minimum(mode: Mode, f: Format, x: int, y: int) -> int:
    return _extreme(mode, f, x, y, want_larger=False)


def maximum(mode: Mode, f: Format, x: int, y: int) -> int:
    return _extreme(mode, f, x, y, want_larger=True)


def _extreme(mode: Mode, f: Format, x: int, y: int, *, want_larger: bool) -> int:
    """V_MIN_F32 and V_MAX_F32: in IEEE mode a signalling NaN wins, otherwise any NaN loses; -0 is less than +0."""
    x, y = mode.flush_in(f, x), mode.flush_in(f, y)
    if mode.ieee and is_signaling(f, x):
        return quiet(f, x)
    if mode.ieee and is_signaling(f, y):
        return quiet(f, y)
    if is_nan(f, x):
        return mode.flush_out(f, y)
    if is_nan(f, y):
        return mode.flush_out(f, x)
    if is_zero(f, x) and is_zero(f, y):
        return x & y if want_larger else x | y
    first = order(f, x) > order(f, y) if want_larger else order(f, x) < order(f, y)
    return mode.flush_out(f, x if first else y)
