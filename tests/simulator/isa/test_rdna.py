"""What RDNA 4 does otherwise than CDNA: waves of 32 lanes, its own spellings, split barriers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import BarrierDeadlock, Memory, Program, UnknownInstruction, load
from tests.simulator.backends import launch_both

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)
SIZES = pytest.mark.parametrize("lanes", [32, 64])


@pytest.fixture(scope="session")
def rdna(run: Run) -> Run:
    return partial(run, arch="gfx1201")


def test_a_wave_has_32_lanes(rdna: Run) -> None:
    assert rdna("v_add_nc_u32 v1, v0, v0", v={0: LANE}).v(1).tolist() == (2 * LANE).tolist()


@pytest.mark.parametrize("name", ["v_dot4_i32_i8", "v_dot8_i32_i4"])
def test_cdnas_names_of_dot_products_have_signs_where_neg_lo_says(rdna: Run, name: str) -> None:
    """LLVM assembles them as v_dot4_i32_iu8 and v_dot8_i32_iu4."""
    found = rdna(f"{name} v1, -1, 1, 0\n{name} v2, -1, 1, 0 neg_lo:[1,0,0]")
    assert (found.v(1)[0], found.v(2)[0]) == (255 if name.endswith("i8") else 15, 0xFFFFFFFF)


def test_a_mask_is_one_register_in_waves_of_32(rdna: Run) -> None:
    found = rdna("v_cmp_gt_u32_e32 vcc_lo, 5, v0\nv_cndmask_b32_e64 v1, 1, 2, vcc_lo", v={0: LANE}, s={107: 0xABC})
    assert (found.s(106), found.s(107)) == (0x1F, 0xABC)
    assert found.v(1).tolist() == [2] * 5 + [1] * 27


@pytest.mark.parametrize(("wait", "low", "high"), [("", 4, 12), ("s_wait_alu depctr_sa_sdst(0)\n", 12, 24)])
def test_code_at_an_address_however_far_the_literal(rdna: Run, wait: str, low: int, high: int) -> None:
    """LLVM counts the bytes from what s_getpc_b64 reads to the literal, and has waits and an extension between them."""
    extension = "s_sext_i32_i16 s13, s13\n" if wait else ""
    text = f"s_getpc_b64 s[12:13]\n{wait}{extension}s_add_co_u32 s12, s12, f@rel32@lo+{low}\n{wait}"
    text += f"s_add_co_ci_u32 s13, s13, f@rel32@hi+{high}\n{wait}s_swappc_b64 s[30:31], s[12:13]\n"
    text += "s_add_co_i32 s4, s4, 1\ns_endpgm\ns_mov_b32 s4, 5\ns_mov_b32 s4, 6\nf:\ns_add_co_i32 s4, s4, 41\n"
    assert rdna(text + "s_setpc_b64 s[30:31]", s={4: 1000}).s(4) == 1042


def test_a_mask_is_a_pair_in_waves_of_64(rdna: Run) -> None:
    lane = np.arange(64, dtype=np.uint32)
    assert rdna("v_cmp_gt_u32_e32 vcc, 40, v0", v={0: lane}, lanes=64).vcc == (1 << 40) - 1


def test_cmpx_writes_the_active_lanes_alone(rdna: Run) -> None:
    found = rdna("v_cmpx_gt_u32_e32 5, v0\nv_mov_b32_e32 v1, 7", v={0: LANE}, s={106: 0x123})
    assert (found.exec, found.s(106)) == (0x1F, 0x123)
    assert found.v(1).tolist() == [7] * 5 + [0] * 27


SAVE_EXEC: dict[str, Callable[[int, int], int]] = {
    "s_and_saveexec_b32": lambda x, old: x & old,
    "s_or_saveexec_b32": lambda x, old: x | old,
    "s_xor_saveexec_b32": lambda x, old: x ^ old,
    "s_nand_saveexec_b32": lambda x, old: ~(x & old),
    "s_nor_saveexec_b32": lambda x, old: ~(x | old),
    "s_xnor_saveexec_b32": lambda x, old: ~(x ^ old),
    "s_and_not0_saveexec_b32": lambda x, old: ~x & old,
    "s_or_not0_saveexec_b32": lambda x, old: ~x | old,
    "s_and_not1_saveexec_b32": lambda x, old: x & ~old,
    "s_or_not1_saveexec_b32": lambda x, old: x | ~old,
}
WRITE_EXEC: dict[str, Callable[[int, int], int]] = {
    "s_and_not0_wrexec_b32": lambda x, old: ~x & old,
    "s_and_not1_wrexec_b32": lambda x, old: x & ~old,
}
X, OLD = 0x0FF0_1234, 0x00FF_00FF


@pytest.mark.parametrize("name", SAVE_EXEC | WRITE_EXEC)
def test_exec_saved_in_one_register(rdna: Run, name: str) -> None:
    new = (SAVE_EXEC | WRITE_EXEC)[name](X, OLD) & 0xFFFF_FFFF
    found = rdna(f"{name} s4, s5", s={5: X}, exec_bits=OLD)
    assert (found.s(4), found.exec, found.scc) == (OLD if name in SAVE_EXEC else new, new, new != 0)


def test_null_reads_as_zero_and_drops_what_is_written(rdna: Run) -> None:
    found = rdna(
        "s_add_co_u32 null, s4, s5\ns_or_b32 s6, null, s4\nv_add_co_u32 v1, null, v0, v0", v={0: LANE}, s={4: 7}
    )
    assert found.s(6) == 7
    assert found.v(1).tolist() == (2 * LANE).tolist()


def test_instructions_of_cdna_alone_are_refused_by_name(rdna: Run) -> None:
    with pytest.raises(UnknownInstruction, match="s_ff0_i32_b32"):
        rdna("s_ff0_i32_b32 s0, s1")
    with pytest.raises(UnknownInstruction, match="v_accvgpr_read_b32"):
        rdna("v_accvgpr_read_b32 v0, a1")


def test_instructions_of_rdna_are_not_of_cdna(run: Run) -> None:
    with pytest.raises(UnknownInstruction, match="v_add_nc_u32"):
        run("v_add_nc_u32 v0, v1, v2")


FORMS = """
v_add_nc_u16 v5.l, v255.h, v255.l
v_alignbit_b32 v5, v1, v2, v3.h
v_cmpx_lt_f32_e64_dpp v1, s2 row_share:0 row_mask:0xf bank_mask:0xf
v_cmp_eq_f32_e64 null, -|0xaf123456|, -|vcc_hi| clamp
v_fma_f16_e64_dpp v5.l, v1.l, v2.h, v3.l quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf fi:1
v_cvt_f32_fp8_e64_dpp v5, v1 byte_sel:1 quad_perm:[0,2,1,1] row_mask:0x5 bank_mask:0xe
v_dual_fmaak_f32 v122, s74, v161, 0x402f4fe0 :: v_dual_and_b32 v247, 0x402f4fe0, v160
v_dual_mov_b32 v255, 0xbabe::v_dual_lshlrev_b32 v6, ttmp15, v255
s_buffer_load_b32 s5, s[4:7], null offset:0x64
s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_4) | instid1(SALU_CYCLE_1)
s_wait_alu depctr_va_vdst(14) depctr_va_sdst(6)
s_barrier_wait 0xffff
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 2), 0x3
global_load_b32 v1, v3, s[2:3] offset:-64 th:TH_LOAD_NT_RT scope:SCOPE_SYS
global_atomic_cmpswap_b64 v[1:2], v0, v[2:5], s[6:7] offset:64 th:TH_ATOMIC_RETURN
buffer_load_b64 v[5:6], v0, ttmp[8:11], null idxen offset:8388607
scratch_store_b8 off, v3, s2
"""
REFUSED = """
tbuffer_load_format_x v4, off, s[8:11], s3 format:[BUF_FMT_8_UNORM]
image_sample v[0:1], [v0, v1], s[0:7], s[8:11] dmask:0x3 dim:SQ_RSRC_IMG_2D unorm th:TH_LOAD_NT
export mrt0 v0, v1, v2, v3 done
s_version UC_VERSION_GFX12 | UC_VERSION_W32_BIT
ds_bvh_stack_push4_pop1_rtn_b32 v1, v0, v[2:5]
"""


def test_forms_of_the_assembler_are_known_or_refused_by_name() -> None:
    program = Program.from_listing({}, read_listing(f"k:{FORMS}"), get_arch("gfx1201"))
    assert [i.listed.text for i in program.unknown_instructions()] == []
    for instruction in Program.from_listing({}, read_listing(f"k:{REFUSED}"), get_arch("gfx1201")).instructions:
        assert instruction.problem == instruction.listed.text.split()[0]


# --- barriers: every wave signals its arrival, and waits for that of the others when it wants to

SPLIT = """
v_mov_b32 v1, 0
ds_store_b32 v0, v0
s_wait_dscnt 0x0
s_barrier_signal -1
v_mov_b32 v1, 5
s_barrier_wait -1
v_xor_b32 v2, 0x80, v0
ds_load_b32 v3, v2
s_wait_dscnt 0x0
"""


def test_waves_wait_for_the_signals_of_the_others(rdna: Run) -> None:
    place = 4 * np.arange(64, dtype=np.uint32)
    found = rdna(SPLIT, v={0: place}, lds=bytes(256))
    assert found.v(3).tolist() == (place ^ 0x80).tolist()


def test_the_first_wave_that_signals_knows_it(rdna: Run) -> None:
    found = rdna("s_barrier_signal_isfirst -1\ns_cselect_b32 s4, 1, 0\ns_barrier_wait -1", v={0: np.arange(96)})
    assert found.waves.sgpr[:, 4].tolist() == [1, 0, 0]


def test_a_wave_may_end_after_its_signal(rdna: Run) -> None:
    signal = "v_readfirstlane_b32 s4, v0\ns_barrier_signal -1\ns_cmp_eq_u32 s4, 0\ns_cbranch_scc0 .Lend"
    rdna(f"{signal}\ns_barrier_wait -1\n.Lend:", v={0: np.arange(64)})


def test_a_wave_that_waits_for_a_signal_that_never_comes(rdna: Run) -> None:
    with pytest.raises(BarrierDeadlock, match="0 of 2 waves have signalled"):
        rdna("s_barrier_wait -1", v={0: np.arange(64)})


def test_barriers_of_other_numbers_are_refused(rdna: Run) -> None:
    with pytest.raises(UnknownInstruction, match="s_barrier_signal"):
        rdna("s_barrier_signal 3")


# --- kernels

DOUBLE = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %x0 = call i32 @llvm.amdgcn.workgroup.id.x()
  %y0 = call i32 @llvm.amdgcn.workgroup.id.y()
  %z0 = call i32 @llvm.amdgcn.workgroup.id.z()
  %zy = mul i32 %z0, 3
  %yz = add i32 %zy, %y0
  %yzx = mul i32 %yz, 2
  %w = add i32 %yzx, %x0
  %m = mul i32 %w, 96
  %i = add i32 %m, %t
  %ok = icmp slt i32 %i, %n
  br i1 %ok, label %body, label %end
body:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %px
  %r = fadd float %v, %v
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %r, ptr addrspace(1) %py
  br label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" FEATURES }
"""


