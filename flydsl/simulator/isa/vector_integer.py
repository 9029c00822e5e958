"""VOP1, VOP2, VOP3: moves, bits and integer arithmetic, per lane."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import (
    curried,
    high_half,
    i24,
    identity,
    insert_half,
    minimum,
    mul_wide,
    nonzero,
    saturated,
    saturating,
    shift,
    u24,
)
from flydsl.simulator.isa.table import define

# --- moves and selections

define("v_mov_b32", "f32 = f32", identity)  # a float, as far as modifiers go
define("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "i32 = i32", identity)
define("v_mov_b64", "i64 = i64", identity, of="cdna3 cdna5")
define("v_cndmask_b32", "f32 = f32 f32 mask", lambda b, x, y, mask: b.select(mask, y, x))


# --- addition and subtraction


@curried
def _with_carry(
    operation: str, b: Builder, x: Value, y: Value, *carry_and_modifiers: Any, reversed_: bool = False
) -> tuple[Value, Value]:
    """Addition or subtraction of two u32 (and a carry or borrow), and whether it carries or borrows: whether the upper
    half of the 64-bit result is not zero. The clamp modifier saturates the number, not the carry."""
    *carry, modifiers = carry_and_modifiers
    x, y = (y, x) if reversed_ else (x, y)
    wide = b.zext(x, "i64")
    for operand in (y, *carry):
        wide = getattr(b, operation)(wide, b.zext(operand, "i64"))
    number = saturated(b, wide, "i32", signed=False) if modifiers.flag("clamp") else b.trunc(wide, "i32")
    return number, nonzero(b, b.lshr(wide, b.const("i64", 32)), "i64")


for _name, _carrying, _operation in (("add", "addc", "add"), ("sub", "subb", "sub"), ("subrev", "subbrev", "sub")):
    _evaluate = _with_carry(_operation, reversed_=_name == "subrev")
    define(f"v_{_name}_co_u32", "i32 mask = i32 i32 modifiers", _evaluate)
    define(f"v_{_carrying}_co_u32", "i32 mask = i32 i32 mask modifiers", _evaluate)


@curried
def clamped(
    operation: str, type_: str, b: Builder, x: Value, y: Value, modifiers: Any, *, signed: bool, reversed_: bool = False
) -> Value:
    """Addition or subtraction that the clamp modifier makes saturating."""
    x, y = (y, x) if reversed_ else (x, y)
    if modifiers.flag("clamp"):
        return saturating(b, operation, x, y, type_, signed=signed)
    return getattr(b, operation)(x, y)


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

define("v_mul_lo_u32 v_mul_lo_i32", "i32 = i32 i32", lambda b, x, y: b.mul(x, y))
define("v_mul_lo_u16", "i16 = i16 i16", lambda b, x, y: b.mul(x, y))
define("v_mul_hi_u32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "zext")))
define("v_mul_hi_i32", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, x, y, "sext")))
define("v_mul_u32_u24", "i32 = i32 i32", lambda b, x, y: b.mul(u24(b, x), u24(b, y)))
define("v_mul_i32_i24", "i32 = i32 i32", lambda b, x, y: b.mul(i24(b, x), i24(b, y)))
define("v_mul_hi_u32_u24", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, u24(b, x), u24(b, y), "zext")))
define("v_mul_hi_i32_i24", "i32 = i32 i32", lambda b, x, y: high_half(b, mul_wide(b, i24(b, x), i24(b, y), "sext")))


@curried
def _mad(
    product_of: Any, type_: str, b: Builder, x: Value, y: Value, z: Value, modifiers: Any, *, signed: bool
) -> Value:
    """A multiply-add that the clamp modifier makes saturating. product_of gives the product as i64."""
    extend = "sext" if signed else "zext"
    total = b.add(product_of(b, x, y), getattr(b, extend)(z, "i64"))
    return saturated(b, total, type_, signed=signed) if modifiers.flag("clamp") else b.trunc(total, type_)


def _product(extend: str) -> Any:
    return lambda b, x, y: b.mul(getattr(b, extend)(x, "i64"), getattr(b, extend)(y, "i64"))


define(
    "v_mad_u32_u24",
    "i32 = i32 i32 i32 modifiers",
    _mad(lambda b, x, y: mul_wide(b, u24(b, x), u24(b, y), "zext"), "i32", signed=False),
)
define(
    "v_mad_i32_i24",
    "i32 = i32 i32 i32 modifiers",
    _mad(lambda b, x, y: mul_wide(b, i24(b, x), i24(b, y), "sext"), "i32", signed=True),
)
for _letter, _extend in (("u", "zext"), ("i", "sext")):
    _evaluate = _mad(_product(_extend), "i16", signed=_letter == "i")
    define(f"v_mad_{_letter}16", "i16~ = i16 i16 i16 modifiers", _evaluate)
    # The upper half becomes zero. LLVM selects this form and relies on it (its CodeGen/AMDGPU/mad.u16.ll).
    define(f"v_mad_legacy_{_letter}16", "i16 = i16 i16 i16 modifiers", _evaluate)
    _evaluate = _mad(_product(_extend), "i32", signed=_letter == "i")
    define(f"v_mad_{_letter}32_{_letter}16", "i32 = i16 i16 i32 modifiers", _evaluate)


@curried
def _mad_wide(extend: str, b: Builder, x: Value, y: Value, z: Value, modifiers: Any) -> tuple[Value, Value]:
    """64-bit multiply-add; the mask is bit 64 of the exact sum: the carry, or the sign. The clamp modifier saturates
    the number, not the mask."""
    product = mul_wide(b, x, y, extend)
    total = b.add(product, z)
    if extend == "zext":
        carry = b.icmp("ult", total, product)
        return b.select(carry, b.const("i64", -1), total) if modifiers.flag("clamp") else total, carry
    overflow = b.and_(b.xor(product, total), b.xor(z, total))
    sign = b.icmp("slt", b.xor(total, overflow), b.const("i64", 0))
    if modifiers.flag("clamp"):
        extreme = b.select(sign, b.const("i64", -1 << 63), b.const("i64", (1 << 63) - 1))
        total = b.select(b.icmp("slt", overflow, b.const("i64", 0)), extreme, total)
    return total, sign


define("v_mad_u64_u32", "i64 mask = i32 i32 i64 modifiers", _mad_wide("zext"))
define("v_mad_i64_i32", "i64 mask = i32 i32 i64 modifiers", _mad_wide("sext"))


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
    """The amount's lowest three bits; the ISA allows 0 to 4."""
    return b.add(b.shl(x, b.zext(b.and_(amount, b.const("i32", 7)), "i64")), y)


