"""V_TRIG_PREOP_F64: a piece of 2 / pi, for reducing large arguments of sine and cosine (ISA, V_TRIG_PREOP_F64)."""

from __future__ import annotations

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.table import define

# fmt: off
_TWO_OVER_PI = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B0000,
)
# fmt: on
"""The first 1201 bits after the binary point, 32 to a word, the highest first. What follows counts as 0."""

_LARGE = 1077
_HUGE = 1968
"""Biased exponents from which on the piece is moved further, and the result is scaled up by 2**128."""

_LAST_PLACE = -1074
"""Exponent of the last place of a denormal f64."""


def _words_from(b: Builder, index: Value) -> tuple[Value, Value, Value]:
    """The word at an index, and the two after it."""
    words = (*_TWO_OVER_PI, 0, 0)
    found = [b.const("i32", 0)] * 3
    for i in range(len(_TWO_OVER_PI)):
        here = b.icmp("eq", index, b.const("i32", i))
        found = [b.select(here, b.const("i32", words[i + j]), found[j]) for j in range(3)]
    return found[0], found[1], found[2]


def _piece(b: Builder, x: Value, segment: Value) -> Value:
    """53 bits of 2 / pi, from bit 53 * segment on, or further by the exponent of a large x."""
    exponent = b.trunc(b.lshr(b.bitcast(x, "i64"), b.const("i64", 52)), "i32")
    exponent = b.and_(exponent, b.const("i32", 0x7FF))
    start = b.mul(b.and_(segment, b.const("i32", 31)), b.const("i32", 53))
    beyond = b.sub(exponent, b.const("i32", _LARGE))
    start = b.add(start, b.select(b.icmp("sgt", beyond, b.const("i32", 0)), beyond, b.const("i32", 0)))
    first, second, third = _words_from(b, b.lshr(start, b.const("i32", 5)))
    within = b.zext(b.and_(start, b.const("i32", 31)), "i64")
    upper = b.shl(b.join((second, first)), within)
    lower = b.lshr(b.shl(b.zext(third, "i64"), within), b.const("i64", 32))
    bits = b.lshr(b.or_(upper, lower), b.const("i64", 11))
    scale = b.sub(b.const("i32", -53), start)
    huge = b.icmp("uge", exponent, b.const("i32", _HUGE))
    scale = b.select(huge, b.add(scale, b.const("i32", 128)), scale)
    lost = b.sub(b.const("i32", _LAST_PLACE), scale)  # places beyond those of a denormal: rounding is towards zero
    lost = b.select(b.icmp("slt", lost, b.const("i32", 0)), b.const("i32", 0), lost)
    lost = b.zext(b.select(b.icmp("sgt", lost, b.const("i32", 63)), b.const("i32", 63), lost), "i64")
    return b.ldexp(b.uitofp(b.shl(b.lshr(bits, lost), lost), "f64"), scale)


define("v_trig_preop_f64", "f64 = f64 i32", _piece)
