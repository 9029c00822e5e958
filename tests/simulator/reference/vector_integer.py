"""VOP1, VOP2, VOP3 on integers and bits."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulator.reference.case import M16, M32, Case, clamp, field, integer, s16, s32, s64, signed

CASES: dict[str, Case] = {}


def two(name: str, function: Callable[[int, int], int], type_: str = "i32") -> None:
    CASES[name] = integer(f"{type_} = {type_.rstrip('~')} {type_.rstrip('~')}", function)


def three(name: str, function: Callable[[int, int, int], int], type_: str = "i32") -> None:
    plain = type_.rstrip("~")
    CASES[name] = integer(f"{type_} = {plain} {plain} {plain}", function)


def s24(x: int) -> int:
    return signed(x, 24)


def u24(x: int) -> int:
    return x & 0xFFFFFF


# --- moves

CASES["v_mov_b32"] = integer("i32 = i32", lambda a: a)
CASES["v_mov_b64"] = integer("i64 = i64", lambda a: a)
CASES["v_cndmask_b32"] = integer("i32 = i32 i32 mask", lambda a, b, m: b if m else a)
CASES["v_swap_b32"] = integer("i32 i32 = old old1", lambda a, b: (b, a))

# --- sums

for _bits in (16, 32):
    _t, _keep = f"i{_bits}", f"i{_bits}" + ("~" if _bits == 16 else "")
    two(f"v_add_u{_bits}", lambda a, b: a + b, _t)
    two(f"v_sub_u{_bits}", lambda a, b: a - b, _t)
    two(f"v_subrev_u{_bits}", lambda a, b: b - a, _t)
    two(f"v_add_i{_bits}", lambda a, b: a + b, _keep)
    two(f"v_sub_i{_bits}", lambda a, b: a - b, _keep)

CASES["v_add_co_u32"] = integer("i32 mask = i32 i32", lambda a, b: (a + b, a + b > M32))
CASES["v_sub_co_u32"] = integer("i32 mask = i32 i32", lambda a, b: (a - b, b > a))
CASES["v_subrev_co_u32"] = integer("i32 mask = i32 i32", lambda a, b: (b - a, a > b))
CASES["v_addc_co_u32"] = integer("i32 mask = i32 i32 mask", lambda a, b, c: (a + b + c, a + b + c > M32))
CASES["v_subb_co_u32"] = integer("i32 mask = i32 i32 mask", lambda a, b, c: (a - b - c, b + c > a))
CASES["v_subbrev_co_u32"] = integer("i32 mask = i32 i32 mask", lambda a, b, c: (b - a - c, a + c > b))

three("v_add3_u32", lambda a, b, c: a + b + c)
three("v_lshl_add_u32", lambda a, b, c: (a << (b & 31)) + c)
three("v_add_lshl_u32", lambda a, b, c: (a + b) << (c & 31))
three("v_xad_u32", lambda a, b, c: (a ^ b) + c)
# Only shifts by 0 to 4 are defined.
CASES["v_lshl_add_u64"] = integer("i64 = i64 i3 i64", lambda a, b, c: (a << b) + c)

# --- products

two("v_mul_lo_u32", lambda a, b: a * b)
two("v_mul_lo_i32", lambda a, b: a * b)
two("v_mul_hi_u32", lambda a, b: a * b >> 32)
two("v_mul_hi_i32", lambda a, b: s32(a) * s32(b) >> 32)
two("v_mul_lo_u16", lambda a, b: a * b, "i16")
two("v_mul_u32_u24", lambda a, b: u24(a) * u24(b))
two("v_mul_i32_i24", lambda a, b: s24(a) * s24(b))
two("v_mul_hi_u32_u24", lambda a, b: u24(a) * u24(b) >> 32)
two("v_mul_hi_i32_i24", lambda a, b: s24(a) * s24(b) >> 32)
three("v_mad_u32_u24", lambda a, b, c: u24(a) * u24(b) + c)
three("v_mad_i32_i24", lambda a, b, c: s24(a) * s24(b) + c)
for _name, _type in (("v_mad", "i16~"), ("v_mad_legacy", "i16")):
    three(f"{_name}_u16", lambda a, b, c: a * b + c, _type)
    three(f"{_name}_i16", lambda a, b, c: s16(a) * s16(b) + s16(c), _type)
CASES["v_mad_u32_u16"] = integer("i32 = i16 i16 i32", lambda a, b, c: a * b + c)
CASES["v_mad_i32_i16"] = integer("i32 = i16 i16 i32", lambda a, b, c: s16(a) * s16(b) + c)
# The mask is bit 64 of the 65-bit sum.
CASES["v_mad_u64_u32"] = integer("i64 mask = i32 i32 i64", lambda a, b, c: (a * b + c, (a * b + c) >> 64 & 1))
CASES["v_mad_i64_i32"] = integer(
    "i64 mask = i32 i32 i64", lambda a, b, c: (s32(a) * s32(b) + s64(c), (s32(a) * s32(b) + s64(c)) >> 64 & 1)
)

# --- bits

two("v_and_b32", lambda a, b: a & b)
two("v_or_b32", lambda a, b: a | b)
two("v_xor_b32", lambda a, b: a ^ b)
two("v_xnor_b32", lambda a, b: ~(a ^ b))
three("v_or3_b32", lambda a, b, c: a | b | c)
three("v_and_or_b32", lambda a, b, c: a & b | c)
three("v_lshl_or_b32", lambda a, b, c: a << (b & 31) | c)
three("v_bfi_b32", lambda a, b, c: a & b | ~a & c)
CASES["v_not_b32"] = integer("i32 = i32", lambda a: ~a)
CASES["v_bfrev_b32"] = integer("i32 = i32", lambda a: int(f"{a:032b}"[::-1], 2))
two("v_bcnt_u32_b32", lambda a, b: bin(a).count("1") + b)
two("v_bfm_b32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31))

for _bits in (16, 32, 64):
    _amount = "i16" if _bits == 16 else "i32"
    _signature = f"i{_bits} = {_amount} i{_bits}"
    CASES[f"v_lshlrev_b{_bits}"] = integer(_signature, lambda n, a, w=_bits: a << (n & (w - 1)))
    CASES[f"v_lshrrev_b{_bits}"] = integer(_signature, lambda n, a, w=_bits: a >> (n & (w - 1)))
    CASES[f"v_ashrrev_i{_bits}"] = integer(_signature, lambda n, a, w=_bits: signed(a, w) >> (n & (w - 1)))


def bit_field(x: int, offset: int, width: int) -> int:
    return x >> (offset & 31) & ((1 << (width & 31)) - 1)


def signed_bit_field(x: int, offset: int, width: int) -> int:
    """`width & 31` bits of the arithmetically shifted operand, extended by their highest one."""
    width &= 31
    taken = s32(x) >> (offset & 31) & ((1 << width) - 1)
    return signed(taken, width) if width else 0


three("v_bfe_u32", bit_field)
three("v_bfe_i32", signed_bit_field)


def first_one_from_top(x: int) -> int:
    return 32 - x.bit_length() if x else M32


def first_difference_from_sign(x: int) -> int:
    for i in range(1, 32):
        if x >> (31 - i) & 1 != x >> 31:
            return i
    return M32


CASES["v_ffbh_u32"] = integer("i32 = i32", first_one_from_top)
CASES["v_ffbh_i32"] = integer("i32 = i32", first_difference_from_sign)
CASES["v_ffbl_b32"] = integer("i32 = i32", lambda a: (a & -a).bit_length() - 1)

# --- bytes

three("v_alignbit_b32", lambda a, b, c: (a << 32 | b) >> (c & 31))
three("v_alignbyte_b32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3))


def permuted_byte(data: int, selector: int) -> int:
    if selector >= 13:
        return 0xFF
    if selector == 12:
        return 0
    if selector >= 8:
        return 0xFF if field(data, 2 * (selector - 8) + 1, 8) & 0x80 else 0
    return field(data, selector, 8)


def permute(a: int, b: int, selectors: int) -> int:
    data = a << 32 | b
    return sum(permuted_byte(data, field(selectors, i, 8)) << 8 * i for i in range(4))


CASES["v_perm_b32"] = integer("i32 = i32 i32 selectors", permute)


def differences(a: int, b: int, bits: int, *, masked: bool = False) -> int:
    pairs = [(field(a, i, bits), field(b, i, bits)) for i in range(32 // bits)]
    return sum(abs(x - y) for x, y in pairs if not masked or y)


three("v_sad_u8", lambda a, b, c: differences(a, b, 8) + c)
three("v_sad_hi_u8", lambda a, b, c: (differences(a, b, 8) << 16) + c)
three("v_msad_u8", lambda a, b, c: differences(a, b, 8, masked=True) + c)
three("v_sad_u16", lambda a, b, c: differences(a, b, 16) + c)
three("v_sad_u32", lambda a, b, c: abs(a - b) + c)


def four_windows(a: int, b: int, c: int, bits: int, *, masked: bool) -> int:
    """The four dwords that start at bytes 0 to 3 of `a`, each compared with b and added to a field of c."""
    sums = [differences(a >> 8 * i & M32, b, 8, masked=masked) + field(c, i, bits) for i in range(4)]
    return sum((s & ((1 << bits) - 1)) << bits * i for i, s in enumerate(sums))


CASES["v_qsad_pk_u16_u8"] = integer("i64 = i64 i32 i64", lambda a, b, c: four_windows(a, b, c, 16, masked=False))
CASES["v_mqsad_pk_u16_u8"] = integer("i64 = i64 i32 i64", lambda a, b, c: four_windows(a, b, c, 16, masked=True))
CASES["v_mqsad_u32_u8"] = integer("i128 = i64 i32 i128", lambda a, b, c: four_windows(a, b, c, 32, masked=True))


def average(a: int, b: int, rounding: int) -> int:
    sums = [field(a, i, 8) + field(b, i, 8) + (rounding >> 8 * i & 1) for i in range(4)]
    return sum(s >> 1 << 8 * i for i, s in enumerate(sums))


three("v_lerp_u8", average)


def saturated_bytes(a: int) -> int:
    return clamp(s16(a), 0, 255) | clamp(s16(a >> 16), 0, 255) << 8


CASES["v_sat_pk_u8_i16"] = integer("i16 = i32", saturated_bytes)

# --- minimum, maximum, median

for _letter, _bits in (("i", 32), ("u", 32), ("i", 16), ("u", 16)):

    def value(x: int, bits: int = _bits, is_signed: bool = _letter == "i") -> int:
        return signed(x, bits) if is_signed else x

    _t, _keep = f"i{_bits}", f"i{_bits}" + ("~" if _bits == 16 else "")
    two(f"v_min_{_letter}{_bits}", lambda a, b, v=value: min(v(a), v(b)), _t)
    two(f"v_max_{_letter}{_bits}", lambda a, b, v=value: max(v(a), v(b)), _t)
    three(f"v_min3_{_letter}{_bits}", lambda a, b, c, v=value: min(v(a), v(b), v(c)), _keep)
    three(f"v_max3_{_letter}{_bits}", lambda a, b, c, v=value: max(v(a), v(b), v(c)), _keep)
    three(f"v_med3_{_letter}{_bits}", lambda a, b, c, v=value: sorted((v(a), v(b), v(c)))[1], _keep)


# --- integer clamp: saturation

SATURATING: dict[str, Case] = {}
for _bits in (16, 32):
    _top, _half, _t = (1 << _bits) - 1, 1 << (_bits - 1), f"i{_bits}"
    _keep = _t + ("~" if _bits == 16 else "")
    _sum = f"{_t} = {_t} {_t}"
    SATURATING[f"v_add_u{_bits}"] = integer(_sum, lambda a, b, t=_top: min(a + b, t))
    SATURATING[f"v_sub_u{_bits}"] = integer(_sum, lambda a, b: max(a - b, 0))
    SATURATING[f"v_subrev_u{_bits}"] = integer(_sum, lambda a, b: max(b - a, 0))
    SATURATING[f"v_add_i{_bits}"] = integer(
        f"{_keep} = {_t} {_t}", lambda a, b, w=_bits, h=_half: clamp(signed(a, w) + signed(b, w), -h, h - 1)
    )
    SATURATING[f"v_sub_i{_bits}"] = integer(
        f"{_keep} = {_t} {_t}", lambda a, b, w=_bits, h=_half: clamp(signed(a, w) - signed(b, w), -h, h - 1)
    )
for _name, _type in (("v_mad", "i16~"), ("v_mad_legacy", "i16")):
    SATURATING[f"{_name}_u16"] = integer(f"{_type} = i16 i16 i16", lambda a, b, c: min(a * b + c, M16))
    SATURATING[f"{_name}_i16"] = integer(
        f"{_type} = i16 i16 i16", lambda a, b, c: clamp(s16(a) * s16(b) + s16(c), -0x8000, 0x7FFF)
    )
SATURATING["v_mad_u32_u24"] = integer("i32 = i32 i32 i32", lambda a, b, c: min(u24(a) * u24(b) + c, M32))
SATURATING["v_mad_i32_i24"] = integer(
    "i32 = i32 i32 i32", lambda a, b, c: clamp(s24(a) * s24(b) + s32(c), -(1 << 31), (1 << 31) - 1)
)
SATURATING["v_mad_u32_u16"] = integer("i32 = i16 i16 i32", lambda a, b, c: min(a * b + c, M32))
SATURATING["v_mad_i32_i16"] = integer(
    "i32 = i16 i16 i32", lambda a, b, c: clamp(s16(a) * s16(b) + s32(c), -(1 << 31), (1 << 31) - 1)
)
for _name, _masked, _function in (
    ("v_sad_u8", False, lambda a, b: differences(a, b, 8)),
    ("v_msad_u8", True, lambda a, b: differences(a, b, 8, masked=True)),
    ("v_sad_u16", False, lambda a, b: differences(a, b, 16)),
    ("v_sad_u32", False, lambda a, b: abs(a - b)),
):
    SATURATING[_name] = integer("i32 = i32 i32 i32", lambda a, b, c, f=_function: min(f(a, b) + c, M32))
