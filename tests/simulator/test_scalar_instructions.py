"""SOP1, SOP2, SOPC and SOPK against Python integers, as the ISA document defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
EDGES = [0, 1, 2, 5, 31, 32, 0x7FFFFFFF, 0x80000000, 0x80000001, M32, 0xFFFF, 0x10000, 0x12345678, 0x00080004]


def signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def pairs(count: int = 40) -> list[tuple[int, int]]:
    rng = np.random.default_rng(1)
    random = [(int(a), int(b)) for a, b in rng.integers(0, 1 << 32, (count, 2))]
    return [(a, b) for a in EDGES for b in EDGES[::3]] + random


BINARY: dict[str, Callable[[int, int], tuple[int, bool | None]]] = {
    "s_add_u32": lambda a, b: (a + b, a + b > M32),
    "s_sub_u32": lambda a, b: (a - b, b > a),
    "s_add_i32": lambda a, b: (a + b, not -(1 << 31) <= signed(a) + signed(b) < 1 << 31),
    "s_sub_i32": lambda a, b: (a - b, not -(1 << 31) <= signed(a) - signed(b) < 1 << 31),
    "s_mul_i32": lambda a, b: (a * b, None),
    "s_mul_hi_u32": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b: (signed(a) * signed(b) >> 32, None),
    "s_and_b32": lambda a, b: (a & b, a & b != 0),
    "s_or_b32": lambda a, b: (a | b, a | b != 0),
    "s_xor_b32": lambda a, b: (a ^ b, a ^ b != 0),
    "s_andn2_b32": lambda a, b: (a & ~b, a & ~b & M32 != 0),
    "s_orn2_b32": lambda a, b: (a | ~b, (a | ~b) & M32 != 0),
    "s_nand_b32": lambda a, b: (~(a & b), ~(a & b) & M32 != 0),
    "s_nor_b32": lambda a, b: (~(a | b), ~(a | b) & M32 != 0),
    "s_xnor_b32": lambda a, b: (~(a ^ b), ~(a ^ b) & M32 != 0),
    "s_lshl_b32": lambda a, b: (a << (b & 31), (a << (b & 31)) & M32 != 0),
    "s_lshr_b32": lambda a, b: (a >> (b & 31), a >> (b & 31) != 0),
    "s_ashr_i32": lambda a, b: (signed(a) >> (b & 31), signed(a) >> (b & 31) != 0),
    "s_min_i32": lambda a, b: (min(signed(a), signed(b)), signed(a) < signed(b)),
    "s_max_i32": lambda a, b: (max(signed(a), signed(b)), signed(a) >= signed(b)),
    "s_min_u32": lambda a, b: (min(a, b), a < b),
    "s_max_u32": lambda a, b: (max(a, b), a >= b),
    "s_lshl1_add_u32": lambda a, b: ((a << 1) + b, (a << 1) + b > M32),
    "s_lshl3_add_u32": lambda a, b: ((a << 3) + b, (a << 3) + b > M32),
    "s_bfm_b32": lambda a, b: (((1 << (a & 31)) - 1) << (b & 31), None),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF | b << 16, None),
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF | b & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda a, b: (a >> 16 | b & 0xFFFF0000, None),
    "s_absdiff_i32": lambda a, b: (abs(signed((a - b) & M32)), (a - b) & M32 != 0),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(run: Run, name: str) -> None:
    for a, b in pairs():
        after = run(f"{name} s2, s0, s1", s={0: a, 1: b})
        value, scc = BINARY[name](a, b)
        assert after.s(2) == value & M32, (hex(a), hex(b))
        assert scc is None or after.scc == scc, (hex(a), hex(b))


def extract(a: int, control: int, bits: int, is_signed: bool) -> int:
    offset, width = control & (bits - 1), min((control >> 16) & 0x7F, bits)
    field = (a >> offset) & ((1 << width) - 1)
    return field - (1 << width) if is_signed and width and field >> (width - 1) else field


@pytest.mark.parametrize("control", [0x00080004, 0x00200000, 0x00000003, 0x001F0001, 0x00010008, 0x00100000])
@pytest.mark.parametrize(("name", "is_signed"), [("s_bfe_u32", False), ("s_bfe_i32", True)])
def test_bit_field_extract(run: Run, name: str, is_signed: bool, control: int) -> None:
    for a in EDGES:
        after = run(f"{name} s2, s0, s1", s={0: a, 1: control})
        value = extract(a, control, 32, is_signed) & M32
        assert (after.s(2), after.scc) == (value, value != 0)


def test_bit_field_extract_64(run: Run) -> None:
    a = 0xFEDCBA9876543210
    for control in (0x00100010, 0x00400000, 0x00200020, 0x00010003):
        assert run("s_bfe_u64 s[4:5], s[0:1], s2", s={0: a, 2: control}).s(4, 2) == extract(a, control, 64, False)
        expected = extract(a, control, 64, True) & M64
        assert run("s_bfe_i64 s[4:5], s[0:1], s2", s={0: a, 2: control}).s(4, 2) == expected


def highest(x: int, bits: int) -> int:
    return bits - x.bit_length() if x else M32


def lowest(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else M32


UNARY: dict[str, Callable[[int], int]] = {
    "s_not_b32": lambda a: ~a,
    "s_brev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "s_abs_i32": lambda a: abs(signed(a)),
    "s_bcnt1_i32_b32": lambda a: bin(a).count("1"),
    "s_bcnt0_i32_b32": lambda a: 32 - bin(a).count("1"),
    "s_ff1_i32_b32": lowest,
    "s_ff0_i32_b32": lambda a: lowest(~a & M32),
    "s_flbit_i32_b32": lambda a: highest(a, 32),
    "s_flbit_i32": lambda a: highest(~a & M32 if a >> 31 else a, 32),
    "s_sext_i32_i8": lambda a: signed(a & 0xFF, 8),
    "s_sext_i32_i16": lambda a: signed(a & 0xFFFF, 16),
    "s_mov_b32": lambda a: a,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(run: Run, name: str) -> None:
    for a in EDGES + [p[0] for p in pairs(10)]:
        assert run(f"{name} s2, s0", s={0: a}).s(2) == UNARY[name](a) & M32, hex(a)


WIDE = [0, 1, M64, 1 << 63, 0x123456789ABCDEF0, 0xFFFFFFFF, 1 << 32]


def test_64_bit_bits(run: Run) -> None:
    for a in WIDE:
        assert run("s_bcnt1_i32_b64 s4, s[0:1]", s={0: a}).s(4) == bin(a).count("1")
        assert run("s_ff1_i32_b64 s4, s[0:1]", s={0: a}).s(4) == lowest(a)
        assert run("s_flbit_i32_b64 s4, s[0:1]", s={0: a}).s(4) == highest(a, 64)
        assert run("s_not_b64 s[4:5], s[0:1]", s={0: a}).s(4, 2) == ~a & M64
        assert run("s_brev_b64 s[4:5], s[0:1]", s={0: a}).s(4, 2) == int(f"{a:064b}"[::-1], 2)
        for n in (0, 1, 31, 32, 63, 64, 69):
            values = {0: a, 2: n}
            assert run("s_lshl_b64 s[4:5], s[0:1], s2", s=values).s(4, 2) == (a << (n & 63)) & M64
            assert run("s_lshr_b64 s[4:5], s[0:1], s2", s=values).s(4, 2) == a >> (n & 63)
            assert run("s_ashr_i64 s[4:5], s[0:1], s2", s=values).s(4, 2) == (signed(a, 64) >> (n & 63)) & M64


def test_carry_chain_adds_and_subtracts_64_bits(run: Run) -> None:
    for a in WIDE:
        for b in WIDE:
            total = run("s_add_u32 s4, s0, s2\ns_addc_u32 s5, s1, s3", s={0: a, 2: b})
            assert (total.s(4, 2), total.scc) == ((a + b) & M64, a + b > M64)
            difference = run("s_sub_u32 s4, s0, s2\ns_subb_u32 s5, s1, s3", s={0: a, 2: b})
            assert (difference.s(4, 2), difference.scc) == ((a - b) & M64, b > a)


COMPARE = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@pytest.mark.parametrize("relation", COMPARE)
def test_comparisons(run: Run, relation: str) -> None:
    for a, b in pairs(5)[::3]:
        expected = COMPARE[relation]
        assert run(f"s_cmp_{relation}_u32 s0, s1", s={0: a, 1: b}).scc == expected(a, b)
        assert run(f"s_cmp_{relation}_i32 s0, s1", s={0: a, 1: b}).scc == expected(signed(a), signed(b))
        assert run(f"s_cmpk_{relation}_i32 s0, 0xfffe", s={0: a}).scc == expected(signed(a), -2)
        assert run(f"s_cmpk_{relation}_u32 s0, 0xfffe", s={0: a}).scc == expected(a, 0xFFFE)


def test_selection_follows_scc(run: Run) -> None:
    for a, expected in ((1, 7), (0, 9)):
        text = "s_cmp_eq_u32 s0, 1\ns_cselect_b32 s2, 7, 9\ns_cselect_b64 s[4:5], 7, 9\ns_cmov_b32 s3, 5"
        after = run(text, s={0: a, 3: 4})
        assert (after.s(2), after.s(4, 2), after.s(3)) == (expected, expected, 5 if a else 4)


def test_constants_in_the_instruction(run: Run) -> None:
    after = run(
        "s_movk_i32 s0, 0x8000\ns_mov_b64 s[2:3], 0xffffffff\ns_mov_b64 s[4:5], -2\ns_mov_b32 s6, 1.0\n"
        "s_mov_b64 s[8:9], 1.0\ns_addk_i32 s6, 0xffff\ns_mov_b32 s7, 0x80\ns_mulk_i32 s7, 0xfffd"
    )
    assert after.s(0) == 0xFFFF8000
    assert after.s(2, 2) == 0xFFFFFFFF
    assert after.s(4, 2) == M64 - 1
    assert after.s(6) == 0x3F7FFFFF
    assert after.s(8, 2) == 0x3FF0000000000000
    assert signed(after.s(7)) == -384


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("s_and_saveexec_b64", lambda s, e: s & e),
        ("s_or_saveexec_b64", lambda s, e: s | e),
        ("s_xor_saveexec_b64", lambda s, e: s ^ e),
        ("s_andn2_saveexec_b64", lambda s, e: s & ~e & M64),
        ("s_andn1_saveexec_b64", lambda s, e: ~s & e & M64),
    ],
)
def test_saveexec(run: Run, name: str, result: Callable[[int, int], int]) -> None:
    source, old = 0xF0F0F0F00F0F0F0F, 0xFFFF0000FFFF0000
    after = run(f"{name} s[4:5], s[0:1]", s={0: source}, exec_bits=old)
    assert (after.s(4, 2), after.exec, after.scc) == (old, result(source, old), True)
    assert not run("s_and_saveexec_b64 s[4:5], s[0:1]", s={0: 0}).scc


def test_bit_tests_and_sets(run: Run) -> None:
    for a in EDGES:
        assert run("s_bitcmp1_b32 s0, 31", s={0: a}).scc == bool(a >> 31)
        assert run("s_bitcmp0_b32 s0, 0", s={0: a}).scc == (not a & 1)
        assert run("s_bitset1_b32 s0, 35", s={0: a}).s(0) == a | 8
        assert run("s_bitset0_b32 s0, 31", s={0: a}).s(0) == a & 0x7FFFFFFF
    assert run("s_wqm_b64 s[2:3], s[0:1]", s={0: 0x8000_0000_0000_0120}).s(2, 2) == 0xF000_0000_0000_0FF0
