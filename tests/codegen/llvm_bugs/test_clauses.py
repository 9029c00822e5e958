"""Each instruction of a hard clause has its own source line."""

from __future__ import annotations

import inspect

import pytest

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.codegen.llvm_bugs.clauses import restore_lines
from flydsl.hsaco.listing import read_listing
from tests.launchers import launcher_of


@flyc.kernel
def sums_kernel(A: fx.Tensor, B: fx.Tensor) -> None:
    t = fx.thread_idx.x
    a = A[t]
    b = B[t]
    A[t + 64] = a + b
    B[t + 64] = a - b


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201", "gfx1250"])
def test_accesses_in_a_clause_have_their_own_lines(arch: str) -> None:
    spec = flyc.TensorSpec(fx.Float32)
    code = flyc.compile(launcher_of(sums_kernel, grid=1, block=64), spec, spec, arch=arch).code
    assert "s_clause" in code.listing
    lines, first = inspect.getsourcelines(sums_kernel.function)
    accesses = [i for i in read_listing(code.listing).instructions if i.text.startswith("global_")]
    written = [lines[i.location.line - first].strip() for i in accesses if i.location]
    assert sorted(written) == ["A[t + 64] = a + b", "B[t + 64] = a - b", "a = A[t]", "b = B[t]"]


def test_a_listing_of_other_code_says_nothing() -> None:
    listing = "\t.loc\t1 2 0\n\ts_clause 0x1\n\tglobal_load_b32 v0, v1, off\n\tglobal_load_b32 v2, v1, off\n"
    other = "\t.loc\t1 2 0\n\tglobal_load_b32 v0, v1, off\n\t.loc\t1 3 0\n\tglobal_load_b32 v{}, v1, off\n"
    assert restore_lines(listing, other.format(3)) == listing
    assert restore_lines(listing, other.format(2)).split("\n")[3] == "\t.loc\t1 3 0"


def test_a_file_has_its_number_before_a_line_of_it() -> None:
    loads = "\t.loc\t1 2 0\n\tglobal_load_b32 v0, v1, off\n{}\tglobal_load_b32 v2, v1, off\n"
    listing = '\ts_clause 0x1\n\tglobal_load_b32 v0, v1, off\n\t.file\t1 "a.py"\n\t.loc\t1 3 0\n' + (
        "\tglobal_load_b32 v2, v1, off\n"
    )
    mended = restore_lines(listing, '\t.file\t1 "a.py"\n' + loads.format("\t.loc\t1 3 0\n"))
    assert mended.index(".file") < mended.index(".loc\t1 2 0") < mended.index(".loc\t1 3 0")
    assert mended.count(".file") == 1
    assert restore_lines(listing, '\t.file\t1 "b.py"\n' + loads.format("")) == listing


def test_the_line_of_inline_assembly_stands_before_it() -> None:
    assembly = "\t;;#ASMSTART\n\ts_sleep 1\n\t;;#ASMEND\n"
    loads = "\tglobal_load_b32 v0, v1, off\n{}\tglobal_load_b32 v2, v1, off\n"
    lines = "\t.loc\t1 2 0\n", "\t.loc\t1 3 0\n", "\t.loc\t1 4 0\n"
    listing = lines[0] + assembly + lines[1] + "\ts_clause 0x1\n" + loads.format("")
    assert restore_lines(listing, lines[0] + assembly + lines[1] + loads.format(lines[2])).startswith(
        lines[0] + assembly + lines[1]
    )
