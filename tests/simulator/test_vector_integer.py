"""Vector integer instructions, lane by lane, against Python integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import UnknownInstruction

Run = Callable[..., Any]
Array = np.ndarray[Any, Any]
M16, M32, M64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1
EDGES = [0, 1, 2, 7, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, M32, 0x0C050D02]


def operands(count: int, seed: int = 1) -> list[Array]:
    """`count` registers of 1024 lanes: all pairs of edges first, then random numbers of all sizes."""
    rng = np.random.default_rng(seed)
    lanes = rng.integers(0, 1 << 32, (count, 1024), dtype=np.uint32) >> rng.integers(0, 32, (count, 1024)).astype("u4")
    a, b = np.meshgrid(np.array(EDGES, np.uint32), np.array(EDGES, np.uint32))
    for i in range(count):
        lanes[i, : a.size] = (a if i % 2 == 0 else b).reshape(-1)
    if count == 3:
        lanes[2, :256] = np.roll(lanes[0, :256], 5)
    return list(lanes)


def s32(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def s16(x: int) -> int:
    x &= M16
    return x - (1 << 16) if x >> 15 else x


def s24(x: int) -> int:
    x &= 0xFFFFFF
    return x - (1 << 24) if x >> 23 else x


def u24(x: int) -> int:
    return x & 0xFFFFFF


def clamp(x: int, low: int, high: int) -> int:
    return max(low, min(high, x))


def leading_zeros(x: int) -> int:
    return 32 - x.bit_length() if x else M32


TWO: dict[str, Callable[[int, int], int]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: s32(a) * s32(b) >> 32,
    "v_mul_u32_u24": lambda a, b: u24(a) * u24(b),
    "v_mul_i32_i24": lambda a, b: s24(a) * s24(b),
    "v_mul_hi_u32_u24": lambda a, b: u24(a) * u24(b) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: s24(a) * s24(b) >> 32,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: s32(b) >> (a & 31),
    "v_min_i32": lambda a, b: min(s32(a), s32(b)),
    "v_max_i32": lambda a, b: max(s32(a), s32(b)),
    "v_min_u32": min,
    "v_max_u32": max,
    "v_bcnt_u32_b32": lambda a, b: bin(a).count("1") + b,
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    # 16-bit operations use the low halves; on gfx9 these give zero above.
    "v_add_u16": lambda a, b: (a + b) & M16,
    "v_sub_u16": lambda a, b: (a - b) & M16,
    "v_mul_lo_u16": lambda a, b: (a * b) & M16,
    "v_lshlrev_b16": lambda a, b: (b << (a & 15)) & M16,
    "v_lshrrev_b16": lambda a, b: (b & M16) >> (a & 15),
    "v_ashrrev_i16": lambda a, b: (s16(b) >> (a & 15)) & M16,
    "v_max_i16": lambda a, b: max(s16(a), s16(b)) & M16,
    "v_min_u16": lambda a, b: min(a & M16, b & M16),
    "v_pk_add_u16": lambda a, b: (a + b) & M16 | ((a >> 16) + (b >> 16)) << 16,
    "v_pk_sub_i16": lambda a, b: (a - b) & M16 | ((a >> 16) - (b >> 16)) << 16,
    "v_pk_mul_lo_u16": lambda a, b: (a * b) & M16 | ((a >> 16) * (b >> 16)) << 16,
    "v_pk_max_i16": lambda a, b: max(s16(a), s16(b)) & M16 | max(s16(a >> 16), s16(b >> 16)) << 16,
    "v_pk_lshlrev_b16": lambda a, b: (b << (a & 15)) & M16 | ((b >> 16) << (a >> 16 & 15)) << 16,
    "v_cvt_pk_u16_u32": lambda a, b: min(a, M16) | min(b, M16) << 16,
    "v_cvt_pk_i16_i32": lambda a, b: clamp(s32(a), -32768, 32767) & M16 | clamp(s32(b), -32768, 32767) << 16,
}


@pytest.mark.parametrize("name", TWO)
def test_two_operands(run: Run, name: str) -> None:
    a, b = operands(2)
    got = run(f"{name} v2, v0, v1", v={0: a, 1: b}).v(2)
    expected = [TWO[name](int(x), int(y)) & M32 for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got, np.array(expected, np.uint32))


def byte(x: int, i: int) -> int:
    return (x >> (8 * i)) & 0xFF


def perm(a: int, b: int, selectors: int) -> int:
    source = a << 32 | b
    result = 0
    for i in range(4):
        selector = byte(selectors, i)
        if selector >= 13:
            picked = 0xFF
        elif selector == 12:
            picked = 0
        elif selector >= 8:
            picked = 0xFF if byte(source, 2 * (selector - 8) + 1) & 0x80 else 0
        else:
            picked = byte(source, selector)
        result |= picked << (8 * i)
    return result


def bfe(x: int, offset: int, width: int, is_signed: bool) -> int:
    offset, width = offset & 31, width & 31
    field = (x >> offset) & ((1 << width) - 1)
    if is_signed and width:
        # Bits beyond the top of the register are 0 in the shifted value.
        return field - (1 << width) if field >> (width - 1) else field
    return field


def median(*values: int) -> int:
    return sorted(values)[1]


THREE: dict[str, Callable[[int, int, int], int]] = {
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_and_or_b32": lambda a, b, c: a & b | c,
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_bfi_b32": lambda a, b, c: a & b | ~a & c,
    "v_bfe_u32": lambda a, b, c: bfe(a, b, c, False),
    "v_bfe_i32": lambda a, b, c: bfe(a, b, c, True),
    "v_perm_b32": perm,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> (8 * (c & 3)),
    "v_mad_u32_u24": lambda a, b, c: u24(a) * u24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: s24(a) * s24(b) + c,
    "v_med3_i32": lambda a, b, c: median(s32(a), s32(b), s32(c)),
    "v_med3_u32": median,
    "v_min3_i32": lambda a, b, c: min(s32(a), s32(b), s32(c)),
    "v_max3_u32": max,
    "v_sad_u8": lambda a, b, c: sum(abs(byte(a, i) - byte(b, i)) for i in range(4)) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_mad_legacy_u16": lambda a, b, c: (a * b + c) & M16,
    "v_mad_u32_u16": lambda a, b, c: (a & M16) * (b & M16) + c,
    "v_mad_i32_i16": lambda a, b, c: s16(a) * s16(b) + c,
    "v_dot2_i32_i16": lambda a, b, c: s16(a) * s16(b) + s16(a >> 16) * s16(b >> 16) + c,
    "v_dot4_u32_u8": lambda a, b, c: sum(byte(a, i) * byte(b, i) for i in range(4)) + c,
    "v_dot8_u32_u4": lambda a, b, c: sum((a >> 4 * i & 15) * (b >> 4 * i & 15) for i in range(8)) + c,
}


@pytest.mark.parametrize("name", THREE)
def test_three_operands(run: Run, name: str) -> None:
    a, b, c = operands(3)
    got = run(f"{name} v3, v0, v1, v2", v={0: a, 1: b, 2: c}).v(3)
    expected = [THREE[name](int(x), int(y), int(z)) & M32 for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(got, np.array(expected, np.uint32))


ONE: dict[str, Callable[[int], int]] = {
    "v_not_b32": lambda a: ~a,
    "v_mov_b32": lambda a: a,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32": leading_zeros,
    "v_ffbl_b32": lambda a: (a & -a).bit_length() - 1,
    "v_ffbh_i32": lambda a: leading_zeros(~a & M32 if a >> 31 else a),
}


@pytest.mark.parametrize("name", ONE)
def test_one_operand(run: Run, name: str) -> None:
    (a,) = operands(1)
    got = run(f"{name} v1, v0", v={0: a}).v(1)
    np.testing.assert_array_equal(got, np.array([ONE[name](int(x)) & M32 for x in a], np.uint32))


SATURATING: dict[str, Callable[[int, int], int]] = {
    "v_add_u32": lambda a, b: min(a + b, M32),
    "v_sub_u32": lambda a, b: max(a - b, 0),
    "v_add_i32": lambda a, b: clamp(s32(a) + s32(b), -(1 << 31), (1 << 31) - 1),
    "v_sub_i32": lambda a, b: clamp(s32(a) - s32(b), -(1 << 31), (1 << 31) - 1),
    "v_add_u16": lambda a, b: min((a & M16) + (b & M16), M16),
    "v_pk_add_i16": lambda a, b: (
        clamp(s16(a) + s16(b), -32768, 32767) & M16 | clamp(s16(a >> 16) + s16(b >> 16), -32768, 32767) << 16
    ),
}


@pytest.mark.parametrize("name", SATURATING)
def test_clamp_saturates_integers(run: Run, name: str) -> None:
    a, b = operands(2)
    got = run(f"{name} v2, v0, v1 clamp", v={0: a, 1: b}).v(2)
    expected = [SATURATING[name](int(x), int(y)) & M32 for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got, np.array(expected, np.uint32))


def test_carries_go_through_masks(run: Run) -> None:
    a, b = operands(2)
    text = "v_add_co_u32 v2, vcc, v0, v1\nv_addc_co_u32 v3, s[4:5], v0, v1, vcc\nv_sub_co_u32 v4, s[6:7], v0, v1"
    after = run(text + "\nv_subb_co_u32 v5, s[8:9], v0, v1, s[6:7]", v={0: a[:64], 1: b[:64]})
    a64, b64 = a[:64].astype(object), b[:64].astype(object)
    carry = a64 + b64 > M32
    borrow = b64 > a64

    def bits(condition: Any) -> int:
        return sum(int(c) << i for i, c in enumerate(condition))

    assert after.vcc == bits(carry)
    np.testing.assert_array_equal(after.v(3), ((a64 + b64 + carry) & M32).astype("u4"))
    assert after.s(4, 2) == bits(a64 + b64 + carry > M32)
    np.testing.assert_array_equal(after.v(4), ((a64 - b64) & M32).astype("u4"))
    np.testing.assert_array_equal(after.v(5), ((a64 - b64 - borrow) & M32).astype("u4"))
    assert after.s(8, 2) == bits(b64 + borrow > a64)


def test_64_bit_shifts_and_multiply_add(run: Run) -> None:
    rng = np.random.default_rng(3)
    x, z = rng.integers(0, 1 << 64, (2, 256), dtype=np.uint64)
    a, b = (v[:256] for v in operands(2))
    vectors = {0: x, 2: z, 4: a, 5: b}
    text = """v_lshlrev_b64 v[10:11], v4, v[0:1]
        v_lshrrev_b64 v[12:13], v4, v[0:1]
        v_ashrrev_i64 v[14:15], v4, v[0:1]
        v_mad_u64_u32 v[16:17], s[4:5], v4, v5, v[2:3]
        v_mad_i64_i32 v[18:19], s[4:5], v4, v5, v[2:3]
        v_lshl_add_u64 v[20:21], v[0:1], 3, v[2:3]
        v_mov_b64 v[22:23], v[2:3]"""
    after = run(text, v=vectors)
    rows = [(int(p), int(q), int(r), int(t)) for p, q, r, t in zip(x, z, a, b, strict=True)]

    def expect(register: int, function: Callable[[int, int, int, int], int]) -> None:
        expected = np.array([function(*row) & M64 for row in rows], np.uint64)
        np.testing.assert_array_equal(after.v(register, np.uint64), expected)

    expect(10, lambda p, q, r, t: p << (r & 63))
    expect(12, lambda p, q, r, t: p >> (r & 63))
    expect(14, lambda p, q, r, t: (p - (1 << 64) if p >> 63 else p) >> (r & 63))
    expect(16, lambda p, q, r, t: r * t + q)
    expect(18, lambda p, q, r, t: s32(r) * s32(t) + q)
    expect(20, lambda p, q, r, t: (p << 3) + q)
    expect(22, lambda p, q, r, t: q)


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_comparisons_set_bits_of_active_lanes_only(run: Run, relation: str) -> None:
    a, b = (x[:64] for x in operands(2))
    active = 0x5555_FFFF_0000_AAAA
    compare = RELATIONS[relation]
    for name, view in (("u32", int), ("i32", s32)):
        after = run(f"v_cmp_{relation}_{name} s[4:5], v0, v1", v={0: a, 1: b}, exec_bits=active)
        bits = sum(compare(view(int(x)), view(int(y))) << i for i, (x, y) in enumerate(zip(a, b, strict=True)))
        assert after.s(4, 2) == bits & active
    after = run(f"v_cmpx_{relation}_u32 vcc, v0, v1", v={0: a, 1: b}, exec_bits=active)
    bits = sum(compare(int(x), int(y)) << i for i, (x, y) in enumerate(zip(a, b, strict=True)))
    assert (after.vcc, after.exec) == (bits & active, bits & active)


def test_inactive_lanes_keep_their_value(run: Run) -> None:
    lane = np.arange(64, dtype=np.uint32)
    after = run(
        "v_add_u32 v1, v0, v0\nv_lshlrev_b64 v[2:3], 1, v[2:3]", v={0: lane, 1: 7, 2: lane, 3: lane}, exec_bits=0xF0
    )
    active = (lane >= 4) & (lane < 8)
    np.testing.assert_array_equal(after.v(1), np.where(active, 2 * lane, 7))
    np.testing.assert_array_equal(after.v(3), np.where(active, 2 * lane, lane))


def test_accumulation_registers_are_registers_of_their_own(run: Run) -> None:
    lane = np.arange(64, dtype=np.uint32)
    after = run("v_accvgpr_write_b32 a3, v0\nv_mov_b32 v3, 5\nv_accvgpr_read_b32 v1, a3", v={0: lane})
    np.testing.assert_array_equal(after.v(1), lane)
    np.testing.assert_array_equal(after.v(256 + 3), lane)


def test_swap(run: Run) -> None:
    lane = np.arange(64, dtype=np.uint32)
    after = run("v_swap_b32 v0, v1", v={0: lane, 1: lane + np.uint32(100)})
    np.testing.assert_array_equal(after.v(0), lane + 100)
    np.testing.assert_array_equal(after.v(1), lane)


SELECTIONS = {
    "BYTE_0": lambda x: x & 0xFF,
    "BYTE_3": lambda x: x >> 24,
    "WORD_0": lambda x: x & 0xFFFF,
    "WORD_1": lambda x: x >> 16,
    "DWORD": lambda x: x,
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_sdwa_selects_and_places(run: Run, selection: str) -> None:
    a, b = operands(2)
    old = np.uint32(0xA5A5A5A5)
    operand = SELECTIONS[selection](a)
    for unused, keep in (("UNUSED_PAD", 0), ("UNUSED_PRESERVE", 0xA5A50000)):
        modifiers = f"dst_sel:WORD_0 dst_unused:{unused} src0_sel:{selection} src1_sel:DWORD"
        got = run(f"v_add_u32_sdwa v2, v0, v1 {modifiers}", v={0: a, 1: b, 2: old}).v(2)
        np.testing.assert_array_equal(got, ((operand + b) & 0xFFFF) | keep)
    text = "v_or_b32_sdwa v2, v0, sext(v1) dst_sel:BYTE_2 dst_unused:UNUSED_SEXT src0_sel:BYTE_1 src1_sel:BYTE_1"
    got = run(text, v={0: a, 1: b, 2: old}).v(2)
    result = ((a | b) >> 8 & 0xFF).astype("u1").view("i1").astype("i4").view("u4") << 16
    np.testing.assert_array_equal(got, result)


def test_registers_at_an_index(run: Run) -> None:
    lane = np.arange(128, dtype=np.uint32)
    text = """v_readfirstlane_b32 s0, v10
        s_set_gpr_idx_on s0, gpr_idx(SRC0)
        v_mov_b32 v20, v1
        s_set_gpr_idx_off
        s_set_gpr_idx_on s0, gpr_idx(DST)
        v_mov_b32 v1, 7
        s_set_gpr_idx_off"""
    vectors = {register: lane + 1000 * register for register in range(1, 6)}
    after = run(text, v={**vectors, 10: lane // 64 + 2})
    np.testing.assert_array_equal(after.v(20), np.where(lane < 64, lane + 3000, lane + 4000))
    np.testing.assert_array_equal(after.v(3), np.where(lane < 64, 7, lane + 3000))
    np.testing.assert_array_equal(after.v(4), np.where(lane < 64, lane + 4000, 7))
    with pytest.raises(UnknownInstruction, match=r"v_add_u32 under gpr_idx\(DST\)"):
        run("s_set_gpr_idx_on s0, gpr_idx(DST)\nv_add_u32 v0, v0, v1\ns_set_gpr_idx_off")
