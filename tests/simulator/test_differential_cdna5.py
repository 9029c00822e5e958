"""What gfx1250 has and RDNA 4 does not, against references of integers and exact fractions."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from tests.simulator.differential import attempt, disagreements
from tests.simulator.reference import cdna5
from tests.simulator.reference.case import M16, integer
from tests.simulator.reference.ieee import BF16, is_nan

pytestmark = pytest.mark.slow

GPU = get_arch("gfx1250")
MODE, FLUSHING = 0x1F0, 0x100
DEPEND_ON_MODE = [name for name, case in cdna5.CASES.items() if any(w[0] == "f" for w in case.operands)]


@pytest.mark.parametrize("name", cdna5.CASES)
def test_vector_instruction(name: str) -> None:
    found = disagreements(attempt(name, cdna5.CASES[name], MODE, arch=GPU), MODE)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", DEPEND_ON_MODE)
def test_vector_instruction_without_denormals(name: str) -> None:
    found = disagreements(attempt(name, cdna5.CASES[name], FLUSHING, arch=GPU), FLUSHING)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", ["v_exp_bf16", "v_pk_fma_bf16"])
def test_bf16_does_not_depend_on_the_mode(name: str) -> None:
    found = disagreements(attempt(name, cdna5.CASES[name], FLUSHING | 0xF, arch=GPU), FLUSHING | 0xF)
    assert not found, "\n".join([f"{len(found)} differences", *found[:8]])


@pytest.mark.parametrize("name", cdna5.NEAR)
def test_function_of_bf16_within_a_place(name: str) -> None:
    wanted = cdna5.bf16_function(name)
    trial = attempt(f"v_{name}_bf16", integer("i16~ = i16", wanted), MODE, arch=GPU)
    for x, got in zip(trial.operands[0], trial.got(0), strict=True):
        near = abs(_place(got & M16) - _place(wanted(x))) <= 1
        assert near or (is_nan(BF16, got & M16) and is_nan(BF16, x)), f"v_{name}_bf16 of {x:#x} is {got & M16:#x}"


def _place(x: int) -> int:
    """Where a bf16 is in the order of numbers."""
    return -(x & 0x7FFF) if x >> 15 else x
