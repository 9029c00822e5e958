"""VOP3 on the bytes of registers: alignment, permutation, sums of absolute differences, averages."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, field, nonzero, saturated
from flydsl.simulator.isa.table import define


@curried
def _align(unit_bits: int, b: Builder, high: Value, low: Value, amount: Value) -> Value:
    """The 64 bits (first : second) shifted down by a number of bits or bytes."""
    mask = 31 if unit_bits == 1 else 3
    distance = b.mul(b.and_(amount, b.const("i32", mask)), b.const("i32", unit_bits))
    return b.trunc(b.lshr(b.join((low, high)), b.zext(distance, "i64")), "i32")


define("v_alignbit_b32", "i32 = i32 i32 i32", _align(1))
define("v_alignbyte_b32", "i32 = i32 i32 i32", _align(8))


def _align_by_half(unit_bits: int) -> Any:
    """The amount is a half of a register."""
    align = _align(unit_bits)
    return lambda b, high, low, amount: align(b, high, low, b.zext(amount, "i32"))


define("v_alignbit_b32", "i32 = i32 i32 i16", _align_by_half(1), of="rdna")
define("v_alignbyte_b32", "i32 = i32 i32 i16", _align_by_half(8), of="rdna")


def _permute_bytes(b: Builder, high: Value, low: Value, selectors: Value) -> Value:
    """Each selector byte picks one of the eight bytes (first : second), a sign, 0x00 or 0xff."""
    bytes_ = b.join((low, high))
    result = b.const("i32", 0)
    for i in range(4):
        selector = b.and_(b.lshr(selectors, b.const("i32", 8 * i)), b.const("i32", 0xFF))
        result = b.or_(result, b.shl(_selected_byte(b, bytes_, selector), b.const("i32", 8 * i)))
    return result


def _selected_byte(b: Builder, bytes_: Value, selector: Value) -> Value:
    def up_to(limit: int) -> Value:
        return b.icmp("ule", selector, b.const("i32", limit))

    def byte_at(position: Value) -> Value:
        shifted = b.lshr(bytes_, b.zext(b.mul(position, b.const("i32", 8)), "i64"))
        return b.and_(b.trunc(shifted, "i32"), b.const("i32", 0xFF))

    plain = byte_at(b.and_(selector, b.const("i32", 7)))
    # Selectors 8 to 11 replicate the sign of bytes 1, 3, 5 and 7.
    odd = b.and_(b.add(b.mul(selector, b.const("i32", 2)), b.const("i32", 1)), b.const("i32", 7))
    negative = b.icmp("uge", byte_at(odd), b.const("i32", 0x80))
    zero, ones = b.const("i32", 0), b.const("i32", 0xFF)
    rest = b.select(up_to(11), b.select(negative, ones, zero), b.select(up_to(12), zero, ones))
    return b.select(up_to(7), plain, rest)


define("v_perm_b32", "i32 = i32 i32 i32", _permute_bytes)

# --- sums of absolute differences


def _difference(b: Builder, x: Value, y: Value) -> Value:
    return b.select(b.icmp("ugt", x, y), b.sub(x, y), b.sub(y, x))


def _differences(b: Builder, x: Value, y: Value, bits: int, *, masked: bool = False) -> Value:
    """The sum of |x - y| over unsigned fields of `bits` bits; `masked` skips fields where y is 0."""
    total = b.const("i32", 0)
    for i in range(32 // bits):
        p, q = field(b, x, i, bits), field(b, y, i, bits)
        difference = _difference(b, p, q)
        if masked:
            difference = b.select(nonzero(b, q, "i32"), difference, b.const("i32", 0))
        total = b.add(total, difference)
    return total


@curried
def _accumulated(sum_of: Any, b: Builder, x: Value, y: Value, start: Value, modifiers: Any) -> Value:
    """sum_of(x, y) plus the third operand, saturated with the clamp modifier."""
    total = b.add(b.zext(sum_of(b, x, y), "i64"), b.zext(start, "i64"))
    return saturated(b, total, "i32", signed=False) if modifiers.flag("clamp") else b.trunc(total, "i32")


def _in_upper_half(b: Builder, x: Value, y: Value) -> Value:
    return b.shl(_differences(b, x, y, 8), b.const("i32", 16))


for _name, _sum_of in (
    ("sad_u8", lambda b, x, y: _differences(b, x, y, 8)),
    ("sad_hi_u8", _in_upper_half),
    ("sad_u16", lambda b, x, y: _differences(b, x, y, 16)),
    ("sad_u32", _difference),
    ("msad_u8", lambda b, x, y: _differences(b, x, y, 8, masked=True)),
):
    define(f"v_{_name}", "i32 = i32 i32 i32 modifiers", _accumulated(_sum_of))


def _windows(b: Builder, x: Value, y: Value, *, masked: bool) -> list[Value]:
    """The differences between y and the dwords that start at bytes 0 to 3 of the i64 x."""
    shifted = [b.trunc(b.lshr(x, b.const("i64", 8 * i)), "i32") for i in range(4)]
    return [_differences(b, window, y, 8, masked=masked) for window in shifted]


@curried
def _packed_sums(b: Builder, x: Value, y: Value, start: Value, modifiers: Any, *, masked: bool) -> Value:
    """Four 16-bit sums, each added to a field of the third operand."""
    if modifiers.flag("clamp"):
        raise NotImplementedError("clamp on four sums")
    sums = _windows(b, x, y, masked=masked)
    starts = [field(b, dword, i, 16) for dword in b.split(start) for i in range(2)]
    low, high, low2, high2 = (b.and_(b.add(s, t), b.const("i32", 0xFFFF)) for s, t in zip(sums, starts, strict=True))
    sixteen = b.const("i32", 16)
    return b.join([b.or_(low, b.shl(high, sixteen)), b.or_(low2, b.shl(high2, sixteen))])


def _four_sums(b: Builder, x: Value, y: Value, start: tuple[Value, ...], modifiers: Any) -> tuple[Value, ...]:
    if modifiers.flag("clamp"):
        raise NotImplementedError("clamp on four sums")
    return tuple(b.add(s, t) for s, t in zip(_windows(b, x, y, masked=True), start, strict=True))


define("v_qsad_pk_u16_u8", "i64 = i64 i32 i64 modifiers", _packed_sums(masked=False))
define("v_mqsad_pk_u16_u8", "i64 = i64 i32 i64 modifiers", _packed_sums(masked=True))
define("v_mqsad_u32_u8", "i32x4 = i64 i32 i32x4 modifiers", _four_sums)

# --- averages and saturation


def _average(b: Builder, x: Value, y: Value, rounding: Value) -> Value:
    """Byte by byte (x + y + the lowest bit of the third operand's byte) / 2."""
    result = b.const("i32", 0)
    for i in range(4):
        total = b.add(field(b, x, i, 8), field(b, y, i, 8))
        half = b.lshr(b.add(total, b.and_(field(b, rounding, i, 8), b.const("i32", 1))), b.const("i32", 1))
        result = b.or_(result, b.shl(half, b.const("i32", 8 * i)))
    return result


define("v_lerp_u8", "i32 = i32 i32 i32", _average)


def _saturated_bytes(b: Builder, x: Value) -> Value:
    """Both signed halves clamped to an unsigned byte, as the low 16 bits."""

    def byte(half: Value) -> Value:
        wide = b.sext(b.trunc(half, "i16"), "i32")
        zero, largest = b.const("i32", 0), b.const("i32", 0xFF)
        wide = b.select(b.icmp("slt", wide, zero), zero, wide)
        return b.select(b.icmp("sgt", wide, largest), largest, wide)

    high = byte(b.lshr(x, b.const("i32", 16)))
    return b.trunc(b.or_(byte(x), b.shl(high, b.const("i32", 8))), "i16")


define("v_sat_pk_u8_i16", "i16 = i32", _saturated_bytes)
