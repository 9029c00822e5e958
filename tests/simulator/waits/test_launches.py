"""Missing waits that launches meet under checking("waits")."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Memory, MissingWait, Program, checking, launch
from tests.simulator.conftest import compile_llvm_ir
from tests.simulator.waits.cases import CASES, IN_LDS, Case

SHELL = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {
  call void asm sideeffect "", "~{v31},~{a3}"()
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""
_PROLOGUE = {
    "gfx9": "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_and_b32_e32 v0, 0x3ff, v0\n"
            "v_lshlrev_b32_e32 v1, 2, v0\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)",
    "gfx12": "s_load_b64 s[4:5], s[0:1], 0x0\ns_wait_kmcnt 0x0\nv_and_b32_e32 v0, 0x3ff, v0\n"
             "v_lshlrev_b32_e32 v1, 2, v0\nds_store_b32 v1, v0\ns_wait_dscnt 0x0",
}  # fmt: skip
_REST = "s_mov_b32 s8, s4\ns_and_b32 s9, s5, 0xffff\ns_movk_i32 s10, 0x1000\ns_mov_b32 s11, 0x27000"


def run(case: Case, *checks: str) -> Any:
    """Launch two waves that execute the case's instructions."""
    arch = get_arch(case.arch)
    hsaco, listing = compile_llvm_ir(SHELL, case.arch)
    info = Program.load(hsaco, listing).kernels["k"]
    prologue = _PROLOGUE["gfx12" if case.arch.startswith("gfx12") else "gfx9"]
    if case.arch == "gfx90a":  # behind the descriptor of scratch
        prologue = prologue.replace("s[0:1]", "s[4:5]")
    text = read_listing(f"k:\n{prologue}\n{_REST}\n{case.text}\ns_endpgm\n")
    memory = Memory()
    kernarg = struct.pack("<Q", memory.map_array(np.zeros(1024, np.uint32), name="out"))
    with checking(*checks):
        launch(
            Program.from_listing({"k": info}, text, arch, arch.wave_size), "k", grid=(1, 1, 1),
            block=(2 * arch.wave_size, 1, 1), kernarg=kernarg, memory=memory, dynamic_lds_bytes=1024,
        )  # fmt: skip


@pytest.mark.parametrize("case", {**CASES, **IN_LDS}.values(), ids={**CASES, **IN_LDS})
def test_uses_that_nothing_waits_for(case: Case) -> None:
    if case.missing is None:
        run(case, "waits")
        return
    with pytest.raises(MissingWait) as caught:
        run(case, "waits")
    assert (caught.value.counter, caught.value.enough) == case.missing


def test_the_error_says_what_the_hardware_may_see() -> None:
    text = "v_mov_b32_e32 v2, 1.0\nglobal_load_dword v2, v1, s[4:5]\nv_add_u32_e32 v4, v2, v2"
    with pytest.raises(MissingWait) as caught:
        run(Case("gfx942", text), "waits")
    error = caught.value
    assert (error.instruction, error.started) == (text.split("\n")[2], text.split("\n")[1])
    assert (error.workgroup, error.wave, error.lane) == ((0, 0, 0), 0, 0)
    assert error.seen.startswith("v2 held 0x3f800000 (1 as f32) before, which the hardware may still see; 0x00000000")


def test_lanes_that_are_masked_off_wait_for_nothing() -> None:
    """A load for half of the lanes, and a use by the others: what LLVM makes of a branch."""
    one = "s_mov_b64 exec, 0xffff\nglobal_load_dword v2, v1, s[4:5]\ns_mov_b64 exec, 0xff0000\nv_mov_b32_e32 v4, v2"
    run(Case("gfx942", f"v_mov_b32_e32 v2, 0\n{one}"), "waits")


def test_other_checks_leave_missing_waits_alone() -> None:
    run(CASES["nothing waits"], "races")
