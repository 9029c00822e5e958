"""Scalar instructions together, and with constants; each by itself is in test_differential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flydsl.simulator import UnknownInstruction

Run = Callable[..., Any]
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


WIDE = [0, 1, M64, 1 << 63, 0x123456789ABCDEF0, 0xFFFFFFFF, 1 << 32]


def test_carry_chain_adds_and_subtracts_64_bits(run: Run) -> None:
    for a in WIDE:
        for b in WIDE:
            total = run("s_add_u32 s4, s0, s2\ns_addc_u32 s5, s1, s3", s={0: a, 2: b})
            assert (total.s(4, 2), total.scc) == ((a + b) & M64, a + b > M64)
            difference = run("s_sub_u32 s4, s0, s2\ns_subb_u32 s5, s1, s3", s={0: a, 2: b})
            assert (difference.s(4, 2), difference.scc) == ((a - b) & M64, b > a)


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


def test_literals_of_64_bit_operands(run: Run) -> None:
    """Signed ones are sign-extended, bit patterns are not (CDNA3 ISA, "Literal Expansion to 64 bits")."""
    after = run("s_ashr_i64 s[0:1], 0xf0000000, 4\ns_lshr_b64 s[2:3], 0xf0000000, 4")
    assert signed(after.s(0, 2), 64) == -0x1000000
    assert after.s(2, 2) == 0xF000000


def test_a_wave_is_always_in_the_same_place(run: Run) -> None:
    after = run("s_getreg_b32 s4, hwreg(HW_REG_HW_ID)\ns_getreg_b32 s5, hwreg(HW_REG_XCC_ID, 0, 4)", s={4: 7, 5: 7})
    assert (after.s(4), after.s(5)) == (0, 0)


@pytest.mark.parametrize("text", ["s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)", "s_setreg_b32 hwreg(HW_REG_HW_ID), s4"])
def test_other_hardware_registers_are_refused(run: Run, text: str) -> None:
    with pytest.raises(UnknownInstruction, match="hardware register"):
        run(text)