define("v_lshl_add_u64", "i64 = i64 i32 i64", _lshl_add_u64, of="cdna3 cdna5")

for _name, _operation, _sign in (("lshlrev", "shl", "b"), ("lshrrev", "lshr", "b"), ("ashrrev", "ashr", "i")):
    for _bits in (16, 32, 64):
        _amount = "i16" if _bits == 16 else "i32"
        define(
            f"v_{_name}_{_sign}{_bits}",
            f"i{_bits} = {_amount} i{_bits}",
            shift(_operation, f"i{_bits}", reversed_=True),
        )


@curried
def _extract(b: Builder, x: Value, offset: Value, width: Value, *, signed: bool) -> Value:
    """v_bfe: offset and width are the lowest five bits of the second and third operand."""
    five = b.const("i32", 31)
    width = b.and_(width, five)
    distance = b.and_(b.sub(b.const("i32", 32), width), five)
    # What lies beyond the top is zeros, or copies of the sign.
    value = (b.ashr if signed else b.lshr)(x, b.and_(offset, five))
    up = b.shl(value, distance)
    field = b.ashr(up, distance) if signed else b.lshr(up, distance)
    return b.select(nonzero(b, width, "i32"), field, b.const("i32", 0))


define("v_bfe_u32", "i32 = i32 i32 i32", _extract(signed=False))
define("v_bfe_i32", "i32 = i32 i32 i32", _extract(signed=True))


def _bit_mask(b: Builder, count: Value, offset: Value) -> Value:
    ones = b.sub(_LSHL(b, b.const("i32", 1), count), b.const("i32", 1))
    return _LSHL(b, ones, offset)


define("v_bfm_b32", "i32 = i32 i32", _bit_mask)


@curried
def _find_first(operation: str, b: Builder, x: Value) -> Value:
    return b.select(nonzero(b, x, "i32"), getattr(b, operation)(x), b.const("i32", -1))


define("v_ffbh_u32", "i32 = i32", _find_first("ctlz"))
define("v_ffbl_b32", "i32 = i32", _find_first("cttz"))
define(
    "v_ffbh_i32",
    "i32 = i32",
    lambda b, x: _find_first("ctlz")(b, b.select(b.icmp("slt", x, b.const("i32", 0)), b.not_(x), x)),
)


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
    define(f"v_med3_{_suffix}", _three, lambda b, x, y, z, lo=_min, hi=_max: hi(b, lo(b, x, y), lo(b, hi(b, x, y), z)))


# --- additions of CDNA 4


def _any_function(b: Builder, x: Value, y: Value, z: Value, modifiers: Any) -> Value:
    """Any function of three bits, for each bit: `bitop3` is its truth table, with the result of 4 x + 2 y + z at that
    bit."""
    table, result = modifiers.integer("bitop3"), None
    for entry in range(8):
        if table >> entry & 1:
            parts = [v if entry >> place & 1 else b.not_(v) for v, place in ((x, 2), (y, 1), (z, 0))]
            term = b.and_(b.and_(parts[0], parts[1]), parts[2])
            result = term if result is None else b.or_(result, term)
    return b.and_(x, b.not_(x)) if result is None else result


define("v_bitop3_b32", "i32 = i32 i32 i32 modifiers", _any_function, of="cdna4 cdna5")
define("v_bitop3_b16", "i16~ = i16 i16 i16 modifiers", _any_function, of="cdna4 cdna5")


