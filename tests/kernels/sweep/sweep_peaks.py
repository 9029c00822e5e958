"""Published peaks of more types and GPUs than `test_peaks` has: the model comes within a tenth of them."""

from __future__ import annotations

import pytest

from tests.simulator.timing.peaks import copy_tera, lds_bytes_per_cycle, matrix_tera

FP4, FP6 = ("cbsz:4 blgp:4", "fp4_fp4"), ("cbsz:2 blgp:2", "fp6_fp6")


@pytest.mark.parametrize(
    ("arch", "instruction", "registers", "tera"),
    [
        ("gfx90a", "v_mfma_f32_32x32x8bf16_1k", 2, 191.5),
        ("gfx90a", "v_mfma_i32_32x32x8i8", 1, 191.5),
        ("gfx90a", "v_mfma_f32_32x32x2f32", 1, 47.9),
        ("gfx90a", "v_mfma_f64_16x16x4f64", 2, 47.9),
        ("gfx942", "v_mfma_f32_16x16x16_f16", 2, 1307.4),
        ("gfx942", "v_mfma_f32_32x32x16_bf8_bf8", 2, 2614.9),
        ("gfx942", "v_mfma_f32_16x16x8_xf32", 2, 653.7),
        ("gfx950", "v_mfma_f32_32x32x16_bf16", 4, 2516.6),
        ("gfx950", "v_mfma_i32_16x16x64_i8", 4, 5033.2),
        ("gfx950", "v_mfma_f32_16x16x4_f32", 1, 157.3),
        ("gfx950", "v_mfma_f64_16x16x4_f64", 2, 78.6),
    ],
)
def test_matrix_instructions(arch: str, instruction: str, registers: int, tera: float) -> None:
    """AMD's data sheets of the MI250X (half of it), MI300X and MI355X, dense."""
    assert matrix_tera(arch, instruction, registers) == pytest.approx(tera, rel=0.1)


@pytest.mark.parametrize(("modifiers", "formats", "registers"), [(*FP4, 4), (*FP6, 6)], ids=["fp4", "fp6"])
def test_narrow_matrix_instructions(modifiers: str, formats: str, registers: int) -> None:
    """AMD's data sheet of the MI355X: 10.07 PFLOPS of MXFP4 and of MXFP6."""
    found = matrix_tera("gfx950", "v_mfma_f32_16x16x128_f8f6f4", registers, modifiers, formats)
    assert found == pytest.approx(10066, rel=0.1)


@pytest.mark.parametrize(("arch", "bytes_"), [("gfx90a", 128), ("gfx950", 256)])
def test_lds(arch: str, bytes_: int) -> None:
    """Bytes a cycle: the CDNA 2 and CDNA 4 white papers; MT4G has measured 220 of the latter."""
    assert lds_bytes_per_cycle(arch) == pytest.approx(bytes_, rel=0.1)


def test_copy_of_memory() -> None:
    """BabelStream's copy on one die of an MI250X: 1.3 TB/s."""
    assert copy_tera("gfx90a") == pytest.approx(1.3, rel=0.1)
