"""Floats of 8, 6 and 4 bits: their formats, and how they become f32 and f32 becomes them.

A code is an i32 that holds sign, exponent and mantissa in its lowest bits. Formats differ in the codes that are not
numbers:

| kind | infinities | NaN | zero |
| --- | --- | --- | --- |
| "fnuz" | none | the code of negative zero | has no sign |
| "fn" | none | all ones but the sign | has a sign |
| "ieee" | as in IEEE 754 | as in IEEE 754 | has a sign |
| "finite" | none | none | has a sign |

Sources: "OCP 8-bit Floating Point Specification", "OCP Microscaling Formats (MX) Specification", and the CDNA 3 ISA for
"fnuz".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flydsl.simulator.isa.builder import Builder, Value

_QUIET_NAN = 0x7FC00000


@dataclass(frozen=True)
class NarrowFloat:
    """A format of sign, exponent and mantissa."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    kind: str

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def sign(self) -> int:
        """The code of the sign alone."""
        return 1 << (self.bits - 1)

    @property
    def dropped_bits(self) -> int:
        """The number of f32 mantissa bits that do not fit."""
        return 23 - self.mantissa_bits

    @property
    def smallest_exponent(self) -> int:
        """The smallest exponent of normal numbers."""
        return 1 - self.bias

    @property
    def infinity(self) -> int:
        """The code of infinity in formats that have one, else the code after that of the largest number."""
        all_ones = self.sign - 1
        return {"ieee": all_ones >> self.mantissa_bits << self.mantissa_bits, "fn": all_ones}.get(self.kind, self.sign)

    @property
    def largest(self) -> int:
        """The code of the largest number."""
        return self.infinity - 1


FNUZ = {"fp8": NarrowFloat(4, 3, 8, "fnuz"), "bf8": NarrowFloat(5, 2, 16, "fnuz")}
"""The 8-bit floats of CDNA 3."""
OCP = {"fp8": NarrowFloat(4, 3, 7, "fn"), "bf8": NarrowFloat(5, 2, 15, "ieee")}
"""The 8-bit floats of later GPUs, by the OCP's specification."""
MICROSCALING = OCP | {
    "fp6": NarrowFloat(2, 3, 1, "finite"),
    "bf6": NarrowFloat(3, 2, 3, "finite"),
    "fp4": NarrowFloat(2, 1, 1, "finite"),
}
"""The elements of blocks that share a scale."""
UNSIGNED = NarrowFloat(5, 3, 15, "fn")
"""UE5M3 of gfx1250, a format of scales: a byte without a sign, which here is a ninth bit."""
BY_INSTRUCTION_SET = {"fnuz": FNUZ, "ocp": OCP}


def decode(b: Builder, code: Value, format_: NarrowFloat) -> Value:
    """The f32 of a code. Exact."""
    magnitude = b.and_(code, b.const("i32", format_.sign - 1))
    rebias = b.const("i32", (127 - format_.bias) << 23)
    normal = b.bitcast(b.add(b.shl(magnitude, b.const("i32", format_.dropped_bits)), rebias), "f32")
    unit = b.const("f32", 2.0 ** (format_.smallest_exponent - format_.mantissa_bits))
    denormal = b.fmul(b.uitofp(magnitude, "f32"), unit)
    is_denormal = b.icmp("ult", magnitude, b.const("i32", 1 << format_.mantissa_bits))
    value = b.select(is_denormal, denormal, normal)
    if format_.kind == "ieee":
        is_infinite = b.icmp("eq", magnitude, b.const("i32", format_.infinity))
        value = b.select(is_infinite, b.const("f32", float("inf")), value)
    value = b.select(b.icmp("uge", code, b.const("i32", format_.sign)), b.fneg(value), value)
    nan = b.bitcast(b.const("i32", _QUIET_NAN), "f32")
    if format_.kind == "fnuz":
        return b.select(b.icmp("eq", code, b.const("i32", format_.sign)), nan, value)
    if format_.kind == "finite":
        return value
    return b.select(b.icmp("ugt", magnitude, b.const("i32", format_.infinity - (format_.kind == "fn"))), nan, value)


def decode_all(b: Builder, codes: Sequence[Value], format_: NarrowFloat) -> list[Value]:
    """The f32s of codes. Exact."""
    return [b.shared(lambda b, code: decode(b, code, format_), code) for code in codes]


def encode_all(b: Builder, numbers: Sequence[Value], format_: NarrowFloat) -> list[Value]:
    """The codes nearest to f32s, ties to even."""
    return [b.shared(lambda b, x: encode(b, x, format_), x) for x in numbers]


