"""VOP1, VOP2, VOP3: moves, bits and integer arithmetic, per lane."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.builder import Builder, Value
from flydsl.simulator.isa.common import (
    high_half,
    i24,
    identity,
    minimum,
    mul_wide,
    nonzero,
    saturating,
    shift,
    u24,
)
from flydsl.simulator.isa.table import define

# --- moves and selections

define("v_mov_b32", "f32 = f32", identity)  # a float, as far as modifiers go
define("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "i32 = i32", identity)
define("v_mov_b64", "i64 = i64", identity)
define("v_cndmask_b32", "f32 = f32 f32 mask", lambda b, x, y, mask: b.select(mask, y, x))


# --- addition and subtraction


def _carry_out(b: Builder, wide: Value) -> tuple[Value, Value]:
    """The low half of a 64-bit sum or difference and whether the upper half is not zero: carry or borrow."""
    return b.trunc(wide, "i32"), nonzero(b, b.lshr(wide, b.const("i64", 32)), "i64")


def _add_co(b: Builder, x: Value, y: Value, carry: Value | None = None) -> tuple[Value, Value]:
    total = b.add(b.zext(x, "i64"), b.zext(y, "i64"))
    return _carry_out(b, total if carry is None else b.add(total, b.zext(carry, "i64")))


def _sub_co(b: Builder, x: Value, y: Value, borrow: Value | None = None) -> tuple[Value, Value]:
    difference = b.sub(b.zext(x, "i64"), b.zext(y, "i64"))
    return _carry_out(b, difference if borrow is None else b.sub(difference, b.zext(borrow, "i64")))


define("v_add_co_u32", "i32 mask = i32 i32", _add_co)
define("v_sub_co_u32", "i32 mask = i32 i32", _sub_co)
define("v_subrev_co_u32", "i32 mask = i32 i32", lambda b, x, y: _sub_co(b, y, x))
define("v_addc_co_u32", "i32 mask = i32 i32 mask", _add_co)
define("v_subb_co_u32", "i32 mask = i32 i32 mask", _sub_co)
define("v_subbrev_co_u32", "i32 mask = i32 i32 mask", lambda b, x, y, borrow: _sub_co(b, y, x, borrow))


def clamped(operation: str, type_: str, *, signed: bool, reversed_: bool = False) -> Any:
    """Addition or subtraction that the clamp modifier makes saturating."""

    def evaluate(b: Builder, x: Value, y: Value, modifiers: Any) -> Value:
        x, y = (y, x) if reversed_ else (x, y)
        if modifiers.flag("clamp"):
            return saturating(b, operation, x, y, type_, signed=signed)
        return getattr(b, operation)(x, y)

    return evaluate


for _bits in (16, 32):
    _type = f"i{_bits}"
    _signature = f"{_type} = {_type} {_type} modifiers"
    define(f"v_add_u{_bits}", _signature, clamped("add", _type, signed=False))
    define(f"v_sub_u{_bits}", _signature, clamped("sub", _type, signed=False))
    define(f"v_subrev_u{_bits}", _signature, clamped("sub", _type, signed=False, reversed_=True))
    _signature = "i16~ = i16 i16 modifiers" if _bits == 16 else _signature
    define(f"v_add_i{_bits}", _signature, clamped("add", _type, signed=True))
    define(f"v_sub_i{_bits}", _signature, clamped("sub", _type, signed=True))

# --- multiplication

define("v_mul_lo_u32", "i32 = i32 i32", lambda b, x, y: b.mul(x, y))
define("v_mul_lo_u16", "i16 = i16 i16", lambda b, x, y: b.mul(x, y))
define("v_mul_hi_u32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "zext")))
define("v_mul_hi_i32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "sext")))
define("v_mul_u32_u24", "i32 = i32 i32", lambda b, x, y: b.mul(u24(b, x), u24(b, y)))
define("v_mul_i32_i24", "i32 = i32 i32", lambda b, x, y: b.mul(i24(b, x), i24(b, y)))
define("v_mul_hi_u32_u24", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, u24(b, x), u24(b, y), "zext")))
define("v_mul_hi_i32_i24", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, i24(b, x), i24(b, y), "sext")))
define("v_mad_u32_u24", "i32 = i32 i32 i32", lambda b, x, y, z: b.add(b.mul(u24(b, x), u24(b, y)), z))
define("v_mad_i32_i24", "i32 = i32 i32 i32", lambda b, x, y, z: b.add(b.mul(i24(b, x), i24(b, y)), z))
define("v_mad_u16 v_mad_i16", "i16~ = i16 i16 i16", lambda b, x, y, z: b.add(b.mul(x, y), z))
# The same, but the upper half becomes zero. LLVM selects this form and relies on it (its CodeGen/AMDGPU/mad.u16.ll).
define("v_mad_legacy_u16 v_mad_legacy_i16", "i16 = i16 i16 i16", lambda b, x, y, z: b.add(b.mul(x, y), z))


def _mad_wide(extend: str) -> Any:
    """64-bit multiply-add; the mask is the carry (or, signed, the overflow) out of the addition."""

    def evaluate(b: Builder, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
        product = mul_wide(b, x, y, extend)
        total = b.add(product, z)
        if extend == "zext":
            return total, b.icmp("ult", total, product)
        overflow = b.and_(b.xor(product, total), b.xor(z, total))
        return total, b.icmp("slt", overflow, b.const("i64", 0))

    return evaluate


define("v_mad_u64_u32", "i64 mask = i32 i32 i64", _mad_wide("zext"))
define("v_mad_i64_i32", "i64 mask = i32 i32 i64", _mad_wide("sext"))


def _mad_mixed(extend: str) -> Any:
    def evaluate(b: Builder, x: Value, y: Value, z: Value) -> Value:
        widen = getattr(b, extend)
        return b.add(b.mul(widen(x, "i32"), widen(y, "i32")), z)

    return evaluate


define("v_mad_u32_u16", "i32 = i16 i16 i32", _mad_mixed("zext"))
define("v_mad_i32_i16", "i32 = i16 i16 i32", _mad_mixed("sext"))

# --- bits

define("v_and_b32", "i32 = i32 i32", lambda b, x, y: b.and_(x, y))
define("v_or_b32", "i32 = i32 i32", lambda b, x, y: b.or_(x, y))
define("v_xor_b32", "i32 = i32 i32", lambda b, x, y: b.xor(x, y))
define("v_xnor_b32", "i32 = i32 i32", lambda b, x, y: b.not_(b.xor(x, y)))
define("v_not_b32", "i32 = i32", lambda b, x: b.not_(x))
define("v_bfrev_b32", "i32 = i32", lambda b, x: b.bitreverse(x))
define("v_bcnt_u32_b32", "i32 = i32 i32", lambda b, x, y: b.add(b.ctpop(x), y))
define("v_or3_b32", "i32 = i32 i32 i32", lambda b, x, y, z: b.or_(b.or_(x, y), z))
define("v_and_or_b32", "i32 = i32 i32 i32", lambda b, x, y, z: b.or_(b.and_(x, y), z))
define("v_bfi_b32", "i32 = i32 i32 i32", lambda b, m, x, y: b.or_(b.and_(m, x), b.and_(b.not_(m), y)))

_LSHL = shift("shl", "i32")

define("v_lshl_or_b32", "i32 = i32 i32 i32", lambda b, x, n, y: b.or_(_LSHL(b, x, n), y))
define("v_lshl_add_u32", "i32 = i32 i32 i32", lambda b, x, n, y: b.add(_LSHL(b, x, n), y))
define("v_add_lshl_u32", "i32 = i32 i32 i32", lambda b, x, y, n: _LSHL(b, b.add(x, y), n))
define("v_add3_u32", "i32 = i32 i32 i32", lambda b, x, y, z: b.add(b.add(x, y), z))
define("v_xad_u32", "i32 = i32 i32 i32", lambda b, x, y, z: b.add(b.xor(x, y), z))


def _lshl_add_u64(b: Builder, x: Value, amount: Value, y: Value) -> Value:
    """The amount's lowest three bits, of which the ISA allows 0 to 4."""
    return b.add(b.shl(x, b.zext(b.and_(amount, b.const("i32", 7)), "i64")), y)


