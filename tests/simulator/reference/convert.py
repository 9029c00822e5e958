"""Conversions between number formats."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulator.reference import ieee
from tests.simulator.reference.case import M16, M32, Case, case, clamp, field, integer, s16, s32
from tests.simulator.reference.ieee import BF16, DOWN, F16, F32, F64, NEAREST, ZERO, Format, Mode

CASES: dict[str, Case] = {}


def from_integer(mode: Mode, f: Format, value: int) -> int:
    result = ieee.encode(f, value, 0, mode.rounding(f))
    if f == F16 and mode.fp16_overflow and ieee.is_infinite(f, result):
        return (result & f.sign_bit) | f.largest
    return result


for _t, _f, _bits in (("f32", F32, 32), ("f64", F64, 32), ("f16", F16, 16)):
    _i, _top = f"i{_bits}", (1 << _bits) - 1
    _half = 1 << (_bits - 1)
    _signed = s16 if _bits == 16 else s32
    CASES[f"v_cvt_{_t}_i{_bits}"] = case(f"{_t} = {_i}", lambda mode, a, f=_f, s=_signed: from_integer(mode, f, s(a)))
    CASES[f"v_cvt_{_t}_u{_bits}"] = case(f"{_t} = {_i}", lambda mode, a, f=_f: from_integer(mode, f, a))
    CASES[f"v_cvt_i{_bits}_{_t}"] = case(
        f"{_i} = {_t}", lambda mode, x, f=_f, h=_half: ieee.to_integer(mode, f, x, -h, h - 1)
    )
    CASES[f"v_cvt_u{_bits}_{_t}"] = case(
        f"{_i} = {_t}", lambda mode, x, f=_f, top=_top: ieee.to_integer(mode, f, x, 0, top)
    )

for _from, _to in (("f32", "f16"), ("f16", "f32"), ("f64", "f32"), ("f32", "f64")):
    CASES[f"v_cvt_{_to}_{_from}"] = case(
        f"{_to} = {_from}",
        lambda mode, x, a=ieee.FORMATS[_from], b=ieee.FORMATS[_to]: ieee.convert(mode, a, b, x),
        exact_nan=True,
    )

_I32 = -(1 << 31), (1 << 31) - 1


def floor_to_integer(mode: Mode, x: int) -> int:
    return ieee.to_integer(mode, F32, ieee.integral(mode, F32, x, DOWN), *_I32)


CASES["v_cvt_flr_i32_f32"] = case("i32 = f32", floor_to_integer)
CASES["v_cvt_rpi_i32_f32"] = case(
    "i32 = f32", lambda mode, x: floor_to_integer(mode, ieee.add(mode, F32, x, ieee.encode(F32, 1, -1)))
)
for _position in range(4):
    CASES[f"v_cvt_f32_ubyte{_position}"] = integer(
        "f32 = i32", lambda a, p=_position: ieee.encode(F32, field(a, p, 8), 0)
    )
CASES["v_cvt_off_f32_i4"] = integer("f32 = i32", lambda a: ieee.encode(F32, (a & 15) - 16 if a & 8 else a & 15, -4))

# --- two results in one register


def pack(low: int, high: int) -> int:
    return low & M16 | (high & M16) << 16


def towards_zero(mode: Mode, x: int) -> int:
    return ieee.convert(mode, F32, F16, x, ZERO)


CASES["v_pack_b32_f16"] = integer("i32 = i16 i16", pack)
CASES["v_cvt_pkrtz_f16_f32"] = case(
    "f16x2 = f32 f32", lambda mode, x, y: pack(towards_zero(mode, x), towards_zero(mode, y))
)


def nearest_bf16(mode: Mode, x: int) -> int:
    """A NaN keeps its upper bits."""
    if ieee.is_nan(F32, x):
        return ieee.quiet(F32, x) >> 16
    return ieee.convert(Mode(), F32, BF16, x)


CASES["v_cvt_pk_bf16_f32"] = case(
    "i32 = f32 f32", lambda mode, x, y: pack(nearest_bf16(mode, x), nearest_bf16(mode, y))
)
CASES["v_cvt_pk_u16_u32"] = integer("i32 = i32 i32", lambda a, b: pack(min(a, M16), min(b, M16)))
CASES["v_cvt_pk_i16_i32"] = integer(
    "i32 = i32 i32", lambda a, b: pack(clamp(s32(a), -0x8000, 0x7FFF), clamp(s32(b), -0x8000, 0x7FFF))
)


def normalized(mode: Mode, f: Format, x: int, *, signed: bool) -> int:
    """[-1, 1] to [-32767, 32767], or [0, 1] to [0, 65535], to nearest even; NaN to 0."""
    x = mode.flush_in(f, x)
    largest, low = (32767, -32767) if signed else (65535, 0)
    if ieee.is_nan(f, x):
        return 0
    if ieee.is_infinite(f, x):
        return low & M16 if ieee.is_negative(f, x) else largest
    m, e = ieee.number(f, x)
    m *= largest
    rounded = m << e if e >= 0 else ieee._rounded_shift(abs(m), -e, NEAREST, m < 0) * (-1 if m < 0 else 1)
    return clamp(rounded, low, largest) & M16


for _t, _f in (("f32", F32), ("f16", F16)):
    for _letter in "iu":
        CASES[f"v_cvt_pknorm_{_letter}16_{_t}"] = case(
            f"i32 = {_t} {_t}",
            lambda mode, x, y, f=_f, s=_letter == "i": pack(
                normalized(mode, f, x, signed=s), normalized(mode, f, y, signed=s)
            ),
        )
for _letter in "iu":
    CASES[f"v_cvt_norm_{_letter}16_f16"] = case(
        "i16 = f16", lambda mode, x, s=_letter == "i": normalized(mode, F16, x, signed=s)
    )


def byte_from_float(mode: Mode, x: int, position: int, old: int) -> int:
    """V_CVT_PK_U8_F32: one byte of a register, towards zero and saturated."""
    value = ieee.to_integer(mode, F32, x, 0, 255)
    at = 8 * (position & 3)
    return old & ~(0xFF << at) & M32 | value << at


CASES["v_cvt_pk_u8_f32"] = case("i32 = f32 i32 i32", byte_from_float)
CASES["v_cvt_pkaccum_u8_f32"] = case("i32 = f32 i32 old", byte_from_float)

# --- 8-bit floats, FNUZ: no infinities, no negative zero, 0x80 is NaN


@dataclass(frozen=True)
class Float8:
    exponent_bits: int
    mantissa_bits: int
    bias: int

    def value(self, code: int) -> tuple[int, int]:
        """(m, e) of a code that is not NaN."""
        exponent, fraction = (code & 0x7F) >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        m = fraction if exponent == 0 else fraction | 1 << self.mantissa_bits
        return (-m if code & 0x80 else m), max(exponent, 1) - self.bias - self.mantissa_bits

    def encode(self, m: int, e: int) -> int:
        """Nearest even magnitude code, or 0x80 and above where the number is too large."""
        unit = max(m.bit_length() - 1 + e, 1 - self.bias) - self.mantissa_bits
        kept = ieee._rounded_shift(m, unit - e, NEAREST, False)
        if kept >> (self.mantissa_bits + 1):
            kept, unit = kept >> 1, unit + 1
        if kept < 1 << self.mantissa_bits:
            return kept
        exponent = unit + self.mantissa_bits + self.bias
        return exponent << self.mantissa_bits | kept & ((1 << self.mantissa_bits) - 1)


FP8, BF8 = Float8(4, 3, 8), Float8(5, 2, 16)


def decode8(f: Float8, code: int) -> int:
    return F32.default_nan if code == 0x80 else ieee.encode(F32, *f.value(code))


def finish8(mode: Mode, negative: bool, code: int) -> int:
    if code > 0x7F:
        if not mode.fp16_overflow:
            return 0x80
        code = 0x7F
    return code | 0x80 if negative and code else code


def encode8(mode: Mode, f: Float8, x: int) -> int:
    if ieee.is_nan(F32, x):
        return 0x80
    negative = ieee.is_negative(F32, x)
    if ieee.is_infinite(F32, x):
        return finish8(mode, negative, 0x80)
    m, e = ieee.number(F32, mode.flush_in(F32, x))
    return finish8(mode, negative, f.encode(abs(m), e))


for _name, _format in (("fp8", FP8), ("bf8", BF8)):
    CASES[f"v_cvt_f32_{_name}"] = integer("f32 = i32", lambda a, f=_format: decode8(f, a & 0xFF))
    CASES[f"v_cvt_pk_f32_{_name}"] = integer(
        "f32x2 = i32", lambda a, f=_format: decode8(f, a & 0xFF) | decode8(f, a >> 8 & 0xFF) << 32
    )
    CASES[f"v_cvt_pk_{_name}_f32"] = case(
        "i16~ = f32 f32", lambda mode, x, y, f=_format: encode8(mode, f, x) | encode8(mode, f, y) << 8
    )


def stochastic8(mode: Mode, f: Float8, x: int, random: int, old: int) -> int:
    """The highest random bits are added below the last place that is kept, and the sum is truncated."""
    kept = old & ~0xFF
    if ieee.is_nan(F32, x):
        return kept | 0x80
    negative = ieee.is_negative(F32, x)
    if ieee.is_infinite(F32, x):
        return kept | finish8(mode, negative, 0x80)
    dropped = 23 - f.mantissa_bits
    m, e = ieee.number(F32, mode.flush_in(F32, x))
    m = abs(m)
    if m == 0:
        return kept
    # Aligned to 23 bits below the place of the leading one, or of the smallest normal number's.
    length = m.bit_length()
    m, e = m << (24 - length), e - (24 - length)
    missing = max(1 - f.bias - (e + 23), 0)
    units = ((m >> min(missing, 60)) + (random >> (32 - dropped))) >> dropped
    if missing:
        return kept | finish8(mode, negative, units)
    exponent = e + 23 + f.bias
    code = ((exponent - 1) << f.mantissa_bits) + units
    return kept | finish8(mode, negative, code)


for _name, _format in (("fp8", FP8), ("bf8", BF8)):
    CASES[f"v_cvt_sr_{_name}_f32"] = case(
        "i32 = f32 i32 old", lambda mode, x, random, old, f=_format: stochastic8(mode, f, x, random, old)
    )
