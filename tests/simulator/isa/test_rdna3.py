"""What RDNA 3 does otherwise than RDNA 4: waits, barriers, names, atomics, pairs, and the scalar floats of RDNA 3.5."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Memory, Program, UnknownInstruction
from flydsl.simulator.isa.dual import FIRST_OF_RDNA3
from tests.simulator.backends import launch_both
from tests.simulator.isa.test_rdna import DOUBLE, SIZES
from tests.simulator.isa.test_rdna_lanes import operation
from tests.simulator.isa.test_rdna_memory import RAW, float_bits

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)


@pytest.fixture(scope="session")
def rdna3(run: Run) -> Run:
    return partial(run, arch="gfx1100")


FORMS = """
s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
s_waitcnt_vscnt null, 0x0
s_waitcnt_depctr depctr_va_vdst(0)
s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_2)
s_set_inst_prefetch_distance 0x1
s_load_b64 s[4:5], s[0:1], 0x10 glc dlc
s_cmpk_lg_u32 s4, 0x12
s_addk_i32 s4, 0x12
buffer_load_b128 v[4:7], v0, s[8:11], 0 offen offset:4095 glc slc dlc
global_load_d16_hi_b16 v1, v[2:3], off offset:-4096 slc
global_atomic_cmpswap_f32 v1, v0, v[2:3], s[4:5] glc
flat_atomic_add_f32 v[2:3], v1
scratch_store_b32 off, v3, s2 dlc
ds_wrap_rtn_b32 v5, v0, v1, v2
v_add_nc_u16 v5.l, v255.h, v255.l
v_dual_max_f32 v1, v2, v3 :: v_dual_min_f32 v4, v5, v7
v_dot2acc_f32_f16 v1, v2, v3
v_fmac_dx9_zero_f32 v1, v2, v3
v_cmpx_t_f32 v1, v2
v_mad_u64_u32 v[4:5], null, v2, v3, v[4:5]
buffer_gl0_inv
buffer_gl1_inv
"""
REFUSED = """
s_barrier_signal -1
s_wait_loadcnt 0x0
v_cvt_f32_fp8 v1, v2
v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20
v_max_num_f32 v1, v2, v3
s_load_u8 s4, s[0:1], 0x0
s_add_co_u32 s4, s5, s6
s_add_f32 s4, s5, s6
global_load_block v[2:33], v0, s[4:5]
ds_pk_add_f16 v0, v1
tbuffer_load_format_x v4, off, s[8:11], s3 format:[BUF_FMT_8_UNORM]
exp mrt0 v0, v1, v2, v3 done
"""


def program_of(text: str, arch: str = "gfx1100") -> Program:
    return Program.from_listing({}, read_listing(f"k:{text}"), get_arch(arch))


def test_forms_of_the_assembler_are_known_or_refused_by_name() -> None:
    assert [i.listed.text for i in program_of(FORMS).unknown_instructions()] == []
    for instruction in program_of(REFUSED).instructions:
        assert instruction.problem == instruction.listed.text.split()[0]


@pytest.mark.parametrize(
    "text",
    [
        "global_load_b32 v1, v[2:3], off offset:4096",
        "buffer_load_b32 v1, off, s[4:7], 0 th:TH_LOAD_NT",
        "s_load_b32 s4, s[0:1], 0x0 scope:SCOPE_SYS",
    ],
)
def test_offsets_and_modifiers_of_rdna_4_are_refused(text: str) -> None:
    assert program_of(f"\n{text}\n").instructions[0].problem.startswith("this form of")


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"])
def test_a_constant_for_mode_moves_registers_on_gfx1250_only(arch: str) -> None:
    text = "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0xaf1f0\nv_mov_b32_e32 v5, v1"
    copy = program_of(text, arch).instructions[1]
    assert (copy.problem, copy.high_bits) == ("", 0)
    assert [getattr(operand.atom, "first", None) for operand in (*copy.results, *copy.sources)] == [5, 1]


def test_waves_meet_at_a_barrier(rdna3: Run) -> None:
    place = 4 * np.arange(96, dtype=np.uint32)
    text = "ds_store_b32 v0, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_sub_nc_u32 v1, 0x17c, v0\nds_load_b32 v2, v1\n"
    found = rdna3(text + "s_waitcnt lgkmcnt(0)", v={0: place}, lds=bytes(384))
    assert found.v(2).tolist() == place[::-1].tolist()


@SIZES
def test_a_compiled_kernel_on_a_grid_of_three_dimensions(compile_ir: Run, lanes: int) -> None:
    """Workgroups find their ids in scalar registers, not in those of traps."""
    text = DOUBLE.replace("FEATURES", f'"target-features"="+wavefrontsize{lanes}"')
    program = Program.load(*compile_ir(text, arch="gfx1100"))
    memory, x, y = Memory(), np.arange(1100, dtype=np.float32), np.zeros(1100, np.float32)
    kernarg = struct.pack("<QQi", memory.map_array(x, name="x"), memory.map_array(y, name="y"), 1100)
    launch_both(program, "k", grid=(2, 3, 2), block=(96, 1, 1), kernarg=kernarg, memory=memory)
    assert np.array_equal(y, 2 * x)


# --- atomics: two lanes one after the other

START, LESS, MORE = float_bits(7.25, -2.5, 1e20)
UPDATED = ("min_f32", "max_f32", "cmpswap_f32")


@pytest.mark.parametrize(
    ("space", "name"),
    [
        *((space, name) for space in ("global", "flat", "buffer", "ds") for name in UPDATED),
        *(("global", "csub_u32"), ("buffer", "csub_u32")),
    ],
)
def test_atomics(rdna3: Run, space: str, name: str) -> None:
    start = 10 if name == "csub_u32" else START
    operands = [3, 100] if name == "csub_u32" else [LESS, MORE]
    expected = {"csub_u32": [10, 7, 0], "cmpswap_f32": [START, LESS, LESS]}
    expected |= {"min_f32": [START, LESS, LESS], "max_f32": [START, START, MORE]}
    memory, data = Memory(), np.full(2, start, np.uint32)
    base = memory.map_array(data, name="A")
    v = {0: [4], 2: np.array([base + 4]), 4: np.resize(np.array(operands, np.uint32), 32), 5: [START]}
    is_compared = name == "cmpswap_f32"
    given = "v[4:5]" if is_compared else "v4"
    text = {
        "global": f"global_atomic_{name} v1, v0, {given}, s[4:5] glc",
        "flat": f"flat_atomic_{name} v1, v[2:3], {given} glc",
        "buffer": "v_dual_mov_b32 v6, v4 :: v_dual_mov_b32 v7, v5\n"
        f"buffer_atomic_{name} {given.replace('4:5', '6:7').replace('v4', 'v6')}, off, s[4:7], 0 offset:4 glc\n"
        "v_mov_b32 v1, v6",
        "ds": f"ds_{'cmpstore_rtn_f32' if is_compared else name.replace('_', '_rtn_')} v1, v0, v4"
        + (", v5" if is_compared else ""),
    }[space]
    lds = struct.pack("<2I", start, start)
    found = rdna3(text, v=v, s={4: base, 6: 8, 7: RAW}, memory=memory, lds=lds, exec_bits=3)
    left = found.waves.lds.view(np.uint32)[1] if space == "ds" else data[1]
    assert [*found.v(1)[:2].tolist(), int(left)] == expected[name]


@pytest.mark.parametrize("bits", [32, 64])
def test_a_compare_and_store_of_floats_takes_the_new_value_first(rdna3: Run, bits: int) -> None:
    """ds_cmpstore_f32 ds_cmpstore_f64 ds_cmpstore_rtn_f32 ds_cmpstore_rtn_f64: -0 is 0."""
    dtype = np.float32 if bits == 32 else np.float64
    v = {0: bits // 8 * LANE, 4: np.full(32, 9, dtype), 6: np.where(LANE < 5, -0.0, 1).astype(dtype)}
    registers = "v4, v6" if bits == 32 else "v[4:5], v[6:7]"
    lds = np.zeros(32, dtype).tobytes()
    left = rdna3(f"ds_cmpstore_f{bits} v0, {registers}", v=v, lds=lds).waves.lds.view(dtype)
    assert left.tolist() == [9] * 5 + [0] * 27
    result = "v8" if bits == 32 else "v[8:9]"
    assert rdna3(f"ds_cmpstore_rtn_f{bits} {result}, v0, {registers}", v=v, lds=lds).v(8, dtype).tolist() == [0] * 32


# --- vectors


def test_comparisons_that_are_always_or_never_true(rdna3: Run) -> None:
    """v_cmp_f_f32 v_cmp_t_u32 v_cmpx_f_f16 v_cmpx_t_i64"""
    found = rdna3("v_cmp_t_u32 s4, v0, v0\nv_cmp_f_f32 s5, v0, v0\nv_cmp_t_f16 s6, v0, v0", exec_bits=0xFF)
    assert (found.s(4), found.s(5), found.s(6)) == (0xFF, 0, 0xFF)
    assert rdna3("v_cmpx_t_i64 v[0:1], v[0:1]", exec_bits=0xFF).exec == 0xFF
    assert rdna3("v_cmpx_f_f16 v0, v0", exec_bits=0xFF).exec == 0


def test_nothing_times_anything_is_nothing_in_directx_9(rdna3: Run) -> None:
    v = {0: np.array([0, 2], np.float32), 1: np.array([np.inf, 3], np.float32), 2: np.array([5, 5], np.float32)}
    found = rdna3("v_fmac_dx9_zero_f32 v2, v0, v1", v={i: np.resize(x, 32) for i, x in v.items()})
    assert found.v(2, np.float32)[:2].tolist() == [5, 11]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["max_f32", "min_f32"])
def test_pairs_with_extremes(rdna3: Run, first: str) -> None:
    rng = np.random.default_rng(1)
    v = {i: rng.normal(size=32).astype(np.float32) for i in range(8)} | {20: LANE, 21: LANE}
    for second in (*FIRST_OF_RDNA3, "and_b32", "add_nc_u32"):
        if second.startswith("dot2acc"):
            continue
        names = [first, second]
        together = " :: ".join(operation(f"v_dual_{name}", name, i) for i, name in enumerate(names))
        alone = "\n".join(operation(f"v_{name}", name, i) for i, name in enumerate(names))
        got, wanted = rdna3(together, v=v, s={106: 0xF0F}), rdna3(alone, v=v, s={106: 0xF0F})
        for register in (20, 21):
            assert got.v(register).tolist() == wanted.v(register).tolist(), together


# --- scalars


def test_scalar_floats_came_with_rdna_3_5(run: Run, rdna3: Run) -> None:
    text = "s_fmac_f32 s4, s5, s6\ns_min_f32 s7, s5, s6\ns_max_f16 s8, 0x3c00, 0x4000"
    s = {4: float_bits(1)[0], 5: float_bits(2)[0], 6: float_bits(-3)[0]}
    found = run(text, s=s, arch="gfx1151")
    assert (found.s(4), found.s(7), found.s(8)) == (*float_bits(-5, -3), 0x4000)
    with pytest.raises(UnknownInstruction, match="s_fmac_f32"):
        rdna3(text, s=s)
    with pytest.raises(UnknownInstruction, match="s_minimum_f32"):
        run("s_minimum_f32 s4, s5, s6", arch="gfx1151")


def test_the_clock_and_the_place_of_a_wave(rdna3: Run) -> None:
    text = "s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\ns_sleep 1\n"
    text += "s_getreg_b32 s5, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\ns_getreg_b32 s6, hwreg(HW_REG_HW_ID1)"
    found = rdna3(text)
    assert found.s(4) < found.s(5)
    assert found.s(6) == 0