@curried
def _shifted_bytes(b: Builder, x: Value, y: Value, amount: Value, old: Value, modifiers: Any, *, signed: bool) -> Value:
    """Two numbers shifted right and saturated to bytes. The last bit of op_sel names the half of `old` to replace."""
    low, high = (-128, 127) if signed else (0, 255)

    def saturated_byte(b: Builder, x: Value) -> Value:
        x = b.select(b.icmp("slt", x, b.const("i32", low)), b.const("i32", low), x)
        x = b.select(b.icmp("sgt", x, b.const("i32", high)), b.const("i32", high), x)
        return b.and_(x, b.const("i32", 0xFF))

    distance = b.and_(amount, b.const("i32", 31))
    first, second = (saturated_byte(b, b.ashr(v, distance)) for v in (x, y))
    pair = b.or_(first, b.shl(second, b.const("i32", 8)))
    return insert_half(b, old, pair, high=bool(modifiers.bits("op_sel", 4)[3]))


define("v_ashr_pk_i8_i32", "i32 = i32 i32 i32 dst modifiers", _shifted_bytes(signed=True), of="cdna4 cdna5")
define("v_ashr_pk_u8_i32", "i32 = i32 i32 i32 dst modifiers", _shifted_bytes(signed=False), of="cdna4 cdna5")


def next_random(b: Builder, x: Value) -> Value:
    """One step of a linear-feedback shift register: shifted left, xor the taps if a one is shifted out."""
    taps = b.select(b.icmp("slt", x, b.const("i32", 0)), b.const("i32", 0xC5), b.const("i32", 0))
    return b.xor(b.shl(x, b.const("i32", 1)), taps)


define("v_prng_b32", "i32 = i32", next_random, of="cdna4 cdna5")


# --- additions of RDNA

define("v_xor3_b32", "i32 = i32 i32 i32", lambda b, x, y, z: b.xor(b.xor(x, y), z), of="rdna")


# --- additions of gfx1250: numbers of 64 bits, sums that saturate, and fields packed more tightly

define("v_add_nc_u64", "i64 = i64 i64", lambda b, x, y: b.add(x, y), of="cdna5")
define("v_sub_nc_u64", "i64 = i64 i64", lambda b, x, y: b.sub(x, y), of="cdna5")
define("v_mul_u64", "i64 = i64 i64", lambda b, x, y: b.mul(x, y), of="cdna5")
for _name, _less in (("i64", "slt"), ("u64", "ult")):
    define(f"v_min_{_name}", "i64 = i64 i64", minimum(_less), of="cdna5")
    define(f"v_max_{_name}", "i64 = i64 i64", minimum(_less.replace("lt", "gt")), of="cdna5")
define("v_mad_u32", "i32 = i32 i32 i32", lambda b, x, y, z: b.add(b.mul(x, y), z), of="cdna5")
define("v_mad_nc_u64_u32", "i64 = i32 i32 i64", lambda b, x, y, z: b.add(mul_wide(b, x, y, "zext"), z), of="cdna5")
define("v_mad_nc_i64_i32", "i64 = i32 i32 i64", lambda b, x, y, z: b.add(mul_wide(b, x, y, "sext"), z), of="cdna5")


def sum_and_extreme(name: str, type_: str, *, signed: bool) -> Any:
    """The smaller or larger ("min", "max") of a saturated sum and a third number."""
    predicate = ("s" if signed else "u") + ("lt" if name == "min" else "gt")
    choose = minimum(predicate)
    return lambda b, x, y, z: choose(b, saturating(b, "add", x, y, type_, signed=signed), z)


for _name in ("min", "max"):
    for _letter, _signed in (("i", True), ("u", False)):
        _evaluate = sum_and_extreme(_name, "i32", signed=_signed)
        define(f"v_add_{_name}_{_letter}32", "i32 = i32 i32 i32", _evaluate, of="cdna5")


@curried
def _saturated_nibbles(b: Builder, x: Value, *, signed: bool) -> Value:
    """Four bytes saturated to four numbers of 4 bits."""
    low, high = (-8, 7) if signed else (0, 15)
    total = b.const("i32", 0)
    for i in range(4):
        byte = b.shl(x, b.const("i32", 24 - 8 * i))
        value = (b.ashr if signed else b.lshr)(byte, b.const("i32", 24))
        value = b.select(b.icmp("slt", value, b.const("i32", low)), b.const("i32", low), value)
        value = b.select(b.icmp("sgt", value, b.const("i32", high)), b.const("i32", high), value)
        total = b.or_(total, b.shl(b.and_(value, b.const("i32", 15)), b.const("i32", 4 * i)))
    return b.trunc(total, "i16")


define("v_sat_pk4_i4_i8", "i16~ = i32", _saturated_nibbles(signed=True), of="cdna5")
define("v_sat_pk4_u4_u8", "i16~ = i32", _saturated_nibbles(signed=False), of="cdna5")
