"""What the checks find and, as important, what they do not."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from flydsl.errors import ArgumentError
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import (
    LdsRace,
    Memory,
    MisalignedAccess,
    Program,
    UninitializedLds,
    UninitializedRegister,
    checking,
    launch,
)
from flydsl.simulator.arrays import Array
from flydsl.simulator.checks import CHECKS, LATE, NAN, OVERFLOW
from flydsl.simulator.lockstep.checked.access_history import Accesses, AccessHistory, Marks
from flydsl.simulator.lockstep.checked.clocks import Clocks, wave_of
from tests.simulator import mistaken_kernels as kernels

Compile = Callable[[str], tuple[bytes, str]]
Run = Callable[..., Array]

# A kernel whose code the tests replace: a compiler folds undefined values away before there are registers.
SHELL = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {
  store i32 1, ptr addrspace(1) %out
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""
LDS_BYTES, SCRATCH_BYTES = 1024, 64
WITHOUT_WAITS = tuple(check for check in CHECKS if check != "waits")
# v0: thread, v1: 4 * thread, v[2:3]: address of out[thread], s[4:5]: out.
PROLOGUE = """k:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, v1
  v_mov_b32 v3, 0
  v_lshl_add_u64 v[2:3], s[4:5], 0, v[2:3]
"""


@pytest.fixture
def run(compile_ir: Compile) -> Run:
    """Run assembly as the rest of a kernel, under the named checks, by default those that leave missing waits alone,
    as most texts here wait for nothing; what it leaves in `out`."""
    hsaco, listing = compile_ir(SHELL)
    compiled = Program.load(hsaco, listing).kernels["k"]
    descriptor = compiled.descriptor._replace(vgpr_granules=9, accum_offset=64)
    info = compiled._replace(vgprs=64, agprs=8, lds_bytes=LDS_BYTES, scratch_bytes=SCRATCH_BYTES, descriptor=descriptor)

    def run(text: str, *checks: str, block: int = 64, grid: int = 1) -> Array:
        out = np.zeros(256, np.uint32)
        memory = Memory()
        kernarg = struct.pack("<Q", memory.map_array(out, name="out"))
        program = Program.from_listing({"k": info}, read_listing(f"{PROLOGUE}{text}\n  s_endpgm\n"))
        with checking(*(checks or WITHOUT_WAITS)) as run.findings:  # type: ignore[attr-defined]
            launch(program, "k", grid=(grid, 1, 1), block=(block, 1, 1), kernarg=kernarg, memory=memory)
        return out

    return run


STORE_V10 = "\nglobal_store_dword v[2:3], v10, off"


# --- registers that nothing wrote


@pytest.mark.parametrize(
    ("text", "problem", "register"),
    [
        ("v_add_u32 v11, v10, v0\nglobal_store_dword v[2:3], v11, off", "a value in global memory", "v11"),
        ("v_accvgpr_read_b32 v10, a3" + STORE_V10, "a value in global memory", "v10"),
        ("v_mov_b32 v10, s20" + STORE_V10, "a value in global memory", "v10"),
        ("v_cndmask_b32 v10, 1, 2, vcc" + STORE_V10, "a value in global memory", "v10"),
        ("scratch_load_dword v10, off, off offset:8" + STORE_V10, "a value in global memory", "v10"),
        ("v_and_b32 v11, 4, v10\nglobal_store_dword v11, v0, s[4:5]", "the address of an access", "v11"),
        ("v_and_b32 v11, 4, v10\nds_write_b32 v11, v0", "the address of an access", "v11"),
        ("s_and_b32 s21, s20, 4\ns_load_dword s22, s[4:5], s21", "the address of an access", "s21"),
        ("s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 end\ns_nop 0\nend:", "where the wave goes on", ""),
        ("v_cmp_gt_i32 vcc, v10, 0\ns_and_saveexec_b64 s[20:21], vcc", "whether a lane is active", "vcc"),
        ("global_atomic_add v1, v10, s[4:5]", "a value in global memory", "v10"),
        ("v_readfirstlane_b32 s20, v10\ns_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s20", "the MODE register", "s20"),
    ],
)
def test_what_must_not_depend_on_a_register_that_nothing_wrote(
    run: Run, text: str, problem: str, register: str
) -> None:
    with pytest.raises(UninitializedRegister) as caught:
        run(text)
    error = caught.value
    assert str(error).split(": ", 1)[1].startswith(problem)
    assert register in " ".join(error.registers)
    assert f"instruction: {error.instruction} (ISA line {error.isa_line})" in str(error)
    assert (error.workgroup, error.wave) == ((0, 0, 0), 0)


def test_where_the_undefined_value_came_from(run: Run) -> None:
    with pytest.raises(UninitializedRegister) as caught:
        run("v_add_u32 v11, v10, v0\nv_mul_u32_u24 v12, v11, v11\nglobal_store_dword v[2:3], v12, off", block=128)
    assert "through v12 on a register or scratch that nothing wrote" in str(caught.value)
    assert "read before anything wrote it: v10 in v_add_u32 v11, v10, v0 (ISA line 7)" in str(caught.value)
    assert "(out, uint32[256]: element 0, address 0x" in str(caught.value)
    assert caught.value.access is not None
    assert (caught.value.access.buffer, caught.value.access.element_index) == ("out", 0)


def test_only_some_lanes_were_written(run: Run) -> None:
    """A lane that was not active when the register was written has nothing in it."""
    text = "s_mov_b64 exec, 0xff\nv_mov_b32 v10, 1\ns_mov_b64 exec, {}" + STORE_V10
    assert run(text.format("0xff")).sum() == 8
    with pytest.raises(UninitializedRegister) as caught:
        run(text.format("0x1ff"))
    assert (caught.value.lane, caught.value.thread) == (8, (8, 0, 0))
    assert "lane 8, thread (8, 0, 0)" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "v_mul_u32_u24 v11, v10, v10\nv_mov_b32 v10, 1",
        "v_and_b32 v10, 0, v10\nv_add_u32 v10, 1, v10",
        "v_or_b32 v10, -1, v10\nv_mov_b32 v11, 1\nv_sub_u32 v10, 0, v10",
        "v_cmp_eq_u32 vcc, v0, v0\nv_cndmask_b32 v10, v10, 1, vcc",
        "v_mov_b32_sdwa v10, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD\n"
        "v_mov_b32_sdwa v10, v0 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD\nv_mov_b32 v10, 1",
        "v_mov_b32 v11, 1\nv_pk_add_u16 v12, v11, v10 op_sel_hi:[0,0]\nv_sub_u16 v12, v12, v10\nv_and_b32 v10, 1, v12",
        "scratch_store_dword off, v10, off\nscratch_load_dword v12, off, off\nv_mov_b32 v10, 1",
        "ds_write_b32 v1, v10\nds_read_b32 v12, v1\nv_sub_u32 v12, v12, v10\nv_add_u32 v10, 1, v12",
        "s_mov_b64 s[20:21], exec\ns_mov_b64 exec, 0\nglobal_store_dword v[20:21], v22, off\n"
        "ds_read_b32 v12, v11\ns_mov_b64 exec, s[20:21]\nv_mov_b32 v10, 1",
    ],
)
def test_undefined_values_that_do_not_matter(run: Run, text: str) -> None:
    assert run(text + STORE_V10)[:64].sum() == 64


def test_bytes_of_a_register_that_are_not_stored_do_not_matter(run: Run) -> None:
    assert run("v_and_b32 v10, 0xffffff00, v10\nv_or_b32 v10, 7, v10\nglobal_store_byte v[2:3], v10, off")[0] == 7


def test_atomics_happen_once(run: Run) -> None:
    out = run("v_mov_b32 v10, 1\nv_mov_b32 v11, 0\nglobal_atomic_add v12, v11, v10, s[4:5] sc0\n"
              "v_lshlrev_b32 v13, 2, v12\nglobal_store_dword v13, v12, s[4:5] offset:4", block=128)  # fmt: skip
    assert out[0] == 128
    np.testing.assert_array_equal(out[1:129], np.arange(128))


def test_a_nan_is_like_any_other_value(run: Run) -> None:
    text = "v_mov_b32 v10, 0x7fc00000\nv_mov_b32 v11, 0\nglobal_atomic_add_f32 v11, v10, s[4:5]"
    assert np.isnan(run(text).view(np.float32)[0])


def test_flat_atomics_happen_in_lds_and_once_in_global_memory(run: Run) -> None:
    """Lane 0 adds to LDS, the others to global memory."""
    text = """v_mov_b32 v10, 0
        ds_write_b32 v10, v10
        v_mov_b32 v11, 1
        v_mov_b32 v12, s4
        v_mov_b32 v13, s5
        s_mov_b64 s[20:21], src_shared_base
        s_mov_b64 exec, 1
        v_mov_b32 v12, 0
        v_mov_b32 v13, s21
        s_mov_b64 exec, -1
        flat_atomic_add v14, v[12:13], v11 sc0
        ds_read_b32 v15, v10
        v_add_u32 v14, v14, v15
        global_store_dword v[2:3], v14, off offset:256"""
    out = run(text)
    assert out[0] == 63
    np.testing.assert_array_equal(out[64:128], np.maximum(np.arange(64), 1))


def test_a_checked_launch_does_what_a_launch_does() -> None:
    a, out = kernels.operands(blocks=2)
    with checking():
        kernels.reverse(a, out)
    assert torch.equal(out.view(2, -1), a.view(2, -1).flip(1))


# --- LDS


@pytest.mark.parametrize(
    "text",
    [
        "ds_read_b32 v10, v1 offset:256",
        "ds_write_b32 v1, v0\nds_read_b64 v[10:11], v1",
        "ds_write_b16 v1, v0\nds_read_b32 v10, v1",
        "ds_add_u32 v1, v0",
        "s_mov_b64 exec, 1\nds_write_b32 v1, v0\ns_mov_b64 exec, 3\nds_read_b32 v10, v1",
    ],
)
def test_lds_that_nothing_wrote(run: Run, text: str) -> None:
    with pytest.raises(UninitializedLds, match="which no thread of the workgroup has written"):
        run(text, "uninitialized")


@pytest.mark.parametrize(
    "text",
    [
        "ds_write_b32 v1, v0\nds_read_b32 v10, v1",
        "ds_write_b8 v0, v0\nds_read_u8 v10, v0",
        "ds_wrxchg_rtn_b32 v10, v1, v0\nds_add_u32 v1, v0\nds_read_b32 v10, v1",
        "s_mov_b32 m0, 0\nglobal_load_lds_dword v1, s[4:5]\nds_read_b32 v10, v1",
        "s_mov_b64 exec, 1\nds_write_b32 v1, v0\nds_read_b32 v10, v1",
        "v_mov_b32 v4, s4\nds_bpermute_b32 v10, v1, v4",
    ],
)
def test_lds_that_something_wrote(run: Run, text: str) -> None:
    run(text)


WAVE_1_ONLY = "v_cmp_lt_u32 vcc, 63, v0\ns_and_saveexec_b64 s[20:21], vcc\n{}\ns_mov_b64 exec, s[20:21]\n"
WAVE_0_ONLY = WAVE_1_ONLY.replace("v_cmp_lt_u32", "v_cmp_ge_u32")
SAME_PLACES = "v_and_b32 v4, 0xff, v1\n"  # lane by lane the same in both waves


@pytest.mark.parametrize(
    ("first", "second", "is_race"),
    [
        ("ds_write_b32 v4, v0", "ds_read_b32 v10, v4", True),
        ("ds_read_b32 v10, v4", "ds_write_b32 v4, v0", True),
        ("ds_write_b32 v4, v0", "ds_write_b32 v4, v0", True),
        ("ds_write_b8 v4, v0", "ds_read_b32 v10, v4", True),
        ("ds_write_b8 v4, v0", "ds_read_u8 v10, v4 offset:1", False),
        ("ds_read_b32 v10, v4", "ds_read_b32 v10, v4", False),
        ("ds_add_u32 v4, v0", "ds_add_u32 v4, v0", False),
        ("ds_add_u32 v4, v0", "ds_read_b32 v10, v4", True),
        ("ds_write_b32 v4, v0", "ds_add_u32 v4, v0", True),
        ("ds_read_b32 v10, v4", "ds_add_u32 v4, v0", True),
        ("ds_write_b32 v4, v0", "ds_read_b32 v10, v4 offset:256", False),
    ],
)
def test_races(run: Run, first: str, second: str, is_race: bool) -> None:
    """Wave 0 does the first, wave 1 the second; and never a race with a barrier between, or within one wave."""
    one, two = WAVE_0_ONLY.format(first), WAVE_1_ONLY.format(second)
    run(f"{SAME_PLACES}{one}s_barrier\n{two}", "races", block=128)
    run(f"{SAME_PLACES}{first}\n{second}", "races", block=64)
    if is_race:
        with pytest.raises(LdsRace, match=r"which wave 0, lane \d+ .* with no barrier in between"):
            run(SAME_PLACES + one + two, "races", block=128)
    else:
        run(SAME_PLACES + one + two, "races", block=128)


def test_waves_that_write_one_place_in_one_instruction(run: Run) -> None:
    run("ds_write_b32 v1, v0", "races", block=128)
    with pytest.raises(LdsRace, match="wave 1, lane 0"):
        run(SAME_PLACES + "ds_write_b32 v4, v0", "races", block=128)


def test_workgroups_have_their_own_lds(run: Run) -> None:
    run("ds_write_b32 v1, v0\nds_read_b32 v10, v1", grid=4)


def test_a_barrier_orders_the_waves_of_its_workgroup_only() -> None:
    clocks = Clocks(waves=4, waves_per_workgroup=2)
    stamps = clocks.stamps(np.array([0, 2]), np.array([5, 6]), pc=7)
    assert clocks.are_before(stamps, np.array([1, 3])).tolist() == [False, False]
    clocks.signal_barrier(np.array([0, 1]))
    clocks.pass_barrier(0)
    assert clocks.are_before(stamps, np.array([1, 3])).tolist() == [True, False]
    assert clocks.are_before(stamps, np.array([0, 2])).tolist() == [True, True], "its own"
    assert not clocks.are_before(clocks.stamps(np.array([0]), np.array([0]), pc=8), np.array([1])).any()


def test_a_wave_orders_what_it_did_before_its_signal_only() -> None:
    """What a wave learnt from an atomic after the other's signal, it still knows after the barrier."""
    clocks = Clocks(waves=2, waves_per_workgroup=2)
    before = clocks.stamps(np.array([0]), np.array([0]), pc=1)
    clocks.signal_barrier(np.array([0]))
    told = clocks.stamps(np.array([0]), np.array([0]), pc=2)
    clocks.release(0, "flag")
    clocks.end_release(np.array([0]))
    after = clocks.stamps(np.array([0]), np.array([0]), pc=3)
    clocks.acquire(1, "flag")
    clocks.signal_barrier(np.array([1]))
    clocks.pass_barrier(0)
    assert [bool(clocks.are_before(stamp, np.array([1]))[0]) for stamp in (before, told, after)] == [True, True, False]