define("v_lshl_add_u64", "i64 = i64 i32 i64", _lshl_add_u64)

for _name, _operation, _sign in (("lshlrev", "shl", "b"), ("lshrrev", "lshr", "b"), ("ashrrev", "ashr", "i")):
    for _bits in (16, 32, 64):
        _amount = "i16" if _bits == 16 else "i32"
        define(
            f"v_{_name}_{_sign}{_bits}",
            f"i{_bits} = {_amount} i{_bits}",
            shift(_operation, f"i{_bits}", reversed_=True),
        )


def _extract(*, signed: bool) -> Any:
    """v_bfe: offset and width are the lowest five bits of the second and third operand."""

    def evaluate(b: Builder, x: Value, offset: Value, width: Value) -> Value:
        five = b.const("i32", 31)
        width = b.and_(width, five)
        distance = b.and_(b.sub(b.const("i32", 32), width), five)
        value = b.lshr(x, b.and_(offset, five))
        up = b.shl(value, distance)
        field = b.ashr(up, distance) if signed else b.lshr(up, distance)
        return b.select(nonzero(b, width, "i32"), field, b.const("i32", 0))

    return evaluate


define("v_bfe_u32", "i32 = i32 i32 i32", _extract(signed=False))
define("v_bfe_i32", "i32 = i32 i32 i32", _extract(signed=True))


