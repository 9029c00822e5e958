"""What RDNA 4 shares with CDNA, by its own names and in waves of 32 lanes, against the same references."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.simulator.isa.spellings import name_on
from tests.simulator.differential import attempt, attempt_scalar, disagreements
from tests.simulator.reference import compare, convert, division, packed, rdna, scalar, vector_float, vector_integer

pytestmark = pytest.mark.slow

GPU = get_arch("gfx1201")
MODE = 0x1F0
"""Denormals kept, clamp takes NaN to 0: RDNA 4 has no IEEE mode."""
CASES = vector_integer.CASES | compare.CASES | vector_float.CASES | division.CASES | packed.CASES | convert.CASES
OTHERWISE = ("v_cmpx", "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_", "v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr_")
"""Which have other operands, or other formats."""
NAMES = [name for name in CASES if name_on(name, GPU.instruction_sets) and not name.startswith(OTHERWISE)]


@pytest.mark.parametrize("name", NAMES)
def test_vector_instruction(name: str) -> None:
    trial = attempt(str(name_on(name, GPU.instruction_sets)), CASES[name], MODE, arch=GPU)
    found = disagreements(trial, MODE, keeps_halves=not name.startswith("v_pk"))
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", [name for name in scalar.CASES if name_on(name, GPU.instruction_sets)])
def test_scalar_instruction(name: str) -> None:
    found = attempt_scalar(str(name_on(name, GPU.instruction_sets)), scalar.CASES[name], GPU)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("mode", [MODE, 0x100], ids=["denormals", "flushing"])
@pytest.mark.parametrize("name", rdna.CASES)
def test_vector_instruction_of_rdna_alone(name: str, mode: int) -> None:
    found = disagreements(attempt(name, rdna.CASES[name], mode, arch=GPU), mode)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize(("name", "suffix"), rdna.MIXED_DOTS, ids=" ".join)
def test_dot_product_of_signed_and_unsigned_numbers(name: str, suffix: str) -> None:
    found = disagreements(attempt(name, rdna.MIXED_DOTS[name, suffix], MODE, arch=GPU), MODE)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("mode", [MODE, 0x100], ids=["denormals", "flushing"])
@pytest.mark.parametrize("name", rdna.SCALAR)
def test_scalar_instruction_of_rdna_alone(name: str, mode: int) -> None:
    found = attempt_scalar(name, rdna.SCALAR[name], GPU, mode)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])