def test_what_an_atomic_tells_is_passed_on() -> None:
    """Wave 0 tells wave 2, that one wave 3 by a barrier, and that one wave 5."""
    clocks = Clocks(waves=6, waves_per_workgroup=2)
    stamp = clocks.stamps(np.array([0]), np.array([0]), pc=1)
    clocks.release(0, "flag")
    clocks.end_release(np.array([0]))
    later = clocks.stamps(np.array([0]), np.array([0]), pc=1)
    clocks.acquire(2, "flag")
    clocks.acquire(4, "another flag")
    clocks.signal_barrier(np.array([2, 3]))
    clocks.pass_barrier(1)
    clocks.release(3, "another flag")
    clocks.acquire(5, "another flag")
    before = [bool(clocks.are_before(stamp, np.array([wave]))[0]) for wave in range(6)]
    assert before == [True, False, True, True, False, True]
    assert not clocks.are_before(later, np.array([2])).any()


def test_a_race_with_either_of_two_readers() -> None:
    """Whoever read first, a write of one of the readers conflicts with the other."""
    place, lane, marks = np.array([0]), np.array([0]), Marks(*np.zeros((3, 8), np.bool_))
    for writer in (0, 1):
        clocks = Clocks(waves=2, waves_per_workgroup=2)
        history = AccessHistory(np.zeros(4, np.uint8), clocks, 2)

        def access(kind: str, wave: int, history: AccessHistory = history) -> Any:
            stored = np.ones((1, 4), np.uint8)
            accesses = Accesses(kind, place, 4, np.array([wave]), lane, wave, lambda chosen: stored)
            return history.access(accesses, marks)

        assert access("read", 0) is None
        assert access("read", 1) is None
        assert wave_of(access("write", writer).stamp) == 1 - writer


