"""What an encoding makes of the operands of vector instructions: constants by type, DPP and SDWA of packed halves,
clamp, and the modes that the document makes exceptions of.

Sources: CDNA3 ISA, "Vector ALU Operations" and the instructions' entries; LLVM's AMDGPUBaseInfo for float constants of
16-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import UnknownInstruction

Run = Callable[..., Any]
LANE = np.arange(64)
M32 = (1 << 32) - 1
ALL_LANES = (1 << 64) - 1


def halves(low: Any, high: Any) -> Any:
    low, high = (np.asarray(x, np.float16).view(np.uint16).astype(np.uint32) for x in (low, high))
    return low | high << np.uint32(16)


@pytest.mark.parametrize(
    ("arch", "text", "printed"),
    [
        # Of v_fma_mix a constant whose lower half is an inline constant's is that, also as an f32.
        ("gfx942", "v_fma_mix_f32 v1, 0x3c00, v2, v3", "v_fma_mix_f32 v1, 1.0, v2, v3"),
        ("gfx942", "v_fma_mix_f32 v1, v2, 0xfff0, v3", "v_fma_mix_f32 v1, v2, -16, v3"),
        ("gfx942", "v_fma_mix_f32 v1, v2, -17, v3", "v_fma_mix_f32 v1, v2, 0xffef, v3"),
        ("gfx1250", "v_fma_mix_f32_bf16 v1, 0x3e22, v2, v3", "v_fma_mix_f32_bf16 v1, 0.15915494, v2, v3"),
        # The literals of some scalar instructions of f16 are those of f32, of which half is read.
        ("gfx1201", "s_floor_f16 s4, 1.5", "s_floor_f16 s4, 0x3fc00000"),
        ("gfx1201", "s_cvt_f32_f16 s4, 0x40800000", "s_cvt_f32_f16 s4, 4.0"),
        ("gfx1201", "s_cmp_lt_f16 s5, 0.1\ns_cselect_b32 s4, 1, 2", "s_cmp_lt_f16 s5, 0xcccd\ns_cselect_b32 s4, 1, 2"),
        ("gfx1250", "s_ashr_i64 s[4:5], 0xb2d05e00, 1", "s_ashr_i64 s[4:5], 3000000000, 1"),
        ("gfx1250", "v_fmaak_f64 v[2:3], v[4:5], v[6:7], 7", "v_fmaak_f64 v[2:3], v[4:5], v[6:7], 0x7"),
        ("gfx1250", "v_trunc_f64_e32 v[2:3], 3000000000", "v_trunc_f64_e32 v[2:3], 0xb2d05e00"),
        ("gfx1250", "v_add_f64 v[2:3], 0x40590000, v[4:5]", "v_add_f64 v[2:3], 1079574528, v[4:5]"),
        # A list of bits that is too short has zeros at its end, whatever is meant without a list.
        ("gfx90a", "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[2:3] op_sel_hi:[1,0]",
         "v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[2:3] op_sel_hi:[1,0,0]"),
        ("gfx950", "v_alignbit_b32 v1, v2, v3, v4 op_sel:[0,0]", "v_alignbit_b32 v1, v2, v3, v4"),
        ("gfx942", "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0,1]",
         "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]"),
        # What is converted is a bf16 or an f16, and so is its constant.
        ("gfx950", "v_cvt_f32_bf16 v1, 0x3f80", "v_cvt_f32_bf16_e32 v1, 1.0"),
        ("gfx950", "v_cvt_scalef32_sr_bf8_bf16 v1, 0x3e22, v2, v3",
         "v_cvt_scalef32_sr_bf8_bf16 v1, 0.15915494, v2, v3"),
        ("gfx950", "v_cvt_scalef32_sr_fp8_f16 v1, 0x3c00, v2, v3", "v_cvt_scalef32_sr_fp8_f16 v1, 1.0, v2, v3"),
    ],
)  # fmt: skip
def test_what_llvm_prints_otherwise_means_the_same(run: Run, arch: str, text: str, printed: str) -> None:
    vectors = {i: np.float32(1.5) + np.arange(32, dtype=np.float32) * i for i in range(8)}
    one, other = (run(t, v=vectors, s={5: 0xAE67}, arch=arch).waves for t in (text, printed))
    np.testing.assert_array_equal(one.vgpr, other.vgpr)
    np.testing.assert_array_equal(one.sgpr, other.sgpr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v_add_u16_e32 v1, 1.0, v0", 0x1234),  # the low half of 0x3f800000
        ("v_mad_i16 v1, 0.15915494, 1, v0", (0xF983 + 0x1234) & 0xFFFF),
        ("v_mad_u32_u16 v1, 0.15915494, 1, v2", 0xF983),
        ("v_lshlrev_b16_e64 v1, 4, -4.0", 0),
        ("v_cvt_f16_u16_e32 v1, 4.0", 0),
        ("v_pk_add_u16 v1, 1.0, v2", 0x3F800000),
        ("v_pk_add_u16 v1, 1.0, v2 op_sel:[1,0] op_sel_hi:[0,1]", 0x00003F80),
        ("v_pk_add_f16 v1, 1.0, v2", 0x3C00),
        ("v_add_u16_e32 v1, 0x3c00, v0", 0x4E34),  # a literal is what it is
        ("v_ldexp_f16_e64 v1, 1.0, 3", 0x4800),
        ("v_ldexp_f16_e64 v1, 1.0, 1.0", 0x7C00),  # the format of this exponent is f16
    ],
)
def test_constants_of_16_bit_operands(run: Run, text: str, expected: int) -> None:
    got = run(text, v={0: np.uint32(0x1234), 1: np.uint32(0), 2: np.uint32(0)}).v(1)
    assert int(got[0]) == expected


def test_a_constant_as_a_pair_of_floats_is_refused_where_no_document_says_which_half_has_it(run: Run) -> None:
    for text in ("v_cvt_scalef32_pk_fp8_f16 v1, 1.0, v2", "v_cvt_scalef32_sr_pk_fp4_f32 v1, 2.0, v2, v3"):
        with pytest.raises(UnknownInstruction, match="a float constant as a pair"):
            run(text, arch="gfx950")


def test_classes_of_f16_are_asked_for_in_the_format_f16(run: Run) -> None:
    """1 / (2 pi) is 0x3118 there: classes 3, 4 and 8."""
    numbers = np.array([1, -1, 0, np.inf, np.nan, -1e-7, 1e-7, -np.inf], np.float16)
    after = run("v_cmp_class_f16_e64 s[2:3], v0, 0.15915494", v={0: np.resize(numbers, 64)})
    assert after.s(2, 2) & 0xFF == 0b00100011


@pytest.mark.parametrize(("mnemonic", "literal"), [("v_cmp_gt_i64_e32", -0x3CDD0000), ("v_cmp_gt_u64_e32", 0xC3230000)])
def test_literals_of_signed_64_bit_operands_are_sign_extended(run: Run, mnemonic: str, literal: int) -> None:
    signed = literal < 0
    numbers = np.array([0, 1, 0xC3230000, 0xC322FFFF, -0x3CDD0000, -0x3CDD0001, -1, 1 << 62] * 8, np.int64)
    after = run(f"{mnemonic} vcc, 0xc3230000, v[0:1]", v={0: numbers})
    others = numbers if signed else numbers.view(np.uint64)
    assert after.vcc == sum(1 << lane for lane in range(64) if literal > int(others[lane]))


def test_constants_of_64_bit_operands_are_what_32_bits_hold(run: Run) -> None:
    """LLVM assembles others, and keeps the high half of a float, and the low one of an integer, which has no sign."""
    after = run("s_mov_b64 s[2:3], -17\nv_cvt_f32_f64 v1, 0.1\nv_cvt_f32_f64 v2, 1079574528\nv_cvt_f32_f64 v3, 0.5")
    assert after.s(2, 2) == 0xFFFFFFEF
    cut = np.uint64(0x3FB99999 << 32).view(np.float64)
    assert [float(after.v(i, np.float32)[0]) for i in (1, 2, 3)] == [np.float32(cut), 100, 0.5]


@pytest.mark.parametrize(("constant", "bits"), [("-16", ALL_LANES - 15), ("1.0", 0x3FF0000000000000), ("64", 64)])
@pytest.mark.parametrize("mnemonic", ["v_qsad_pk_u16_u8", "v_mqsad_pk_u16_u8"])
def test_constants_of_four_sums_have_64_bits(run: Run, mnemonic: str, constant: str, bits: int) -> None:
    got = run(f"{mnemonic} v[2:3], v[0:1], v4, {constant}", v={0: np.uint64(0), 4: np.uint32(0)}).v(2, np.uint64)
    assert int(got[0]) == bits


def test_dpp_moves_packed_operands(run: Run) -> None:
    """Also of instructions that compute on halves; lanes without a source keep what they have."""
    a, b = LANE.astype(np.float32), (63 - LANE).astype(np.float32)
    vectors = {0: halves(a, b), 1: halves(np.full(64, 2), np.full(64, 3)), 2: LANE.astype(np.float32)}
    vectors[3] = halves(a, a)
    text = """v_dot2c_f32_f16_dpp v2, v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        v_pk_fmac_f16_dpp v3, v0, v1 quad_perm:[1,0,3,2] row_mask:0x7 bank_mask:0xf"""
    after = run(text, v=vectors)
    moved = LANE % 16 != 0
    expected = np.where(moved, 2 * np.roll(a, 1) + 3 * np.roll(b, 1) + LANE, LANE)
    np.testing.assert_array_equal(after.v(2, np.float32), expected)
    other, enabled = LANE ^ 1, LANE < 48
    low, high = np.where(enabled, 2 * a[other] + a, a), np.where(enabled, 3 * b[other] + a, a)
    np.testing.assert_array_equal(after.v(3), halves(low, high))


def test_sdwa_of_packed_operands_is_refused(run: Run) -> None:
    text = "v_pk_fmac_f16_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_2"
    with pytest.raises(UnknownInstruction, match="packed"):
        run(text)


def test_lanes_that_dpp_disables_carry_nothing(run: Run) -> None:
    text = "v_add_co_u32_dpp v2, vcc, v0, v1 row_shr:1 row_mask:0x3 bank_mask:0xf"
    after = run(text, v={0: np.uint32(M32), 1: np.uint32(1), 2: np.uint32(7)})
    enabled = (LANE < 32) & (LANE % 16 != 0)
    np.testing.assert_array_equal(after.v(2), np.where(enabled, 0, 7))
    assert after.vcc == sum(1 << int(lane) for lane in LANE[enabled])


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("v_add_co_u32_e64 v2, s[2:3], v0, v1", lambda a, b, c: a + b),
        ("v_sub_co_u32_e64 v2, s[2:3], v0, v1", lambda a, b, c: a - b),
        ("v_subrev_co_u32_e64 v2, s[2:3], v0, v1", lambda a, b, c: b - a),
        ("v_addc_co_u32_e64 v2, s[2:3], v0, v1, s[4:5]", lambda a, b, c: a + b + c),
        ("v_subb_co_u32_e64 v2, s[2:3], v0, v1, s[4:5]", lambda a, b, c: a - b - c),
        ("v_subbrev_co_u32_e64 v2, s[2:3], v0, v1, s[4:5]", lambda a, b, c: b - a - c),
    ],
)
def test_clamp_saturates_the_number_and_not_the_carry(run: Run, text: str, exact: Any) -> None:
    rng = np.random.default_rng(1)
    edges = np.array([0, 1, M32, M32 - 1, 1 << 31, 5], np.uint32)
    a, b = rng.choice(edges, 64), rng.choice(edges, 64)
    carries = int(rng.integers(1 << 62)) << 1
    wide = [exact(int(x), int(y), carries >> i & 1) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    for suffix, numbers in (("", [w & M32 for w in wide]), (" clamp", [min(max(w, 0), M32) for w in wide])):
        after = run(text + suffix, v={0: a, 1: b}, s={4: carries})
        np.testing.assert_array_equal(after.v(2), np.array(numbers, np.uint32))
        assert after.s(2, 2) == sum(1 << lane for lane, w in enumerate(wide) if not 0 <= w <= M32)


@pytest.mark.parametrize("mode", [0x3F0, 0x3F5, 0x3FA, 0x3FF])
def test_dot_products_round_to_nearest_whatever_the_mode(run: Run, mode: int) -> None:
    rng = np.random.default_rng(2)
    a, b, c, d = rng.normal(size=(4, 64)).astype(np.float16)
    z = rng.normal(size=64).astype(np.float32)
    got = run("v_dot2_f32_f16 v4, v0, v1, v2", v={0: halves(a, b), 1: halves(c, d), 2: z}, mode=mode).v(4, np.float32)
    np.testing.assert_array_equal(got, z + a.astype("f4") * c.astype("f4") + b.astype("f4") * d.astype("f4"))


@pytest.mark.parametrize("mode", [0x3F0, 0x3F5, 0x3FA, 0x3FF, 0x300])
def test_nearest_integer_is_exact_whatever_the_mode(run: Run, mode: int) -> None:
    """floor(x + 0.5): an f32 sum would make 1 of the number below a half, and miss odd numbers from 2**23 on."""
    numbers = np.array([0.49999997, 0.5, -0.5, -0.50000006, 8388609, 8388611, -8388609, 1.5, -1.5, 2.5, 0.0], "f4")
    got = run("v_cvt_rpi_i32_f32 v1, v0", v={0: np.resize(numbers, 64)}, mode=mode).v(1, np.int32)
    expected = [(Fraction(float(x)) + Fraction(1, 2)).__floor__() for x in numbers]
    np.testing.assert_array_equal(got[: len(numbers)], expected)


@pytest.mark.parametrize(("mode", "expected"), [(0x1F0, 0), (0x0F0, 0x7E00)], ids=["DX10_CLAMP", "without"])
def test_clamp_of_mixed_precision_takes_nan_to_zero_only_with_dx10_clamp(run: Run, mode: int, expected: int) -> None:
    after = run("v_fma_mixlo_f16 v1, v0, v0, v0 clamp", v={0: np.float32(np.nan), 1: np.uint32(0xABCD0000)}, mode=mode)
    assert int(after.v(1)[0]) & 0x7FFF == expected
    assert int(after.v(1)[0]) >> 16 == 0xABCD


@pytest.mark.parametrize(("mode", "expected"), [(0x3F0, 2.0**-20), (0x330, 0.0)], ids=["kept", "flushed"])
def test_f16_operands_of_mixed_precision_obey_the_mode_of_f16(run: Run, mode: int, expected: float) -> None:
    vectors = {0: halves(np.full(64, 2.0**-20), np.zeros(64)), 1: np.float32(1), 2: np.float32(0)}
    got = run("v_fma_mix_f32 v3, v0, v1, v2 op_sel_hi:[1,0,0]", v=vectors, mode=mode).v(3, np.float32)
    assert (got == expected).all()


@pytest.mark.parametrize("mode", [0x3F0, 0x3F5, 0x3FA])
def test_pieces_of_two_over_pi_are_cut_off(run: Run, mode: int) -> None:
    """Also where the piece is so small that it is a denormal."""
    got = run("v_trig_preop_f64 v[2:3], v[0:1], 22", v={0: np.float64(1.0)}, mode=mode).v(2, np.uint64)
    up = run("v_trig_preop_f64 v[2:3], v[0:1], 22", v={0: np.float64(1.0)}, mode=0x3FF).v(2, np.uint64)
    np.testing.assert_array_equal(got, up)


INVALID = [
    *((f"v_{name}_f32", x, 0xFFC00000) for name in ("log", "sqrt", "rsq") for x in (0xFF800000, 0xBF800000)),
    *((f"v_{name}_f32", x, 0xFFC00000) for name in ("sin", "cos") for x in (0xFF800000, 0x7F800000)),
    *((f"v_{name}_f16", x, 0xFE00) for name in ("log", "sqrt", "rsq") for x in (0xFC00, 0xBC00)),
    *((f"v_{name}_f16", x, 0xFE00) for name in ("sin", "cos") for x in (0xFC00, 0x7C00)),
    ("v_sin_f32", 0xFF7FFFFF, 0),
    ("v_cos_f32", 0xFF7FFFFF, 0x3F800000),
    ("v_cos_f32", 0x3E800000, 0),
    ("v_sin_f32", 0x80000000, 0x80000000),
    ("v_cos_f16", 0x3400, 0),
]


@pytest.mark.parametrize(("mnemonic", "operand", "expected"), INVALID)
def test_examples_of_the_document_to_the_bit(run: Run, mnemonic: str, operand: int, expected: int) -> None:
    """Compared by the program, so that both backends have these very bits, also of a NaN."""
    after = run(
        f"{mnemonic} v1, v0\nv_cmp_eq_u32_e64 s[2:3], v1, v2", v={0: np.uint32(operand), 2: np.uint32(expected)}
    )
    assert after.s(2, 2) == ALL_LANES, hex(int(after.v(1)[0]))


def test_other_names_and_instructions_without_effect(run: Run) -> None:
    after = run("v_clrexcp\nv_mul_lo_i32 v2, v0, v1", v={0: np.uint32(M32), 1: np.uint32(7)})
    assert int(after.v(2)[0]) == (-7) & M32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v_add_f32_sdwa v1, 1.0, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", 1.5),
        ("v_add_f32_sdwa v1, v0, -2.0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", -1.5),
        ("v_add_f32_sdwa v1, -s2, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", -2.5),
    ],
)
def test_sdwa_of_constants_and_scalars(run: Run, text: str, expected: float) -> None:
    got = run(text, v={0: np.float32(0.5)}, s={2: 0x40400000}).v(1)
    assert (got.view(np.float32) == expected).all()


@pytest.mark.parametrize(
    ("selection", "expected"), [("DWORD", -3), ("BYTE_0", 0xFD), ("WORD_1", 0xFFFF), ("BYTE_3", 0xFF)]
)
def test_sdwa_takes_its_part_of_a_constant(run: Run, selection: str, expected: int) -> None:
    text = f"v_add_u32_sdwa v1, -3, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{selection} src1_sel:BYTE_1"
    assert (run(text, v={0: np.uint32(0x0500)}).v(1) == (expected + 5) & M32).all()


@pytest.mark.parametrize("scc", [0, 1])
def test_status_bits_as_operands(run: Run, scc: int) -> None:
    text = f"""s_cmp_eq_u32 s2, {5 + 1 - scc}
        v_mov_b32 v1, src_scc
        v_add_u32 v2, src_vccz, v0
        v_add_u32 v3, src_execz, v0
        v_lshlrev_b64 v[4:5], 1, src_scc
        v_pk_add_u16 v6, src_scc, v0
        v_add_u16 v7, src_vccz, v0
        v_add_u32_sdwa v8, src_scc, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD
        s_cselect_b32 s4, src_vccz, src_execz"""
    after = run(text, v={0: np.uint32(7)}, s={2: 5, 106: 1 - scc})
    expected = {1: scc, 2: 7 + scc, 3: 7, 4: 2 * scc, 5: 0, 6: 7 + scc, 7: 7 + scc, 8: 7 + scc}
    assert {register: int(after.v(register)[3]) for register in expected} == expected
    assert after.s(4) == scc  # VCC is zero where SCC is set; EXEC is not


@pytest.mark.parametrize(("modifiers", "expected"), [("neg_lo:[0,0,1] neg_hi:[0,0,1]", 0.25), ("neg_hi:[0,0,1]", 0.75)])
def test_the_third_operand_of_a_dot_product_is_negated_as_a_whole(run: Run, modifiers: str, expected: float) -> None:
    operands = {1: halves(0.5, 0.25), 2: halves(0.5, 1.0), 3: np.float32(0.25)}
    got = run(f"v_dot2_f32_f16 v1, v1, v2, v3 {modifiers} clamp", v=operands).v(1)
    assert (got.view(np.float32) == expected).all()


def test_signs_of_integer_dot_products_are_refused(run: Run) -> None:
    with pytest.raises(UnknownInstruction, match="negation"):
        run("v_dot4_i32_i8 v1, v2, v3, v4 neg_lo:[1,0,0]")


@pytest.mark.parametrize(
    "text",
    [
        "v_cvt_i32_f32_e64 v1, v0 clamp",
        "v_cvt_u32_f32_e64 v1, v0 clamp",
        "v_cvt_u16_f16_e64 v1, v0 clamp",
        "v_cvt_i16_f16_e64 v1, v0 clamp",
        "v_cvt_flr_i32_f32_e64 v1, v0 clamp",
        "v_cvt_rpi_i32_f32_e64 v1, v0 clamp",
    ],
)
def test_clamp_changes_nothing_where_a_conversion_saturates(run: Run, text: str) -> None:
    operands = {0: np.random.default_rng(1).integers(0, 1 << 32, 64).astype(np.uint32)}
    got, plain = (run(t, v=operands).v(1) for t in (text, text.removesuffix(" clamp")))
    np.testing.assert_array_equal(got, plain)


@pytest.mark.parametrize(
    ("name", "x", "y", "z", "expected"),
    [
        ("u64_u32", 1 << 31, 1 << 31, (1 << 64) - 1, (1 << 64) - 1),
        ("u64_u32", 3, 5, 7, 22),
        ("i64_i32", 1 << 31, 1 << 31, (1 << 63) - 1, (1 << 63) - 1),
        ("i64_i32", 1 << 31, 1, 1 << 63, 1 << 63),
        ("i64_i32", 3, M32, 7, 4),
    ],
)
def test_a_wide_multiply_add_saturates(run: Run, name: str, x: int, y: int, z: int, expected: int) -> None:
    operands = {2: np.uint32(x), 3: np.uint32(y), 4: np.uint64(z)}
    after = run(f"v_mad_{name} v[0:1], vcc, v2, v3, v[4:5] clamp", v=operands)
    assert (int(after.v(1)[0]) << 32 | int(after.v(0)[0])) == expected


def test_a_literal_may_be_a_small_number(run: Run) -> None:
    """LLVM writes `lit()` around what it would encode as an inline constant: a double takes it as its high half."""
    after = run(
        "v_mov_b32 v1, lit(0x5)\nv_add_f64 v[2:3], v[4:5], lit(0x40)\ns_mov_b32 s1, lit(-7)", v={4: np.float64([0.5])}
    )
    assert after.v(1)[0] == 5
    assert after.s(1) == 0xFFFFFFF9
    assert after.v(2, np.float64)[0] == 0.5 + np.uint64(0x40 << 32).view(np.float64)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("v_add_f32 v1, v2, v3 foo", "foo"),
        ("v_add_f32 v1, v2, v3 x:y", "x"),
        ("v_add_f32 v1, v2, v3 offset:4", "offset"),
        ("v_add_f32_e32 v1, v2, v3 quad_perm:[0,1,2,3]", "quad_perm"),
        ("v_add_f32_dpp v1, v2, v3 quad_perm:[0,1,2,3] dst_sel:BYTE_1", "dst_sel"),
        ("v_add_u32 v1, v2, v3 mul:2", "mul"),
        ("v_alignbit_b32 v1, v2, v3, v4 op_sel:[1,0,0]", "op_sel"),
        ("v_pk_add_f16 v1, v2, v3 mul:2", "mul"),
        ("v_add_f32 v1, v2, v3 neg_lo:[1,0]", "neg_lo"),
        ("v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15] neg:[1,0,0]", "neg"),
        ("v_mfma_f64_4x4x4_4b_f64 v[0:1], v[2:3], v[4:5], v[6:7] blgp:1", "blgp"),
        ("ds_read_b32 v1, v2 offset0:4", "offset0"),
        ("ds_read2_b32 v[2:3], v1 offset:4", "offset"),
        ("ds_read_b32 v1, v2 gds", "gds"),
        ("buffer_load_dwordx2 v[2:3], v1, s[0:3], 0 offen lds", "lds"),
        ("buffer_load_dword v2, v1, s[0:3], 0 offen glc", "glc"),
        ("global_load_dword v1, v[2:3], off tfe", "tfe"),
        ("s_mov_b32 s1, s2 glc", "glc"),
        ("s_nop 0 clamp", "clamp"),
    ],
)
def test_a_modifier_that_an_instruction_does_not_have_is_refused(run: Run, text: str, name: str) -> None:
    with pytest.raises(UnknownInstruction, match=f"{name} is not a modifier"):
        run(text)


def test_dpp_of_an_instruction_without_a_source_is_refused(run: Run) -> None:
    with pytest.raises(UnknownInstruction, match="DPP"):
        run("v_swap_b32 v1, v2 row_mirror")
