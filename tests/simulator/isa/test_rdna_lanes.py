"""Movement between lanes, pairs of operations, halves of registers, and modes on RDNA 4."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import RegisterFault, UnknownInstruction
from flydsl.simulator.arrays import Array
from flydsl.simulator.isa.dual import FIRST, SECOND

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)
LANES_64 = np.arange(64, dtype=np.uint32)


@pytest.fixture(scope="session")
def rdna(run: Run) -> Run:
    return partial(run, arch="gfx1201")


# --- DPP: v1 starts as 1000, lane i of v0 holds 100 + i


def dpp(rdna: Run, control: str, exec_bits: int | None = None, lanes: int = 32) -> list[int]:
    v = {0: 100 + np.arange(lanes, dtype=np.uint32), 1: np.full(lanes, 1000, np.uint32)}
    return [int(x) for x in rdna(f"v_mov_b32_dpp v1, v0 {control}", v=v, exec_bits=exec_bits, lanes=lanes).v(1)]


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize(
    ("control", "source"),
    [
        ("row_share:5", lambda i: i & ~15 | 5),
        ("row_xmask:9", lambda i: i ^ 9),
        ("row_mirror", lambda i: i ^ 15),
        ("row_half_mirror", lambda i: i ^ 7),
        ("quad_perm:[3,1,0,2]", lambda i: i & ~3 | (3, 1, 0, 2)[i & 3]),
        ("row_ror:3", lambda i: i & ~15 | (i - 3) % 16),
        ("dpp8:[7,6,5,0,1,2,3,4]", lambda i: i & ~7 | (7, 6, 5, 0, 1, 2, 3, 4)[i & 7]),
    ],
)
def test_dpp_controls(rdna: Run, control: str, source: Callable[[int], int], lanes: int) -> None:
    assert dpp(rdna, control, lanes=lanes) == [100 + source(i) for i in range(lanes)]


def test_dpp_of_lanes_that_are_not_active(rdna: Run) -> None:
    """The result if the source lane is not active: unchanged, 0 with bound_ctrl, 0 in DPP8, its value with fi."""
    active = 0x0000FFFE  # lane 0 is not
    rest = [1000] * 16
    assert dpp(rdna, "row_share:0", active) == [1000] * 16 + rest
    assert dpp(rdna, "row_share:0 bound_ctrl:1", active) == [1000] + [0] * 15 + rest
    assert dpp(rdna, "row_share:0 fi:1", active) == [1000] + [100] * 15 + rest
    assert dpp(rdna, "dpp8:[0,0,0,0,0,0,0,0]", active)[:8] == [1000] + [0] * 7
    assert dpp(rdna, "dpp8:[0,0,0,0,0,0,0,0] fi:1", active)[:8] == [1000] + [100] * 7


def test_dpp_masks_and_shifts(rdna: Run) -> None:
    assert dpp(rdna, "row_shr:1 row_mask:0x1 bank_mask:0x3")[:9] == [1000, *range(100, 107), 1000]
    with pytest.raises(UnknownInstruction, match="row_bcast"):
        dpp(rdna, "row_bcast:15")


# --- permutations of rows


def permuted(rdna: Run, name: str, modifiers: str = "", exec_bits: int | None = None) -> list[int]:
    v = {0: 100 + LANE, 1: np.full(32, 1000, np.uint32)}
    return [int(x) for x in rdna(f"{name} v1, v0, s4, s5 {modifiers}", v=v, s=SELECTORS, exec_bits=exec_bits).v(1)]


ORDER = [3, 3, 0, 15, 7, 9, 10, 1, 2, 4, 5, 6, 8, 11, 12, 13]
NIBBLES = sum(lane << 4 * i for i, lane in enumerate(ORDER))
SELECTORS = {4: NIBBLES & 0xFFFFFFFF, 5: NIBBLES >> 32}


def test_rows_in_the_order_of_two_scalars(rdna: Run) -> None:
    assert permuted(rdna, "v_permlane16_b32") == [100 + 16 * row + lane for row in (0, 1) for lane in ORDER]
    assert permuted(rdna, "v_permlanex16_b32") == [100 + 16 * row + lane for row in (1, 0) for lane in ORDER]


def test_rows_in_an_order_of_each_lane(rdna: Run) -> None:
    v = {0: 100 + LANE, 2: np.array(ORDER * 2, np.uint32) | 0x30}
    found = rdna("v_permlane16_var_b32 v1, v0, v2\nv_permlanex16_var_b32 v3, v0, v2", v=v)
    assert found.v(1).tolist() == [100 + 16 * row + lane for row in (0, 1) for lane in ORDER]
    assert found.v(3).tolist() == [100 + 16 * row + lane for row in (1, 0) for lane in ORDER]


def test_rows_with_sources_that_are_not_active(rdna: Run) -> None:
    active = 0xFFFFFFF7  # lane 3 is not
    plain = [1000, 1000, 100, 1000, 107]
    assert permuted(rdna, "v_permlane16_b32", exec_bits=active)[:5] == [1000, 1000, 100, 1000, 107] == plain
    assert permuted(rdna, "v_permlane16_b32", "op_sel:[0,1]", active)[:3] == [0, 0, 100]
    assert permuted(rdna, "v_permlane16_b32", "op_sel:[1,0]", active)[:3] == [103, 103, 100]


def test_halves_of_a_wave_of_64_change_places(rdna: Run) -> None:
    found = rdna("v_permlane64_b32 v1, v0", v={0: LANES_64}, lanes=64)
    assert found.v(1).tolist() == [(i + 32) % 64 for i in range(64)]


def test_ds_permutations_wrap_at_the_size_of_the_wave(rdna: Run) -> None:
    v = {0: 4 * ((LANE + 30) % 64), 1: 100 + LANE}
    found = rdna("ds_bpermute_b32 v2, v0, v1\nds_permute_b32 v3, v0, v1", v=v)
    assert found.v(2).tolist() == [100 + (i + 30) % 32 for i in range(32)]
    assert found.v(3).tolist() == [100 + (i - 30) % 32 for i in range(32)]
    found = rdna("ds_bpermute_b32 v2, v0, v1\nds_bpermute_fi_b32 v3, v0, v1", v=v, exec_bits=1)
    assert (found.v(2)[0], found.v(3)[0]) == (0, 130)


# --- pairs


@pytest.mark.parametrize("first", FIRST)
def test_pairs_do_what_their_operations_do(rdna: Run, first: str) -> None:
    """Each pair against its operations one after the other, on registers that neither writes."""
    pairs = [f"v_dual_{first}::v_dual_{second}" for second in SECOND]
    rng = np.random.default_rng(list(first.encode()))
    v = {i: rng.normal(size=32).astype(np.float32) for i in range(8)} | {20: LANE, 21: LANE}
    s = {106: 0x0F0F3355}
    for pair in pairs:
        names = [name.removeprefix("v_dual_") for name in pair.split("::")]
        together = " :: ".join(operation(f"v_dual_{name}", name, i) for i, name in enumerate(names))
        alone = "\n".join(operation(ALONE.get(name, f"v_{name}"), name, i) for i, name in enumerate(names))
        got, wanted = rdna(together, v=v, s=s), rdna(alone, v=v, s=s)
        for register in (20, 21):
            assert got.v(register).tolist() == wanted.v(register).tolist(), together


ALONE = {"dot2acc_f32_f16": "v_dot2_f32_f16", "dot2acc_f32_bf16": "v_dot2_f32_bf16"}


def operation(mnemonic: str, name: str, i: int) -> str:
    result, x, y = f"v{20 + i}", f"v{2 * i}", f"v{2 * i + 1}"
    if name == "mov_b32":
        return f"{mnemonic} {result}, {x}"
    if name == "cndmask_b32" and "dual" not in mnemonic:
        return f"{mnemonic} {result}, {x}, {y}, vcc_lo"
    if name == "fmaak_f32":
        return f"{mnemonic} {result}, {x}, {y}, 0x40490fdb"
    if name == "fmamk_f32":
        return f"{mnemonic} {result}, {x}, 0x40490fdb, {y}"
    if name.startswith("dot2acc") and "dual" not in mnemonic:
        return f"{mnemonic} {result}, {x}, {y}, {result}"
    return f"{mnemonic} {result}, {x}, {y}"


def test_pairs_read_before_they_write(rdna: Run) -> None:
    v = {0: LANE, 1: 100 + LANE}
    found = rdna("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", v=v)
    assert (found.v(0).tolist(), found.v(1).tolist()) == ((100 + LANE).tolist(), LANE.tolist())
    found = rdna("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", v=v, exec_bits=1)
    assert (found.v(0)[:2].tolist(), found.v(1)[:2].tolist()) == ([100, 1], [0, 101])


# --- halves of registers


def test_halves_of_registers(rdna: Run) -> None:
    x, y = np.full(32, 0x4000_3C00, np.uint32), np.full(32, 0x4400_4200, np.uint32)  # 1 and 2, 3 and 4
    old = np.full(32, 0xAAAA_BBBB, np.uint32)
    text = """
    v_add_f16 v2.l, v0.l, v1.h
    v_add_f16 v3.h, v0.h, v1.l
    v_fmac_f16 v4.h, v0.h, v1.h
    v_mov_b16 v5.l, v0.h
    v_swap_b16 v6.h, v7.l
    v_cmp_lt_f16 vcc_lo, v0.h, v1.l
    v_cndmask_b16 v8.h, v0.l, v1.h, vcc_lo
    """
    v = {0: x, 1: y, 2: old, 3: old, 4: np.full(32, 0x3C00_1111, np.uint32), 5: old, 6: x, 7: y, 8: old}
    found = rdna(text, v=v)
    expected = {2: 0xAAAA_4500, 3: 0x4500_BBBB, 4: 0x4880_1111, 5: 0xAAAA_4000, 6: 0x4200_3C00, 7: 0x4400_4000}
    expected[8] = 0x4400_BBBB
    assert {register: int(found.v(register)[0]) for register in expected} == expected
    assert found.s(106) == 0xFFFF_FFFF


def test_a_half_where_there_is_none(rdna: Run) -> None:
    with pytest.raises(UnknownInstruction, match="a half of a register as f32"):
        rdna("v_add_f32 v0, v1.l, v2")


# --- dot products and 8-bit floats

CODES = {"fp8": [0x38, 0x40, 0xB8, 0x30], "bf8": [0x3C, 0x40, 0xBC, 0x38]}  # 1, 2, -1 and 0.5
VALUES = [1.0, 2.0, -1.0, 0.5]


def as_register(codes: list[int]) -> Array:
    return np.full(32, sum(code << 8 * i for i, code in enumerate(codes)), np.uint32)


@pytest.mark.parametrize("y", CODES)
@pytest.mark.parametrize("x", CODES)
def test_dot_products_of_8_bit_floats(rdna: Run, x: str, y: str) -> None:
    """v_dot4_f32_fp8_fp8 v_dot4_f32_fp8_bf8 v_dot4_f32_bf8_fp8 v_dot4_f32_bf8_bf8"""
    v = {0: as_register(CODES[x]), 1: as_register(CODES[y]), 2: np.full(32, 10, np.float32)}
    found = rdna(f"v_dot4_f32_{x}_{y} v3, v0, v1, v2", v=v)
    assert found.v(3, np.float32)[0] == 10 + sum(value * value for value in VALUES)


def test_dot_products_with_a_result_of_16_bits(rdna: Run) -> None:
    halves = np.full(32, 0x4000_3C00, np.uint32)  # 1 and 2
    found = rdna("v_dot2_f16_f16 v2, v0, v0, v1", v={0: halves, 1: [0x4200], 2: [0xAAAA_0000]})
    assert found.v(2)[0] == 0xAAAA_4800  # 3 + 1 + 4
    bfloats = np.full(32, 0x4000_3F80, np.uint32)
    found = rdna("v_dot2_bf16_bf16 v2, v0, v0, v1", v={0: bfloats, 1: [0x4040], 2: [0xAAAA_0000]})
    assert found.v(2)[0] == 0xAAAA_4100


@pytest.mark.parametrize("name", CODES)
def test_conversions_of_8_bit_floats(rdna: Run, name: str) -> None:
    """v_cvt_f32_fp8 v_cvt_f32_bf8 v_cvt_pk_f32_fp8 v_cvt_pk_f32_bf8 v_cvt_pk_fp8_f32 v_cvt_pk_bf8_f32
    v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32"""
    v: dict[int, Any] = {0: as_register(CODES[name]), 1: np.full(32, 0x11223344, np.uint32)}
    v |= {2: np.full(32, 0.5, np.float32), 3: np.full(32, -1, np.float32), 12: v[1], 13: v[1], 14: [0]}
    text = "\n".join(f"v_cvt_f32_{name} v{4 + i}, v0 byte_sel:{i}" for i in range(4))
    text += f"\nv_cvt_pk_f32_{name} v[8:9], v0.l\nv_cvt_pk_f32_{name} v[10:11], v0.h"
    text += f"\nv_cvt_pk_{name}_f32 v12.h, v2, v3\nv_cvt_sr_{name}_f32 v13, v2, v14 byte_sel:2"
    found = rdna(text, v=v)
    assert [found.v(4 + i, np.float32)[0] for i in range(8)] == VALUES * 2
    half, minus_one = CODES[name][3], CODES[name][2]
    assert found.v(12)[0] == minus_one << 24 | half << 16 | 0x3344
    assert found.v(13)[0] == 0x11003344 | half << 16


# --- modes, clocks, and what has no vector form


@pytest.mark.parametrize(("name", "function"), [("rcp", lambda x: 1 / x), ("sqrt", np.sqrt), ("exp", np.exp2),
                                                ("log", np.log2), ("rsq", lambda x: 1 / np.sqrt(x))])  # fmt: skip
def test_functions_of_scalars(rdna: Run, name: str, function: Callable[[float], float]) -> None:
    """v_s_rcp_f32 v_s_sqrt_f32 v_s_exp_f32 v_s_log_f32 v_s_rsq_f32
    v_s_rcp_f16 v_s_sqrt_f16 v_s_exp_f16 v_s_log_f16 v_s_rsq_f16"""
    found = rdna(f"v_s_{name}_f32 s4, s5\nv_s_{name}_f16 s6, s7", s={5: 0x40800000, 7: 0x4400})
    assert np.uint32(found.s(4)).view(np.float32) == np.float32(function(4.0))
    assert np.uint16(found.s(6)).view(np.float16) == np.float16(function(4.0))


def test_modes_are_set_by_instructions_of_their_own(rdna: Run) -> None:
    text = "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE)\ns_round_mode 0x5\ns_denorm_mode 0x3\n"
    found = rdna(text + "s_getreg_b32 s5, hwreg(HW_REG_WAVE_MODE, 0, 8)", mode=0x1F0)
    assert (found.s(4), found.s(5)) == (0x1F0, 0x35)


def test_the_clock_advances(rdna: Run) -> None:
    text = "s_getreg_b32 s4, hwreg(HW_REG_SHADER_CYCLES_LO)\ns_sleep_var s4\n"
    found = rdna(text + "s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)")
    assert found.s(6) > found.s(4)


def test_registers_beyond_one_by_m0(rdna: Run) -> None:
    v = {i: np.full(32, 10 * i, np.uint32) for i in range(1, 5)}
    found = rdna("s_mov_b32 m0, 2\nv_movrels_b32 v8, v1\nv_movreld_b32 v4, v2", v=v)
    assert (found.v(8)[0], found.v(6)[0]) == (30, 20)


def test_registers_beyond_two_by_m0(rdna: Run) -> None:
    v = {i: np.full(32, 10 * i, np.uint32) for i in range(1, 10)}
    found = rdna("s_mov_b32 m0, 2\nv_movrelsd_b32 v12, v1", v=v)
    assert found.v(14)[0] == 30
    found = rdna("s_mov_b32 m0, 0x30001\nv_movrelsd_2_b32 v12, v1", v=v)
    assert found.v(15)[0] == 20
    found = rdna("s_mov_b32 m0, 0x30001\nv_swaprel_b32 v4, v1", v=v, exec_bits=1)
    assert (found.v(7)[:2].tolist(), found.v(2)[:2].tolist()) == ([20, 70], [70, 20])


def test_a_register_beyond_those_of_the_wave_is_a_fault(rdna: Run) -> None:
    for text in ("v_movrelsd_b32 v12, v1", "v_movrelsd_2_b32 v1, v2", "v_swaprel_b32 v4, v1"):
        with pytest.raises(RegisterFault, match="is beyond the 256 VGPRs"):
            rdna(f"s_mov_b32 m0, 0x3ff\n{text}")


def test_halves_of_a_wave_change_places_only_where_there_are_two(run: Run, rdna: Run) -> None:
    lanes = np.arange(64, dtype=np.uint32)
    of_64 = run("v_permlane64_b32 v1, v0", v={0: lanes, 1: lanes + 100}, arch="gfx1201", lanes=64)
    assert of_64.v(1).tolist() == (lanes ^ 32).tolist()
    of_32 = rdna("v_permlane64_b32 v1, v0", v={0: lanes[:32], 1: lanes[:32] + 100})
    assert of_32.v(1).tolist() == list(range(100, 132))


@pytest.mark.parametrize(("float_", "integer"), [("1.0", "1"), ("2.0", "2"), ("4.0", "4")])
def test_a_pair_tells_a_float_from_the_integer_of_the_same_value(rdna: Run, float_: str, integer: str) -> None:
    found = rdna(
        f"v_dual_mov_b32 v1, {float_} :: v_dual_lshlrev_b32 v2, {integer}, v0", v={0: np.full(32, 3, np.uint32)}
    )
    assert found.v(1).view(np.float32)[0] == float(float_)
    assert found.v(2)[0] == 3 << int(integer)
