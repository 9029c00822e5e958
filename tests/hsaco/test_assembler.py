from __future__ import annotations

import pytest

from flydsl.hsaco.assembler import AssemblerError, assemble
from flydsl.hsaco.elf import read_contents

# LLVM's assembler reads this without end.
ENDLESS = '\ts_waitcnt lgkmcnt(")\n\t.section .rodata,"a",@progbits\n'


@pytest.mark.slow
def test_an_assembler_without_an_end_is_ended() -> None:
    with pytest.raises(AssemblerError, match="did not come to an end within 3 seconds of the processor"):
        assemble(ENDLESS, "gfx942")


def test_what_the_assembler_says_is_told() -> None:
    with pytest.raises(AssemblerError, match=r"(?s)listing.s:1:2: error: .*v_nonsense"):
        assemble("\tv_nonsense v0\n", "gfx942")


def test_halves_of_registers_have_names_in_the_listings_of_newer_compilers() -> None:
    contents = read_contents(assemble("\tv_mov_b16_e32 v29.h, v17.l\n", "gfx1201"))
    assert contents.sections[".text"] == (0x7E3A3800 | 1 << 24 | 0x111).to_bytes(4, "little")