def _bit_mask(b: Builder, count: Value, offset: Value) -> Value:
    ones = b.sub(_LSHL(b, b.const("i32", 1), count), b.const("i32", 1))
    return _LSHL(b, ones, offset)


define("v_bfm_b32", "i32 = i32 i32", _bit_mask)


def _find_first(operation: str) -> Any:
    def evaluate(b: Builder, x: Value) -> Value:
        return b.select(nonzero(b, x, "i32"), getattr(b, operation)(x), b.const("i32", -1))

    return evaluate


define("v_ffbh_u32", "i32 = i32", _find_first("ctlz"))
define("v_ffbl_b32", "i32 = i32", _find_first("cttz"))
define(
    "v_ffbh_i32",
    "i32 = i32",
    lambda b, x: _find_first("ctlz")(b, b.select(b.icmp("slt", x, b.const("i32", 0)), b.not_(x), x)),
)


def _align(unit_bits: int) -> Any:
    """The 64 bits (first : second) shifted down by a number of bits or bytes."""
    mask = 31 if unit_bits == 1 else 3

    def evaluate(b: Builder, high: Value, low: Value, amount: Value) -> Value:
        distance = b.mul(b.and_(amount, b.const("i32", mask)), b.const("i32", unit_bits))
        return b.trunc(b.lshr(b.join((low, high)), b.zext(distance, "i64")), "i32")

    return evaluate


define("v_alignbit_b32", "i32 = i32 i32 i32", _align(1))
define("v_alignbyte_b32", "i32 = i32 i32 i32", _align(8))


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


def _sum_of_differences(*, masked: bool) -> Any:
    """v_sad_u8: the sum over four bytes of |x - y|, plus the third operand; v_msad_u8 skips bytes where y is 0."""

    def evaluate(b: Builder, x: Value, y: Value, total: Value) -> Value:
        for i in range(4):
            at, ones = b.const("i32", 8 * i), b.const("i32", 0xFF)
            p, q = b.and_(b.lshr(x, at), ones), b.and_(b.lshr(y, at), ones)
            difference = b.select(b.icmp("ugt", p, q), b.sub(p, q), b.sub(q, p))
            if masked:
                difference = b.select(nonzero(b, q, "i32"), difference, b.const("i32", 0))
            total = b.add(total, difference)
        return total

    return evaluate


define("v_sad_u8", "i32 = i32 i32 i32", _sum_of_differences(masked=False))
define("v_msad_u8", "i32 = i32 i32 i32", _sum_of_differences(masked=True))


def _sad_u32(b: Builder, x: Value, y: Value, total: Value) -> Value:
    return b.add(b.select(b.icmp("ugt", x, y), b.sub(x, y), b.sub(y, x)), total)


define("v_sad_u32", "i32 = i32 i32 i32", _sad_u32)

# --- minimum, maximum, median

for _suffix, _type, _less in (
    ("i32", "i32", "slt"),
    ("u32", "i32", "ult"),
    ("i16", "i16", "slt"),
    ("u16", "i16", "ult"),
):
    _min, _max = minimum(_less), minimum(_less.replace("lt", "gt"))
    _two, _three = f"{_type} = {_type} {_type}", f"{_type}{'~' if _type == 'i16' else ''} = {_type} {_type} {_type}"
    define(f"v_min_{_suffix}", _two, _min)
    define(f"v_max_{_suffix}", _two, _max)
    define(f"v_min3_{_suffix}", _three, lambda b, x, y, z, f=_min: f(b, f(b, x, y), z))
    define(f"v_max3_{_suffix}", _three, lambda b, x, y, z, f=_max: f(b, f(b, x, y), z))
    define(
        f"v_med3_{_suffix}",
        _three,
        lambda b, x, y, z, lo=_min, hi=_max: hi(b, lo(b, x, y), lo(b, hi(b, x, y), z)),
    )
