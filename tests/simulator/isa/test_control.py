"""Branches, calls, and the registers that are not general."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco.operands import EXEC, VCC
from flydsl.simulator import UnknownInstruction
from tests.simulator.differential import run as run_waves

Run = Callable[..., Any]

BRANCHES: dict[str, tuple[int, Callable[[int], bool]]] = {
    "s_cbranch_execz": (EXEC, lambda bits: bits == 0),
    "s_cbranch_execnz": (EXEC, lambda bits: bits != 0),
    "s_cbranch_vccz": (VCC, lambda bits: bits == 0),
    "s_cbranch_vccnz": (VCC, lambda bits: bits != 0),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_look_at_the_whole_mask(name: str) -> None:
    """Waves that branch and waves that do not, in one launch."""
    register, taken = BRANCHES[name]
    masks = [0, 1, 1 << 31, 1 << 32, 1 << 63, 0]
    halves = {register + i: np.array([m >> 32 * i & 0xFFFFFFFF for m in masks], np.uint32) for i in range(2)}
    text = f"s_mov_b32 s0, 1\n{name} there\ns_mov_b32 s0, 2\nthere:\ns_add_u32 s0, s0, 16"
    state = run_waves(text, scalars=halves, exec_bits=None if register == EXEC else 1, waves=len(masks))
    assert state.sgpr[:, 0].tolist() == [17 if taken(m) else 18 for m in masks]


@pytest.mark.parametrize(("value", "expected"), [(0, 18), (1, 17)])
def test_branches_on_scc(run: Run, value: int, expected: int) -> None:
    text = f"s_cmp_eq_u32 s1, {value}\ns_cbranch_scc0 there\ns_mov_b32 s0, 2\nthere:\ns_add_u32 s0, s0, 16"
    assert run(text, s={0: 1, 1: 0}).s(0) == expected


def test_a_call_returns_behind_itself(run: Run) -> None:
    text = "s_call_b64 s[2:3], there\ns_add_u32 s0, s0, 1\ns_endpgm\nthere:\ns_mov_b32 s0, 10\ns_setpc_b64 s[2:3]"
    assert run(text).s(0) == 11


@pytest.mark.parametrize("name", ["s_endpgm", "s_endpgm_saved"])
def test_nothing_runs_behind_the_end(run: Run, name: str) -> None:
    assert run(f"s_mov_b32 s0, 1\n{name}\ns_mov_b32 s0, 2").s(0) == 1


def test_clocks_advance(run: Run) -> None:
    after = run("s_memtime s[0:1]\ns_nop 0\ns_memrealtime s[2:3]")
    assert after.s(0, 2) < after.s(2, 2)


def test_fields_of_the_mode_register(run: Run) -> None:
    text = "s_mov_b32 s0, 0xfff5\ns_setreg_b32 hwreg(HW_REG_MODE, 4, 3), s0\ns_getreg_b32 s1, hwreg(HW_REG_MODE)\n"
    after = run(text + "s_getreg_b32 s2, hwreg(HW_REG_MODE, 5, 2)", mode=0x300)
    assert (after.s(1), after.s(2)) == (0x350, 2)


@pytest.mark.parametrize("field", ["0, 0", "0, -1", "32, 1", "-1, 4", "0, 99999999999", "4", "a, b", "0, 1, 2"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201", "gfx1250"])
def test_fields_that_no_register_has(run: Run, arch: str, field: str) -> None:
    name = "HW_REG_MODE" if arch == "gfx942" else "HW_REG_WAVE_MODE"
    for text in (f"s_setreg_b32 hwreg({name}, {field}), s0", f"s_getreg_b32 s0, hwreg({name}, {field})"):
        with pytest.raises(UnknownInstruction, match=re.escape(f"hwreg({name}, {field})")):
            run(text, arch=arch)


def test_a_field_ends_with_its_register(run: Run) -> None:
    assert run("s_getreg_b32 s0, hwreg(HW_REG_MODE, 8, 32)", mode=0x3F5).s(0) == 3
