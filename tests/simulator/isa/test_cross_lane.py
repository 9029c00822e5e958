"""Lanes that read other lanes: readlane, permutes, swizzles, DPP, counting masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
LANE = np.arange(64)
X = (1000 + LANE).astype(np.uint32)


def test_single_lanes(run: Run) -> None:
    text = """v_readlane_b32 s2, v0, 5
        s_mov_b32 s3, 41
        v_readlane_b32 s4, v0, s3
        v_readfirstlane_b32 s5, v0
        v_writelane_b32 v1, s2, 7"""
    after = run(text, v={0: X, 1: X}, exec_bits=0xFFF0)
    assert (after.s(2), after.s(4), after.s(5)) == (1005, 1041, 1004)
    np.testing.assert_array_equal(after.v(1), np.where(LANE == 7, 1005, X))


def test_first_lane_without_any_active_one_is_lane_0(run: Run) -> None:
    assert run("v_readfirstlane_b32 s5, v0", v={0: X}, exec_bits=0).s(5) == 1000


def test_mask_counts(run: Run) -> None:
    mask = 0xF0F0_1234_8765_00FF
    text = "v_mbcnt_lo_u32_b32 v0, s0, 0\nv_mbcnt_hi_u32_b32 v0, s1, v0"
    got = run(text, s={0: mask}).v(0)
    np.testing.assert_array_equal(got, [bin(mask & ((1 << lane) - 1)).count("1") for lane in range(64)])


def test_bpermute_reads_and_permute_writes(run: Run) -> None:
    source = np.random.default_rng(1).permutation(64)
    after = run("ds_bpermute_b32 v2, v1, v0\nds_permute_b32 v3, v1, v0", v={0: X, 1: (4 * source).astype("u4")})
    np.testing.assert_array_equal(after.v(2), X[source])
    np.testing.assert_array_equal(after.v(3)[source], X)


def test_bpermute_takes_0_from_an_inactive_lane(run: Run) -> None:
    got = run("ds_bpermute_b32 v2, v1, v0", v={0: X, 1: np.full(64, 40, "u4"), 2: 7}, exec_bits=0xFF).v(2)
    np.testing.assert_array_equal(got, np.where(LANE < 8, 0, 7))


SWIZZLES: dict[str, Callable[[int], int]] = {
    "swizzle(SWAP,16)": lambda i: i ^ 16,
    "swizzle(SWAP,1)": lambda i: i ^ 1,
    "swizzle(REVERSE,8)": lambda i: i ^ 7,
    "swizzle(BROADCAST,8,3)": lambda i: (i & ~7) | 3,
    "swizzle(QUAD_PERM,3,1,2,0)": lambda i: (i & ~3) | (3, 1, 2, 0)[i & 3],
    'swizzle(BITMASK_PERM,"01pip")': lambda i: (i & 32) | ((i & 0b00101 | 0b01000) | ((i ^ 0b00010) & 0b00010)),
    "0x401f": lambda i: i ^ 16,
    # The tables of the ISA document, DS_SWIZZLE_B32.
    "swizzle(ROTATE,0,1)": lambda i: (i & 32) | (i + 1) & 31,
    "swizzle(ROTATE,1,5)": lambda i: (i & 32) | (i - 5) & 31,
    "0xc021": lambda i: (i & 32) | (1, 4, 3, 6, 5, 8, 7, 10)[i & 7] - 1 + (i & 24) & 31,
    "swizzle(FFT,31)": lambda i: i,
    "swizzle(FFT,0)": lambda i: (i & 32) | int(f"{i & 31:05b}"[::-1], 2),
    "swizzle(FFT,16)": lambda i: (i & 48) | int(f"{i & 15:04b}"[::-1], 2),
}


@pytest.mark.parametrize("pattern", SWIZZLES)
def test_swizzle(run: Run, pattern: str) -> None:
    got = run(f"ds_swizzle_b32 v1, v0 offset:{pattern}", v={0: X}).v(1)
    np.testing.assert_array_equal(got, [1000 + SWIZZLES[pattern](i) for i in range(64)])


def shifted(distance: int, span: int) -> Callable[[int], int | None]:
    def source(i: int) -> int | None:
        position = i % span + distance
        return i // span * span + position if 0 <= position < span else None

    return source


DPP: dict[str, Callable[[int], int | None]] = {
    "quad_perm:[1,0,3,2]": lambda i: i ^ 1,
    "row_shl:1": shifted(1, 16),
    "row_shr:3": shifted(-3, 16),
    "row_ror:4": lambda i: i // 16 * 16 + (i % 16 - 4) % 16,
    "wave_shr:1": shifted(-1, 64),
    "wave_rol:1": lambda i: (i + 1) % 64,
    "row_mirror": lambda i: i // 16 * 16 + 15 - i % 16,
    "row_half_mirror": lambda i: i // 8 * 8 + 7 - i % 8,
    "row_bcast:15": lambda i: i // 16 * 16 - 1 if i >= 16 else None,
    "row_bcast:31": lambda i: 31 if i >= 32 else None,
    "row_newbcast:5": lambda i: i // 16 * 16 + 5,
}


@pytest.mark.parametrize("control", DPP)
def test_dpp_moves(run: Run, control: str) -> None:
    sources = [DPP[control](i) for i in range(64)]
    text = f"v_mov_b32_dpp v1, v0 {control} row_mask:0xf bank_mask:0xf\n"
    text += f"v_mov_b32_dpp v2, v0 {control} row_mask:0xf bank_mask:0xf bound_ctrl:0"
    after = run(text, v={0: X, 1: 7, 2: 7})
    np.testing.assert_array_equal(after.v(1), [7 if s is None else 1000 + s for s in sources])
    np.testing.assert_array_equal(after.v(2), [0 if s is None else 1000 + s for s in sources])


def test_dpp_masks_and_inactive_sources(run: Run) -> None:
    text = "v_add_u32_dpp v1, v0, v0 row_shr:1 row_mask:0xa bank_mask:0x3"
    got = run(text, v={0: X, 1: 7}, exec_bits=~(1 << 16) & (1 << 64) - 1).v(1)
    for i in range(64):
        written = i // 16 in (1, 3) and i % 16 // 4 in (0, 1) and i % 16 != 0 and i not in (16, 17)
        assert got[i] == (2000 + 2 * i - 1 if written else 7)


def test_dpp_reduction_as_llvm_writes_it(run: Run) -> None:
    x = np.random.default_rng(2).integers(0, 1000, 64).astype(np.uint32)
    steps = ["row_shr:1", "row_shr:2", "row_shr:4", "row_shr:8"]
    text = "\n".join(f"v_add_u32_dpp v0, v0, v0 {s} row_mask:0xf bank_mask:0xf bound_ctrl:0" for s in steps)
    text += "\nv_add_u32_dpp v0, v0, v0 row_bcast:15 row_mask:0xa bank_mask:0xf"
    text += "\nv_add_u32_dpp v0, v0, v0 row_bcast:31 row_mask:0xc bank_mask:0xf\nv_readlane_b32 s0, v0, 63"
    assert run(text, v={0: x}).s(0) == x.sum()


def test_dpp_of_packed_math_ends_with_the_instruction(run: Run) -> None:
    """The lanes that DPP leaves out are written by what comes after it."""
    ones = np.full(64, 0x3C003C00, np.uint32)
    text = "v_pk_mul_f16 v1, v0, v0 row_shr:15\nv_mov_b32 v2, 7"
    np.testing.assert_array_equal(run(text, v={0: ones, 2: np.zeros(64, np.uint32)}).v(2), 7)
