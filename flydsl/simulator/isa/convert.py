"""Conversions between number formats."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.atomics import round_to_bf16, to_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, insert_half
from flydsl.simulator.isa.narrow_floats import (
    BY_INSTRUCTION_SET,
    OCP,
    NarrowFloat,
    decode,
    encode,
    encode_stochastically,
)
from flydsl.simulator.isa.table import define

# --- between floats, and between floats and integers


def saturated_already(convert: Any) -> Any:
    """An operation that takes the word `modifiers` only because clamp, which saturates, changes nothing."""
    return lambda b, *operands_and_modifiers: convert(b, *operands_and_modifiers[:-1])


for _from, _to in (("f32", "f16"), ("f64", "f32")):
    define(f"v_cvt_{_to}_{_from}", f"{_to} = {_from}", lambda b, x, t=_to: b.fptrunc(x, t))
    define(f"v_cvt_{_from}_{_to}", f"{_from} = {_to}", lambda b, x, t=_from: b.fpext(x, t))
for _float, _integer in (("f32", "32"), ("f64", "32"), ("f16", "16")):
    _type = f"i{_integer}"
    define(f"v_cvt_{_float}_i{_integer}", f"{_float} = {_type}", lambda b, x, t=_float: b.sitofp(x, t))
    define(f"v_cvt_{_float}_u{_integer}", f"{_float} = {_type}", lambda b, x, t=_float: b.uitofp(x, t))
    _to_integer = f"{_type} = {_float} modifiers"
    define(f"v_cvt_i{_integer}_{_float}", _to_integer, saturated_already(lambda b, x, t=_type: b.fptosi(x, t)))
    define(f"v_cvt_u{_integer}_{_float}", _to_integer, saturated_already(lambda b, x, t=_type: b.fptoui(x, t)))
define("v_cvt_flr_i32_f32", "i32 = f32 modifiers", saturated_already(lambda b, x: b.fptosi(b.floor(x), "i32")))


def _nearest_integer(b: Builder, x: Value) -> Value:
    """floor(x + 0.5), whatever the rounding mode: the sum is exact in f64, or nearer to 0.5 than to an integer."""
    return b.fptosi(b.floor(b.fadd(b.fpext(x, "f64"), b.const("f64", 0.5))), "i32")


define("v_cvt_rpi_i32_f32", "i32 = f32 modifiers", saturated_already(_nearest_integer))


def byte_of(b: Builder, x: Value, position: int) -> Value:
    return b.and_(b.lshr(x, b.const("i32", 8 * position)), b.const("i32", 0xFF))


for _position in range(4):
    define(f"v_cvt_f32_ubyte{_position}", "f32 = i32", lambda b, x, p=_position: b.uitofp(byte_of(b, x, p), "f32"))

# --- two results in one register


def pack_halves(b: Builder, low: Value, high: Value) -> Value:
    """Two 16-bit values as one dword."""
    low, high = b.bitcast(low, "i16"), b.bitcast(high, "i16")
    return b.or_(b.zext(low, "i32"), b.shl(b.zext(high, "i32"), b.const("i32", 16)))


def _towards_zero_f16(b: Builder, x: Value) -> Value:
    """An f16 rounded towards zero in any mode: bits beyond an f16 are cleared first, and large numbers are limited."""
    bits = b.bitcast(x, "i32")
    exponent = b.and_(b.lshr(bits, b.const("i32", 23)), b.const("i32", 0xFF))
    missing = b.sub(b.const("i32", 113), exponent)  # places that a denormal f16 lacks
    missing = b.select(b.icmp("slt", missing, b.const("i32", 0)), b.const("i32", 0), missing)
    too_small = b.icmp("sgt", missing, b.const("i32", 10))
    distance = b.add(b.select(too_small, b.const("i32", 10), missing), b.const("i32", 13))
    sign = b.and_(bits, b.const("i32", 0x80000000))
    cleared = b.select(too_small, sign, b.shl(b.lshr(bits, distance), distance))
    limit = b.or_(sign, b.bitcast(b.const("f32", 65504.0), "i32"))
    finite = b.fcmp("olt", b.fabs(x), b.const("f32", float("inf")))
    limited = b.select(b.fcmp("ogt", b.fabs(x), b.const("f32", 65504.0)), limit, cleared)
    return b.bitcast(b.fptrunc(b.select(finite, b.bitcast(limited, "f32"), x), "f16"), "i16")


def _saturated(b: Builder, x: Value, *, signed: bool) -> Value:
    """An i32 clamped to 16 bits."""
    low, high = (-32768, 32767) if signed else (0, 65535)
    less, greater = ("slt", "sgt") if signed else ("ult", "ugt")
    x = b.select(b.icmp(greater, x, b.const("i32", high)), b.const("i32", high), x)
    x = b.select(b.icmp(less, x, b.const("i32", low)), b.const("i32", low), x)
    return b.trunc(x, "i16")


define("v_pack_b32_f16", "i32 = f16 f16", pack_halves)
define(
    "v_cvt_pkrtz_f16_f32",
    "i32 = f32 f32",
    lambda b, x, y: pack_halves(b, _towards_zero_f16(b, x), _towards_zero_f16(b, y)),
)
for _letter, _signed in (("i", True), ("u", False)):
    define(
        f"v_cvt_pk_{_letter}16_{_letter}32",
        "i32 = i32 i32",
        lambda b, x, y, s=_signed: pack_halves(b, _saturated(b, x, signed=s), _saturated(b, y, signed=s)),
    )
define(
    "v_cvt_pk_bf16_f32",
    "i32 = f32 f32",
    lambda b, x, y: pack_halves(b, round_to_bf16(b, x), round_to_bf16(b, y)),
    of="cdna4 cdna5",
)


@curried
def _normalized(type_: str, b: Builder, x: Value, *, signed: bool) -> Value:
    """[-1, 1] as -32767 to 32767, or [0, 1] as 0 to 65535, to the nearest even; NaN as 0."""
    low, high = (-32767, 32767) if signed else (0, 65535)
    single = b.fpext(x, "f32") if type_ == "f16" else x
    scaled = b.fmul(b.fpext(single, "f64"), b.const("f64", float(high)))  # exact
    whole = b.fptosi(b.roundeven(scaled), "i32")
    whole = b.select(b.icmp("slt", whole, b.const("i32", low)), b.const("i32", low), whole)
    return b.trunc(b.select(b.icmp("sgt", whole, b.const("i32", high)), b.const("i32", high), whole), "i16")


def _pair_of(convert: Any) -> Any:
    return lambda b, x, y: pack_halves(b, convert(b, x), convert(b, y))


for _letter, _signed in (("i", True), ("u", False)):
    for _type in ("f16", "f32"):
        define(
            f"v_cvt_pknorm_{_letter}16_{_type}", f"i32 = {_type} {_type}", _pair_of(_normalized(_type, signed=_signed))
        )
    _convert = saturated_already(_normalized("f16", signed=_signed))
    define(f"v_cvt_norm_{_letter}16_f16", "i16 = f16 modifiers", _convert)


def _insert_u8(b: Builder, x: Value, position: Value, old: Value) -> Value:
    """x towards zero, saturated to 8 bits, as byte `position` of a dword."""
    value, largest = b.fptoui(x, "i32"), b.const("i32", 0xFF)
    value = b.select(b.icmp("ugt", value, largest), largest, value)
    at = b.mul(b.and_(position, b.const("i32", 3)), b.const("i32", 8))
    return b.or_(b.and_(old, b.not_(b.shl(largest, at))), b.shl(value, at))


define("v_cvt_pk_u8_f32", "i32 = f32 i32 i32 modifiers", saturated_already(_insert_u8))
define("v_cvt_pkaccum_u8_f32", "i32 = f32 i32 dst", _insert_u8)


def _offset_from_i4(b: Builder, x: Value) -> Value:
    """The lowest four bits, signed, in sixteenths."""
    up = b.const("i32", 28)
    return b.fmul(b.sitofp(b.ashr(b.shl(x, up), up), "f32"), b.const("f32", 1 / 16))


define("v_cvt_off_f32_i4", "f32 = i32", _offset_from_i4)


# --- 8-bit floats


def _define_float8(name: str, format_: NarrowFloat, of: str) -> None:
    def pair(b: Builder, x: Value, y: Value) -> Value:
        high = b.shl(encode(b, y, format_), b.const("i32", 8))
        return b.trunc(b.or_(encode(b, x, format_), high), "i16")

    def stochastic(b: Builder, x: Value, random: Value, old: Value, modifiers: Any) -> Value:
        return insert_byte(b, old, encode_stochastically(b, x, random, format_), modifiers)

    def decode_pair(b: Builder, x: Value) -> Value:
        low, high = (b.bitcast(decode(b, byte_of(b, x, i), format_), "i32") for i in range(2))
        return low, high

    define(f"v_cvt_pk_{name}_f32", "i16~ = f32 f32", pair, of=of)
    define(f"v_cvt_sr_{name}_f32", "i32 = f32 i32 dst modifiers", stochastic, of=of)
    define(f"v_cvt_f32_{name}", "f32 = i32", lambda b, x: decode(b, byte_of(b, x, 0), format_), of=of)
    define(f"v_cvt_pk_f32_{name}", "i32x2 = i32", decode_pair, of=of)


def insert_byte(b: Builder, old: Value, code: Value, modifiers: Any) -> Value:
    """`old` with the byte replaced that the last two bits of op_sel name."""
    low, high = modifiers.bits("op_sel", 4)[2:]
    at = b.const("i32", 8 * (low + 2 * high))
    return b.or_(b.and_(old, b.not_(b.shl(b.const("i32", 0xFF), at))), b.shl(code, at))


for _set, _formats in BY_INSTRUCTION_SET.items():
    for _name, _format in _formats.items():
        _define_float8(_name, _format, _set)

# --- 16-bit floats of an f32 with random bits below the last place that is kept, and bf16


@curried
def _stochastic_half(convert: Any, b: Builder, x: Value, random: Value, old: Value, modifiers: Any) -> Value:
    """The third bit of op_sel names the half of the register that is replaced."""
    half = b.zext(convert(b, x, random), "i32")
    return insert_half(b, old, half, high=bool(modifiers.bits("op_sel", 4)[2]))


def stochastic_bf16(b: Builder, x: Value, random: Value) -> Value:
    bits = b.bitcast(x, "i32")
    noisy = b.add(bits, b.lshr(random, b.const("i32", 16)))
    is_finite = b.fcmp("olt", b.fabs(x), b.const("f32", float("inf")))
    quiet = b.select(b.fcmp("uno", x, x), b.or_(bits, b.const("i32", 0x0040_0000)), bits)
    return b.trunc(b.lshr(b.select(is_finite, noisy, quiet), b.const("i32", 16)), "i16")


_F16 = NarrowFloat(5, 10, 15, "ieee")


def stochastic_f16(b: Builder, x: Value, random: Value) -> Value:
    code = b.trunc(encode_stochastically(b, x, random, _F16), "i16")
    return b.select(b.fcmp("uno", x, x), b.bitcast(b.fptrunc(x, "f16"), "i16"), code)


define("v_cvt_sr_bf16_f32", "i32 = f32 i32 dst modifiers", _stochastic_half(stochastic_bf16), of="cdna4")
define("v_cvt_sr_f16_f32", "i32 = f32 i32 dst modifiers", _stochastic_half(stochastic_f16), of="cdna4")
define("v_cvt_f32_bf16", "f32 = bfloat", lambda b, x: to_float(b, x, "bf16"), of="cdna4 cdna5")
define(
    "v_cvt_pk_f16_f32",
    "i32 = f32 f32",
    lambda b, x, y: pack_halves(b, b.fptrunc(x, "f16"), b.fptrunc(y, "f16")),
    of="cdna4 cdna5",
)


def _define_float8_of_rdna(name: str, format_: NarrowFloat) -> None:
    """Define the forms with a byte_sel, and with halves of registers."""

    def chosen(b: Builder, x: Value, modifiers: Any) -> Value:
        return decode(b, byte_of(b, x, modifiers.integer("byte_sel")), format_)

    def pair(b: Builder, x: Value) -> tuple[Value, Value]:
        wide = b.zext(x, "i32")
        low, high = (b.bitcast(decode(b, byte_of(b, wide, i), format_), "i32") for i in range(2))
        return low, high

    def stochastic(b: Builder, x: Value, random: Value, old: Value, modifiers: Any) -> Value:
        at = b.const("i32", 8 * modifiers.integer("byte_sel"))
        code = encode_stochastically(b, x, random, format_)
        return b.or_(b.and_(old, b.not_(b.shl(b.const("i32", 0xFF), at))), b.shl(code, at))

    define(f"v_cvt_f32_{name}", "f32 = i32 modifiers", chosen, of="rdna")
    define(f"v_cvt_pk_f32_{name}", "i32x2 = i16", pair, of="rdna")
    define(f"v_cvt_sr_{name}_f32", "i32 = f32 i32 dst modifiers", stochastic, of="rdna")


for _name, _format in OCP.items():
    _define_float8_of_rdna(_name, _format)


def _define_float8_and_half(name: str, format_: NarrowFloat) -> None:
    """Define the conversions between 8-bit floats and f16, of gfx1250."""

    def half(b: Builder, code: Value) -> Value:
        return b.fptrunc(decode(b, code, format_), "f16")  # exact, but for f16's range

    def chosen(b: Builder, x: Value, modifiers: Any) -> Value:
        return half(b, byte_of(b, x, modifiers.integer("byte_sel")))

    def pair(b: Builder, x: Value) -> Value:
        wide = b.zext(x, "i32")
        return pack_halves(b, *(half(b, byte_of(b, wide, i)) for i in range(2)))

    def narrow_pair(b: Builder, x: tuple[Value, ...]) -> Value:
        low, high = (encode(b, b.fpext(v, "f32"), format_) for v in x)
        return b.trunc(b.or_(low, b.shl(high, b.const("i32", 8))), "i16")

    def stochastic(b: Builder, x: Value, random: Value, old: Value, modifiers: Any) -> Value:
        at = b.const("i32", 8 * modifiers.integer("byte_sel"))
        code = encode_stochastically(b, b.fpext(x, "f32"), random, format_)
        return b.or_(b.and_(old, b.not_(b.shl(b.const("i32", 0xFF), at))), b.shl(code, at))

    define(f"v_cvt_f16_{name}", "f16~ = i32 modifiers", chosen, of="cdna5")
    define(f"v_cvt_pk_f16_{name}", "i32 = i16", pair, of="cdna5")
    define(f"v_cvt_pk_{name}_f16", "i16~ = f16x2", narrow_pair, of="cdna5")
    define(f"v_cvt_sr_{name}_f16", "i32 = f16 i32 dst modifiers", stochastic, of="cdna5")


for _name, _format in OCP.items():
    _define_float8_and_half(_name, _format)
