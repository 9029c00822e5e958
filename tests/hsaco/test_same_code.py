"""Listings of other versions of LLVM that give the same code."""

from __future__ import annotations

import re
import struct

import pytest

from flydsl.arch import get_arch
from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.assemble import assemble
from flydsl.codegen.link import link
from flydsl.hsaco.same_code import check_listing
from flydsl.simulator import ListingError

EMPTY = "define amdgpu_kernel void @empty() {\n  ret void\n}"
LINES = re.compile(r"\.amdhsa_inst_pref_size \d+")


@pytest.mark.parametrize(("name", "mask", "most"), [("gfx1201", 4080, 255), ("gfx1100", 1008, 63)])
@pytest.mark.parametrize("dwords", [1, 31, 32, 100, 9000])
def test_a_number_of_lines_that_llvm_leaves_to_the_assembler(name: str, mask: int, most: int, dwords: int) -> None:
    """As LLVM 23 writes it: one line for every 128 bytes of code, of which the descriptor's field has a most."""
    arch = get_arch(name)
    listing = compile_llvm_ir(EMPTY, arch).listing.replace("\ts_endpgm", "\ts_nop 0\n" * dwords + "\ts_endpgm")
    lines = min((4 * dwords + 4 + 127) // 128, most)
    counted = LINES.sub(f".amdhsa_inst_pref_size {lines}", listing)
    assert counted.count(f"inst_pref_size {lines}\n") == 1
    hsaco = link(assemble(counted, arch))
    left = f".amdhsa_inst_pref_size ((instprefsize(.Lfunc_end0-empty)<<4)&{mask})>>4"
    check_listing(hsaco, LINES.sub(left, listing))
    with pytest.raises(ListingError, match=r"IREE does: load\(..., check_listing=False\)"):
        check_listing(hsaco, LINES.sub(left, listing.replace("s_nop 0", "s_nop 1", 1)))


TWO, THREE = "v_mul_hi_u32 v0, v1, v2", "v_fma_f32 v0, v1, v2, s0"


def test_a_field_for_a_source_that_an_instruction_does_not_have() -> None:
    """LLVM 23 has the constant 0 there, the assembler the number 0: that of s0, where there is a third source."""
    arch = get_arch("gfx1201")
    listing = compile_llvm_ir(EMPTY, arch).listing.replace("\ts_endpgm", f"\t{TWO}\n\t{THREE}\n\ts_endpgm")
    hsaco = link(assemble(listing, arch))
    of_two, of_three = (struct.pack("<II", *words) for words in ((0xD72D0000, 0x00020501), (0xD6130000, 0x00020501)))
    assert hsaco.count(of_two) == hsaco.count(of_three) == 1
    check_listing(hsaco.replace(of_two, struct.pack("<II", 0xD72D0000, 0x02020501)), listing)
    with pytest.raises(ListingError, match=r"\.text differs"):
        check_listing(hsaco.replace(of_three, struct.pack("<II", 0xD6130000, 0x02020501)), listing)
    with pytest.raises(ListingError, match=r"\.text differs"):
        check_listing(hsaco.replace(of_two, struct.pack("<II", 0xD72D0000, 0x04020501)), listing)
