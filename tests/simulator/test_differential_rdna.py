"""What RDNA shares with CDNA, by its own names and in waves of 32 lanes, against the same references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from flydsl.arch import get_arch
from flydsl.simulator.isa.spellings import name_on
from tests.simulator.differential import attempt, attempt_scalar, disagreements
from tests.simulator.reference import compare, convert, division, packed, rdna, scalar, vector_float, vector_integer

pytestmark = pytest.mark.slow

GPU = get_arch("gfx1201")
OLDER = get_arch("gfx1151")
"""Of RDNA 3.5: a part of what it shares with RDNA 4 is enough, and all that it has otherwise."""
MODE, IEEE_MODE = 0x1F0, 0x3F0
"""Denormals kept, clamp takes NaN to 0: RDNA 4 has no IEEE mode, as RDNA 3 has."""
CASES = vector_integer.CASES | compare.CASES | vector_float.CASES | division.CASES | packed.CASES | convert.CASES
OTHERWISE = ("v_cmpx", "v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_", "v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr_")
"""Which have other operands, or other formats."""


def shared(cases: Mapping[str, Any]) -> list[Any]:
    """The names of what RDNA 4 has, too. One row of the table serves both families, so that of what has the same name
    a part is enough, and `make sweep` has the rest."""
    names = [name for name in cases if name_on(name, GPU.instruction_sets) and not name.startswith(OTHERWISE)]
    return [
        pytest.param(name, marks=pytest.mark.sweep) if i % 4 and name_on(name, GPU.instruction_sets) == name else name
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", shared(CASES))
def test_vector_instruction(name: str) -> None:
    trial = attempt(str(name_on(name, GPU.instruction_sets)), CASES[name], MODE, arch=GPU)
    found = disagreements(trial, MODE, keeps_halves=not name.startswith("v_pk"))
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


def of_rdna3(cases: Mapping[str, Any]) -> list[str]:
    """The names of the table of what RDNA 3 has otherwise, and of some of the others."""
    names = [name for name in cases if name_on(name, OLDER.instruction_sets) and not name.startswith(OTHERWISE)]
    return [
        name for i, name in enumerate(names)
        if not i % 30 or name_on(name, OLDER.instruction_sets) != name_on(name, GPU.instruction_sets)
    ]  # fmt: skip


@pytest.mark.parametrize("name", of_rdna3(CASES))
def test_vector_instruction_of_rdna3(name: str) -> None:
    trial = attempt(str(name_on(name, OLDER.instruction_sets)), CASES[name], IEEE_MODE, arch=OLDER)
    found = disagreements(trial, IEEE_MODE, keeps_halves=not name.startswith("v_pk"))
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", of_rdna3(scalar.CASES))
def test_scalar_instruction_of_rdna3(name: str) -> None:
    found = attempt_scalar(str(name_on(name, OLDER.instruction_sets)), scalar.CASES[name], OLDER)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", rdna.OF_RDNA3)
def test_instruction_of_rdna3_alone(name: str) -> None:
    found = disagreements(attempt(name, rdna.OF_RDNA3[name], IEEE_MODE, arch=OLDER), IEEE_MODE)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", [*of_rdna3(rdna.SCALAR), *rdna.SCALAR_OF_RDNA3])
def test_scalar_float_of_rdna3_5(name: str) -> None:
    found = attempt_scalar(name, (rdna.SCALAR | rdna.SCALAR_OF_RDNA3)[name], OLDER, IEEE_MODE)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", shared(scalar.CASES))
def test_scalar_instruction(name: str) -> None:
    found = attempt_scalar(str(name_on(name, GPU.instruction_sets)), scalar.CASES[name], GPU)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("mode", [MODE, 0x100], ids=["denormals", "flushing"])
@pytest.mark.parametrize("name", rdna.CASES)
@pytest.mark.diagonal(2)
def test_vector_instruction_of_rdna_alone(name: str, mode: int) -> None:
    found = disagreements(attempt(name, rdna.CASES[name], mode, arch=GPU), mode)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize(("name", "suffix"), rdna.MIXED_DOTS, ids=" ".join)
def test_dot_product_of_signed_and_unsigned_numbers(name: str, suffix: str) -> None:
    found = disagreements(attempt(name, rdna.MIXED_DOTS[name, suffix], MODE, arch=GPU), MODE)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("mode", [MODE, 0x100], ids=["denormals", "flushing"])
@pytest.mark.parametrize("name", rdna.SCALAR)
@pytest.mark.diagonal(2)
def test_scalar_instruction_of_rdna_alone(name: str, mode: int) -> None:
    found = attempt_scalar(name, rdna.SCALAR[name], GPU, mode)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])