# --- alignment


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("global_load_dword v10, v1, s[4:5] offset:2", 4),
        ("global_store_short v1, v0, s[4:5] offset:1", 2),
        ("v_mov_b32 v4, 4\nds_write_b64 v4, v[2:3]", 8),
        ("v_mov_b32 v4, 8\nds_read_b128 v[4:7], v4", 16),
        ("scratch_load_dword v10, off, off offset:3", 4),
    ],
)
def test_what_is_slow_for_its_address_is_no_fault(run: Run, text: str, required: int) -> None:
    run(text.replace("global_store_short v1", "s_mov_b64 exec, 1\nglobal_store_short v1"), "alignment")
    (hint,) = run.findings.hints  # type: ignore[attr-defined]
    assert hint.alignment == required
    assert hint.instruction == text.split("\n")[-1]
    assert hint.count in (1, 64)
    assert f"not multiples of {required}, the first {hint.access.address:#x}" in str(hint)


@pytest.mark.parametrize("text", ["v_mov_b32 v4, 2\nglobal_atomic_add v4, v0, s[4:5]", "ds_add_u32 v4, v0 offset:1"])
def test_what_the_hardware_does_not_do_at_any_address(run: Run, text: str) -> None:
    with pytest.raises(MisalignedAccess, match="which is not a multiple of 4"):
        run("v_mov_b32 v4, 0\n" + text, "alignment")


