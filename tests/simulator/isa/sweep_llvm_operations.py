"""The operations of LLVM IR that `make test` leaves out on gfx942 and gfx1250: `make sweep`."""

from __future__ import annotations

import pytest

from tests.simulator.isa.test_llvm_operations import OTHER_PLACES, check, program


@pytest.mark.parametrize(("name", "arch"), OTHER_PLACES)
def test_operation(name: str, arch: str) -> None:
    check(name, arch)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1250"])
def test_every_instruction_that_llvm_chose_is_known(arch: str) -> None:
    assert not [i.listed.text for i in program(arch, True).unknown_instructions()]
