from __future__ import annotations

import re

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import code_object, compile_llvm_ir, llvm
from flydsl.codegen.agreement import DISASSEMBLY, agrees
from flydsl.codegen.assemble import assemble
from flydsl.errors import CompileError
from flydsl.hsaco import excluded, read_contents
from flydsl.simulator import load

pytestmark = pytest.mark.slow

GFX942 = get_arch("gfx942")
CHANGES = {
    "an operand": (r"v_lshlrev_b32_e32 v(\d+), 2,", r"v_lshlrev_b32_e32 v\1, 3,"),
    "an instruction less": (r"\ts_barrier\n", ""),
    "an instruction more": (r"\ts_barrier\n", "\ts_barrier\n\ts_barrier\n"),
    "the end missing": (r"\ts_endpgm\n", ""),
    "a branch to another block": (r"(s_c?branch\w*) \.LBB0_\w+", r"\1 .Lfunc_begin0"),
    "a label elsewhere": (r"(\.LBB0_\d+:.*\n)((?:\t\..*\n)*)(\t[a-z].*\n)", r"\2\3\1"),
    "a branch to nowhere": (r"(s_c?branch\w*) \.LBB0_\w+", r"\1 .LBB9_9"),
}


@pytest.fixture
def made(loop_with_lines: str) -> llvm.Compiled:
    return llvm.compile_module(loop_with_lines, GFX942, 2)


def test_what_llvm_writes_twice_agrees(made: llvm.Compiled) -> None:
    assert agrees(made.listing, made.obj)


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_listing_is_seen(change: str, made: llvm.Compiled) -> None:
    listing, count = re.subn(*CHANGES[change], made.listing, count=1)
    assert count == 1
    assert listing != made.listing
    assert not agrees(listing, made.obj)


def test_an_object_that_says_nothing_does_not_agree(made: llvm.Compiled) -> None:
    assert not agrees(made.listing, assemble(made.listing, GFX942))
    assert not agrees(made.listing, b"no object")


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_a_listing_that_differs_is_what_counts(arch: Arch, loop_with_lines: str) -> None:
    other = llvm.compile_module(loop_with_lines, arch, 0)
    real = llvm.compile_module(loop_with_lines, arch, 2)
    mixed = llvm.Compiled(real.bitcode, real.obj, other.listing, "")
    obj = code_object._object(mixed, arch)
    assert read_contents(obj).sections[".text"] == read_contents(assemble(other.listing, arch)).sections[".text"]
    assert read_contents(obj).sections[".text"] != read_contents(real.obj).sections[".text"]


def test_features_of_a_functions_own_agree_too(loop_with_lines: str) -> None:
    with_features = loop_with_lines.replace('"256,256"', '"256,256" "target-features"="+xnack"')
    made = llvm.compile_module(with_features, GFX942, 2)
    assert agrees(made.listing, made.obj)


NEGATIVE_16_BITS = """\
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %place = getelementptr i16, ptr addrspace(1) %p, i32 %x
  %v = load i16, ptr addrspace(1) %place
  %less = add i16 %v, -1000
  store i16 %less, ptr addrspace(1) %place
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" }
"""


def test_a_number_of_16_bits_is_that_of_the_listing() -> None:
    """LLVM 22.1 writes 0xfc18 into the listing, 0xfffffc18 into the object. The instruction takes the lower half."""
    code = compile_llvm_ir(NEGATIVE_16_BITS, GFX942)
    assert "0xfc18" in code.listing
    load(code.hsaco, code.listing)


def test_llvm_still_fills_the_other_half_of_a_number_of_16_bits() -> None:
    made = llvm.compile_module(NEGATIVE_16_BITS, GFX942, 2)
    assert not agrees(made.listing, made.obj), "_LITERAL of flydsl/codegen/agreement.py is not needed any more"


def test_the_disassembly_is_not_in_the_hsaco(loop_with_lines: str, made: llvm.Compiled) -> None:
    assert DISASSEMBLY in read_contents(made.obj).sections
    assert DISASSEMBLY not in read_contents(compile_llvm_ir(loop_with_lines, GFX942).hsaco).sections
    assert excluded(made.obj, ".nowhere") == made.obj


def test_what_cannot_be_assembled_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"(?s)gfx942.*v_nonsense"):
        assemble("\tv_nonsense v0\n", GFX942)


def test_without_an_assembler_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.hsaco.assembler.find_zig", lambda: None)
    with pytest.raises(CompileError, match="no assembler"):
        assemble("\ts_endpgm\n", GFX942)