@SIZES
def test_a_compiled_kernel_on_a_grid_of_three_dimensions(compile_ir: Run, lanes: int) -> None:
    features = f'"target-features"="+wavefrontsize{lanes}"'
    program = Program.load(*compile_ir(DOUBLE.replace("FEATURES", features), arch="gfx1201"))
    memory, x, y = Memory(), np.arange(1100, dtype=np.float32), np.zeros(1100, np.float32)
    kernarg = struct.pack("<QQi", memory.map_array(x, name="x"), memory.map_array(y, name="y"), 1100)
    statistics = launch_both(program, "k", grid=(2, 3, 2), block=(96, 1, 1), kernarg=kernarg, memory=memory)
    assert np.array_equal(y, 2 * x)
    assert statistics.waves == 12 * -(-96 // lanes)


def test_single_steps_of_a_wave_of_32(compile_ir: Run) -> None:
    code, listing = compile_ir(DOUBLE.replace("FEATURES", ""), arch="gfx1201")
    x, y = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    simulation = load(code, listing).kernel("k").simulate((1, 1, 1), (96, 1, 1), [x, y, 96])
    assert simulation.wave_count == 3
    wave = simulation.wave(2)
    assert (wave.vgpr.shape[1], wave.exec, wave.active.size) == (32, 0xFFFF_FFFF, 32)
    simulation.step()
    assert simulation.changed
    simulation.run()
    assert np.array_equal(y, 2 * x)
