"""Whole instructions of RDNA 3, operands and modifiers included, rather than their names."""

from __future__ import annotations

import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.assembler import assemble
from tests.simulator.isa.operand_forms import assembled, forms_of
from tests.simulator.isa.test_syntax import program_of

AT_ONCE = 400  # lines: the assembler stops after some errors


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["gfx1100", "gfx1151"])
def test_of_the_forms_that_assemble_98_of_100_are_understood_and_the_others_refused_by_name(name: str) -> None:
    arch, lines = get_arch(name), forms_of(get_arch(name))
    printed = [text for i in range(0, len(lines), AT_ONCE) for text in assembled(lines[i : i + AT_ONCE], arch)]
    assert len(printed) > 20_000
    # What LLVM prints is what it encodes: it assembles to the same code again.
    once = assemble("\n".join(["L:", *printed, ""]), name)
    assert once == assemble("\n".join(["L:", *assembled(printed, arch), ""]), name)
    instructions = program_of(printed, arch).instructions
    unknown = [i for i in instructions if i.semantics is None]
    assert len(unknown) <= 0.02 * len(printed)
    assert all(i.problem for i in unknown)
