from __future__ import annotations

import re
from itertools import pairwise

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import compile_llvm_ir
from flydsl.codegen.isa import readable_isa


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_no_debug_directives(arch: Arch, loop_with_lines: str) -> None:
    isa = compile_llvm_ir(loop_with_lines, arch).isa
    assert not re.search(r"^\s*\.(loc|file|cfi_\w+)\b|\.debug|\.Ltmp|/home", isa, re.M)
    assert ".amdhsa_kernel row_sum" in isa
    assert ".amdgpu_metadata" in isa


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_each_source_line_is_named_where_it_starts(arch: Arch, loop_with_lines: str) -> None:
    isa = compile_llvm_ir(loop_with_lines, arch).isa
    places = re.findall(r"^\t[a-z].*; row_sum\.py:(\d+)$", isa, re.M)
    assert {"6", "7", "8", "9", "11", "12", "13"} <= set(places)
    assert all(a != b for a, b in pairwise(places))


def test_comments_follow_the_line_table(loop_with_lines: str) -> None:
    """Read both texts from the top: every instruction is on the line last named before it."""

    def walk(text: str, named: str) -> list[tuple[str, str]]:
        line, instructions = "", []
        for row in text.splitlines():
            if (found := re.search(named, row)) and found[1] != "0":
                line = found[1]
            if re.match(r"\t[a-z]", row):
                instructions.append((row.split(";")[0].strip(), line))
        return instructions

    code = compile_llvm_ir(loop_with_lines, get_arch("gfx942"))
    assert walk(code.isa, r"; row_sum\.py:(\d+)$") == walk(code.listing, r"^\s*\.loc\s+\d+ (\d+)")


def test_a_notebook_cell_is_called_so() -> None:
    listing = '\t.file\t1 "/tmp/ipykernel_77" "123456.py"\n\t.loc\t1 4 2\n\ts_endpgm\n'
    assert readable_isa(listing).split() == ["s_endpgm", ";", "cell:4"]


def test_labels_that_code_refers_to_stay() -> None:
    listing = "\ts_getpc_b64 s[4:5]\n.Ltmp0:\n.Ltmp1:\n\ts_add_u32 s4, s4, target-.Ltmp0\n"
    assert ".Ltmp0:" in readable_isa(listing)
    assert ".Ltmp1" not in readable_isa(listing)


def test_without_line_tables_nothing_is_lost(vector_add: str) -> None:
    code = compile_llvm_ir(vector_add, get_arch("gfx942"))
    assert code.isa == code.listing
