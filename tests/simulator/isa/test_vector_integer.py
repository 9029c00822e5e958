"""Vector integer instructions, lane by lane, against Python integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import UnknownInstruction
from flydsl.simulator.arrays import Array

Run = Callable[..., Any]
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
