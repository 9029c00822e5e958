"""Inline assembly is compiled as everything else is, on every architecture and at every level."""

from __future__ import annotations

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.assemble import assemble
from flydsl.codegen.inline_assembly import canonical, check_constraints, occurs_in, quoted, unquoted, with_places
from flydsl.codegen.llvm import diagnosed
from flydsl.errors import CompileError, SourceLocation
from flydsl.hsaco import read_contents

pytestmark = pytest.mark.slow

GFX942 = get_arch("gfx942")
NAMED = """
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  %x = call i32 asm sideeffect "v_mov_b32 $0, 5", "={v7},~{v8}"()
  store i32 %x, ptr addrspace(1) %p
  ret void
}
"""


@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.diagonal(4)
def test_the_listing_is_canonical_and_gives_the_code(arch: Arch, opt_level: int) -> None:
    code = compile_llvm_ir(NAMED, arch, opt_level=opt_level)
    assert "v_mov_b32_e32 v7, 5" in code.listing
    assert code.kernels[0].resources.vgprs == 9  # v8 is clobbered
    for text in (code.listing, code.isa):
        assert read_contents(assemble(text, arch)).sections[".text"] == read_contents(code.hsaco).sections[".text"]


def test_line_tables_change_nothing(loop_with_lines: str) -> None:
    barrier = "call void @llvm.amdgcn.s.barrier()"
    with_asm = loop_with_lines.replace(barrier, 'call void asm sideeffect "s_barrier", "~{memory}"()')
    assert with_asm != loop_with_lines
    codes = [compile_llvm_ir(with_asm, GFX942, debug_info=debug) for debug in (False, True)]
    texts = [read_contents(code.hsaco).sections[".text"] for code in codes]
    assert texts[0] == texts[1]
    assert "\ts_barrier" in codes[0].listing


def test_assembly_without_text_leaves_llvms_listing_as_it_is() -> None:
    empty = NAMED.replace("v_mov_b32 $0, 5", "").replace("5", "")
    assert not occurs_in(empty)
    assert "v7" in compile_llvm_ir(empty, GFX942).listing


def test_without_an_assembler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flydsl.hsaco.assembler.find_zig", lambda: None)
    with pytest.raises(CompileError, match="needs an assembler") as caught:
        canonical("\t;;#ASMSTART\n\ts_nop 0\n\t;;#ASMEND\n", GFX942)
    assert "ziglang" in (caught.value.hint or "")


def test_lines_keep_their_numbers() -> None:
    placed = with_places(NAMED).split("\n")
    assert [i for i, line in enumerate(placed) if "!srcloc" in line] == [2]
    assert placed[2].endswith(", !srcloc !{i64 3}")


@pytest.mark.parametrize("name", ["v0", "v255", "a[0:3]", "s105", "s[4:5]", "vcc", "vcc_lo", "exec", "m0", "memory"])
def test_registers_that_there_are(name: str) -> None:
    check_constraints(f"=v,v,~{{{name}}},~{{scc}}")


@pytest.mark.parametrize("name", ["v256", "s[5:4]", "s106", "vgpr7", "VCC", "", "r3", "v[0:256]"])
def test_registers_that_there_are_not(name: str) -> None:
    with pytest.raises(CompileError, match="which is not a register"):
        check_constraints(f"=v,~{{{name}}}")


def test_a_macro_and_labels_of_two_assemblies() -> None:
    listing = "\n".join(
        f"\t;;#ASMSTART\n\t{text}\n\t;;#ASMEND"
        for text in (".macro twice\n s_nop 0\n s_nop 0\n.endm", "1: twice\n s_branch 1b", "1: s_branch 1b")
    )
    lines = [line.strip() for line in canonical(listing, GFX942).split("\n") if "ASM" not in line]
    assert lines == [".Lasm0:", "s_nop 0", "s_nop 0", "s_branch .Lasm0", ".Lasm1:", "s_branch .Lasm1"]


def test_a_file_with_any_name_is_found() -> None:
    """LLVM's error has the name's own bytes, the line table has escapes."""
    name = 'Größe "漢".py'
    llvm_ir = f'!1 = !DIFile(filename: "{quoted(name)}", directory: "{quoted("/Straße")}")'
    error = diagnosed(f"error: {name}:3:5: in function f: too large", llvm_ir, GFX942)
    assert error.at == SourceLocation(f"/Straße/{name}", 3, 4)
    assert unquoted(quoted(name)) == name
