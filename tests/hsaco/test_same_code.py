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


@pytest.mark.slow
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
    with pytest.raises(ListingError, match=r"changed on purpose: load\(..., check_listing=False\)"):
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


def test_the_upper_half_of_a_literal_of_16_bits() -> None:
    """LLVM 23 extends its sign, the assembler leaves it 0."""
    arch = get_arch("gfx1201")
    text = "v_or_b16 v0.l, v1.l, 0xff80"
    listing = compile_llvm_ir(EMPTY, arch).listing.replace(
        "\ts_endpgm", f"\t{text}\n\tv_or_b32 v0, 0xff80, v1\n\ts_endpgm"
    )
    hsaco = link(assemble(listing, arch))
    literal, extended, other = (struct.pack("<I", number) for number in (0xFF80, 0xFFFFFF80, 0x1FF80))
    assert hsaco.count(literal) == 2
    assert check_listing(hsaco.replace(literal, extended, 1), listing) == listing
    for changed in (hsaco.replace(literal, other, 1), hsaco.replace(literal, extended)):
        with pytest.raises(ListingError, match=r"\.text differs"):
            check_listing(changed, listing)


ONE_RUN = """
    v_mul_f32 v4, 2.0, v1
    v_or_b32 v2, 32, v1
    v_or_b32 v3, 0x100, v1
    ds_read_b64 v[6:7], v2 offset:16
    global_load_dword v5, v3, s[4:5] offset:64
    v_add_u32 v4, v2, v3
    s_mul_i32 s6, s7, s8
"""
ANOTHER = """
    v_mul_f32 v4, 2.0, v1
    v_or_b32 v9, 0x100, v1
    v_or_b32 v8, 32, v1
    ds_read_b64 v[10:11], v8 offset:16
    global_load_dword v2, v9, s[4:5] offset:64
    v_add_u32 v4, v8, v9
    s_mul_i32 s6, s8, s7
"""


def listing_with(instructions: str) -> str:
    listing = compile_llvm_ir(EMPTY, get_arch("gfx942")).listing
    return listing.replace("\ts_endpgm", f"{instructions * 3}\ts_endpgm")


def test_a_listing_that_was_compiled_apart_has_the_code_objects_registers_and_order() -> None:
    arch = get_arch("gfx942")
    listing, compiled = listing_with(ANOTHER + "s_nop 0\n" * 9), listing_with(ONE_RUN + "s_nop 0\n" * 9)
    hsaco = link(assemble(compiled, arch))
    with pytest.warns(UserWarning, match="18 of 49 instructions have other registers or another order"):
        own = check_listing(hsaco, listing)
    assert link(assemble(own, arch)) == hsaco
    assert own.count("v_or_b32 v2, 32, v1") == own.count("v[6:7], v2 offset:16") == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v_add_u32", "v_sub_u32"),
        ("v_or_b32 v9, 0x100", "v_or_b32 v9, 0x101"),
        ("offset:64", "offset:68"),
        ("2.0", "4.0"),
    ],
)
def test_another_instruction_or_number_is_another_listing(old: str, new: str) -> None:
    hsaco = link(assemble(listing_with(ONE_RUN + "s_nop 0\n" * 9), get_arch("gfx942")))
    listing = listing_with(ANOTHER + "s_nop 0\n" * 9)
    assert listing.count(old) == 3
    with pytest.raises(ListingError, match=r"\.text differs"):
        check_listing(hsaco, listing.replace(old, new, 1))