def encode(b: Builder, x: Value, format_: NarrowFloat) -> Value:
    """The code nearest to an f32, ties to even."""
    bits = b.and_(b.bitcast(x, "i32"), b.const("i32", 0x7FFFFFFF))
    dropped = b.const("i32", format_.dropped_bits)
    lowest_kept = b.and_(b.lshr(bits, dropped), b.const("i32", 1))
    half = b.const("i32", (1 << (format_.dropped_bits - 1)) - 1)
    rebias = b.const("i32", (127 - format_.bias) << format_.mantissa_bits)
    normal = b.sub(b.lshr(b.add(bits, b.add(half, lowest_kept)), dropped), rebias)
    return _finish(b, x, normal, _denormal(b, bits, format_), format_)


def _denormal(b: Builder, bits: Value, format_: NarrowFloat) -> Value:
    """The code, which counts units of the last place, of an f32 magnitude below the smallest normal number."""
    exponent = b.lshr(bits, b.const("i32", 23))
    mantissa = b.or_(b.and_(bits, b.const("i32", 0x7FFFFF)), b.const("i32", 0x800000))
    distance = b.sub(b.const("i32", 127 + format_.smallest_exponent + format_.dropped_bits), exponent)
    largest = b.const("i32", 31)  # beyond that nothing is left
    distance = b.select(b.icmp("ugt", distance, largest), largest, distance)
    one = b.const("i32", 1)
    lowest_kept = b.and_(b.lshr(mantissa, distance), one)
    # A magnitude at distance 0 is not below, and its code is not used: the mask makes it a number all the same.
    half = b.sub(b.shl(one, b.and_(b.sub(distance, one), largest)), one)
    return b.lshr(b.add(mantissa, b.add(half, lowest_kept)), distance)


def encode_stochastically(b: Builder, x: Value, random: Value, format_: NarrowFloat) -> Value:
    """Add the uppermost random bits below the last place that is kept, and truncate."""
    bits = b.and_(b.bitcast(x, "i32"), b.const("i32", 0x7FFFFFFF))
    dropped = b.const("i32", format_.dropped_bits)
    noise = b.lshr(random, b.const("i32", 32 - format_.dropped_bits))
    rebias = b.const("i32", (127 - format_.bias) << format_.mantissa_bits)
    normal = b.sub(b.lshr(b.add(bits, noise), dropped), rebias)
    exponent = b.lshr(bits, b.const("i32", 23))
    mantissa = b.or_(b.and_(bits, b.const("i32", 0x7FFFFF)), b.const("i32", 0x800000))
    missing = b.sub(b.const("i32", 127 + format_.smallest_exponent), exponent)
    missing = b.select(b.icmp("ugt", missing, b.const("i32", 31)), b.const("i32", 31), missing)
    denormal = b.lshr(b.add(b.lshr(mantissa, missing), noise), dropped)
    return _finish(b, x, normal, denormal, format_)


def _finish(b: Builder, x: Value, normal: Value, denormal: Value, format_: NarrowFloat) -> Value:
    """The code of x from the one for normal and the one for denormal numbers, with sign, zero, NaN and overflow.

    Overflow saturates in formats without infinities and NaNs, and with MODE.FP16_OVFL, except for an x that is itself
    infinite. NaN becomes the largest number in formats without a NaN.
    """
    limit = b.const("f32", 2.0**format_.smallest_exponent)
    code = b.select(b.fcmp("olt", b.fabs(x), limit), denormal, normal)
    sign = b.and_(b.lshr(b.bitcast(x, "i32"), b.const("i32", 32 - format_.bits)), b.const("i32", format_.sign))
    largest, is_nan = b.const("i32", format_.largest), b.fcmp("uno", x, x)
    too_large = b.icmp("ugt", code, largest)
    saturated = b.select(too_large, largest, code)
    choose: Callable[..., Value] = {"fnuz": _finish_fnuz, "finite": _finish_finite}.get(format_.kind, _finish_signed)
    return choose(b, x, saturated, too_large, sign, is_nan, format_)


def _finish_fnuz(
    b: Builder, x: Value, code: Value, too_large: Value, sign: Value, is_nan: Value, format_: NarrowFloat
) -> Value:
    zero, nan = b.const("i32", 0), b.const("i32", format_.sign)
    signed = b.select(b.icmp("eq", code, zero), zero, b.or_(code, sign))
    overflowed = signed if b.overflow_saturates() else b.select(too_large, nan, signed)
    return b.select(is_nan, nan, overflowed)


def _finish_finite(
    b: Builder, x: Value, code: Value, too_large: Value, sign: Value, is_nan: Value, format_: NarrowFloat
) -> Value:
    return b.or_(b.select(is_nan, b.const("i32", format_.largest), code), sign)


def _finish_signed(
    b: Builder, x: Value, code: Value, too_large: Value, sign: Value, is_nan: Value, format_: NarrowFloat
) -> Value:
    is_infinite = b.fcmp("oeq", b.fabs(x), b.const("f32", float("inf")))
    beyond = is_infinite if b.overflow_saturates() else too_large
    code = b.select(beyond, b.const("i32", format_.infinity), code)
    return b.or_(b.select(is_nan, b.const("i32", format_.sign - 1), code), sign)