def test_aligned(run: Run) -> None:
    text = "v_and_b32 v4, 0xf0, v1\nds_read_b128 v[8:11], v4\nds_write_b64 v4, v[2:3] offset:8\n"
    run(
        text + "global_load_dwordx4 v[8:11], v[2:3], off offset:4\nglobal_load_ubyte v8, v[2:3], off offset:3",
        "alignment",
    )
    assert run.findings.hints == []  # type: ignore[attr-defined]
    assert str(run.findings) == ""  # type: ignore[attr-defined]


# --- turning them on


def test_only_a_with_block_is_checked() -> None:
    a, out = kernels.operands()
    with checking("races"), pytest.raises(LdsRace):
        kernels.reverse(a, out, False)
    kernels.reverse(a, out, False)


def test_a_check_that_does_not_exist() -> None:
    with pytest.raises(ArgumentError, match="no check 'rases'"), checking("rases"):
        pass


def test_the_guide_has_a_row_for_each_check() -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/debugging.md").read_text()
    rows = dict(re.findall(r'^\| `"(\w+)"` \|.*\| ([^|]+) \|$', guide, re.MULTILINE))
    assert [name for name, how in rows.items() if how == "in `checking()`"] == list(CHECKS)
    assert {name for name, how in rows.items() if how == "by name, alone"} == LATE
    assert set(rows) == {*CHECKS, OVERFLOW} | LATE | NAN
