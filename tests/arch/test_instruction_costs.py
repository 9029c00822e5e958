"""Published costs against other published figures: the peaks of AMD's data sheet for the MI300X."""

from __future__ import annotations

import re

import pytest

from flydsl.arch import GFX942, Arch, get_arch
from flydsl.arch.instruction_costs import mfma_cycles, mfma_operations, peaks, valu_cycles, valu_operations
from flydsl.errors import ArchError
from flydsl.simulator.isa.spellings import entries_on


@pytest.mark.parametrize(
    ("mnemonics", "tera_operations"),
    [
        ("v_mfma_f32_16x16x16_f16 v_mfma_f32_32x32x8_f16 v_mfma_f32_16x16x16_bf16 v_mfma_f32_32x32x8_bf16", 1307.4),
        ("v_mfma_f32_16x16x32_fp8_fp8 v_mfma_f32_32x32x16_bf8_fp8", 2614.9),
        ("v_mfma_i32_16x16x32_i8 v_mfma_i32_32x32x16_i8", 2614.9),
        ("v_smfmac_f32_16x16x32_f16 v_smfmac_f32_32x32x16_bf16", 2614.9),  # with sparsity
        ("v_mfma_f32_16x16x8_xf32 v_mfma_f32_32x32x4_xf32", 653.7),
        ("v_mfma_f32_16x16x4_f32 v_mfma_f32_32x32x2_f32 v_mfma_f64_16x16x4_f64", 163.4),
    ],
)
def test_matrix_instructions_reach_the_peaks_of_the_data_sheet(mnemonics: str, tera_operations: float) -> None:
    check_peak(GFX942, mnemonics, tera_operations)


@pytest.mark.parametrize(
    ("arch", "mnemonics", "tera_operations"),
    [
        ("gfx950", "v_mfma_f32_16x16x32_f16 v_mfma_f32_32x32x16_bf16", 2516.6),
        ("gfx950", "v_mfma_i32_16x16x64_i8 v_mfma_i32_32x32x32_i8", 5033.2),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4/fp8_fp8 v_mfma_scale_f32_32x32x64_f8f6f4/bf8_fp4", 5033.2),
        ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4/fp4_fp4 v_mfma_f32_32x32x64_f8f6f4/fp6_bf6", 10066.3),
        ("gfx950", "v_mfma_f64_16x16x4_f64", 78.6),
        ("gfx950", "v_mfma_f32_16x16x4_f32", 157.3),
        ("gfx90a", "v_mfma_f32_16x16x16_f16 v_mfma_f32_32x32x8_bf16 v_mfma_i32_32x32x8_i8", 383.0 / 2),
        ("gfx1100", "v_wmma_f32_16x16x16_f16 v_wmma_bf16_16x16x16_bf16 v_wmma_i32_16x16x16_iu8", 122.9),
        ("gfx1151", "v_wmma_f32_16x16x16_bf16", 59.4),
        ("gfx1201", "v_wmma_f32_16x16x16_f16 v_wmma_bf16_16x16x16_bf16", 195),
        ("gfx1201", "v_wmma_f32_16x16x16_fp8_bf8 v_wmma_i32_16x16x16_iu8", 389),
        ("gfx1201", "v_wmma_i32_16x16x16_iu4 v_wmma_i32_16x16x32_iu4 v_swmmac_i32_16x16x32_iu8", 779),
        ("gfx90a", "v_mfma_f32_32x32x2_f32 v_mfma_f64_16x16x4_f64", 95.7 / 2),
    ],
)
def test_matrix_instructions_of_others_reach_theirs(arch: str, mnemonics: str, tera_operations: float) -> None:
    check_peak(get_arch(arch), mnemonics, tera_operations)


def test_pairs_of_vector_instructions_reach_the_peak_of_the_data_sheet() -> None:
    arch, pair = get_arch("gfx1201"), "v_dual_fmac_f32::v_dual_fmac_f32"
    peak = peaks(arch)
    rate = peak.operations_per_second(32 * valu_operations(pair), valu_cycles(arch, pair) or 0)
    assert rate == pytest.approx(48.7e12, rel=2e-3)


def check_peak(arch: Arch, mnemonics: str, tera_operations: float) -> None:
    peak = peaks(arch)
    simds = peak.compute_units * peak.simds_per_compute_unit
    for mnemonic in mnemonics.split():
        cycles = mfma_cycles(arch, mnemonic)
        assert cycles is not None
        rate = mfma_operations(mnemonic) / cycles * simds * peak.clock_hz
        assert rate == pytest.approx(tera_operations * 1e12, rel=2e-3), mnemonic


@pytest.mark.parametrize(("mnemonic", "tera_operations"), [("v_pk_fma_f32", 163.4), ("v_fma_f64", 81.7)])
def test_vector_instructions_reach_the_peaks_of_the_data_sheet(mnemonic: str, tera_operations: float) -> None:
    peak, cycles = peaks(GFX942), valu_cycles(GFX942, mnemonic)
    assert cycles is not None
    operations = 64 * 2 * (2 if "_pk_" in mnemonic else 1)
    rate = operations / cycles * peak.compute_units * peak.simds_per_compute_unit * peak.clock_hz
    assert rate == pytest.approx(tera_operations * 1e12, rel=1e-3)


@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_matrix_instruction_has_a_cost(name: str) -> None:
    arch = get_arch(name)
    forms = [s.mnemonic for s in entries_on(arch.instruction_sets).values()]
    forms = [name for name in forms if re.match("v_(s?mfmac?|s?w+mmac?)_", name)]
    assert len(forms) >= 12
    assert all((mfma_cycles(arch, form) or 0) > 0 and mfma_operations(form) > 0 for form in forms)


def test_what_is_not_known_is_not_guessed() -> None:
    assert valu_cycles(GFX942, "v_mul_lo_u32") is None
    assert mfma_cycles(GFX942, "v_fma_f32") is None
    assert valu_cycles(get_arch("gfx1250"), "v_fma_f32") is None
    assert mfma_cycles(get_arch("gfx1250"), "v_wmma_f32_16x16x32_f16") is None
    with pytest.raises(ArchError, match="peak figures of gfx1250"):
        peaks(get_arch("gfx1250"))
