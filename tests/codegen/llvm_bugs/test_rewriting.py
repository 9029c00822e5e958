"""What is asked before the rewriters are loaded: they change nothing where it says so."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from flydsl.codegen import llvm_bugs

OPERATIONS = ("or", "or disjoint", "and", "udiv", "udiv exact", "urem", "sdiv")
TYPES = ("i1", "i8", "i32", "i33", "i64", "<2 x i8>", "<4 x i32>")
FLOATS = {"float": "0.000000e+00", "half": "0xH0000", "bfloat": "0xR0000", "double": "0.000000e+00"}
MINUS_ZEROS = {"half": "0xH8000", "bfloat": "0xR8000"}

COPY = "tail call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %x), !alias.scope !1"

PRODUCT = "call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %a)"


def instructions() -> list[str]:
    """One of each kind and type that a rewriter looks for, and their like."""
    found = [
        f"  %r = {operation} {kind} %x, %y"
        for operation, kind in itertools.product(
            ("or", "or disjoint", "and", "udiv", "udiv exact", "urem", "sdiv"), TYPES
        )
    ]
    for kind, zero in FLOATS.items():
        wide = f"<2 x {kind}>"
        found += [
            f"  %r = fsub {kind} {zero}, %x",
            f"  %n = fneg contract {kind} %x\n  %r = fadd contract {kind} %n, {zero}",
            f"  %n = fneg {wide} %x\n  %r = fadd {wide} %n, zeroinitializer",
            f"  %n = fneg {kind} %x\n  %r = tail call {kind} @llvm.fma.f32({kind} %n, {kind} %y, {kind} {zero})",
            f"  %r = fsub {kind} %x, %y",
            f"  %n = fneg {kind} %x\n  %r = fsub {kind} %n, {MINUS_ZEROS.get(kind, '-0.000000e+00')}",
            f"  %c = fcmp olt {kind} %x, {zero}\n  %r = select i1 %c, {kind} %x, {kind} {zero}",
        ]
    found += [
        "  %r = call float @llvm.arithmetic.fence.f32(float %x)",
        "  %r = insertelement <2 x half> <half 0xH8000, half poison>, half %x, i32 1",
        "define void @f() {\n  %p = fmul float %x, %y\n  %r = fptrunc float %p to half\n}",
    ]
    found.append(f"define void @f() {{\n  %p = {PRODUCT}\n  br i1 %c, label %x, label %y\n}}")
    for copies in ((COPY,), (COPY, COPY.partition(",")[0])):  # all of them marked, and one that is not
        lines = [f"  {copy}" for copy in copies] + ["  %r = load i32, ptr addrspace(3) %p, align 4"]
        found.append("\n".join([*lines, "}", "!1 = !{!2}", '!2 = !{!"flydsl.async_copies", !3}', '!3 = !{!"flydsl"}']))
    for kind, index in itertools.product(("i8", "i16", "i32"), ("i32 %i", "i64 %i", "i32 1")):
        found.append(f"  %r = insertelement <4 x {kind}> %x, {kind} -1, {index}")
    return found


def knows_nothing(asking: str) -> str:
    """LLVM's answer to what a function asks, which it does of what it would change."""
    raise Asked


class Asked(Exception):
    """A function has asked LLVM."""


def changes(bug: llvm_bugs.Bug, text: str) -> bool:
    try:
        return (bug.function(text, knows_nothing) if bug.asks_llvm else bug.function(text)) != text
    except Asked:
        return True


@pytest.mark.parametrize("bug", llvm_bugs.BUGS, ids=lambda bug: bug.rewrite)
def test_a_text_in_which_a_bug_does_not_occur_stays_as_it_is(bug: llvm_bugs.Bug) -> None:
    changed = [text for text in instructions() if changes(bug, text)]
    assert changed
    assert all(bug.occurs(text) for text in changed)
    assert not bug.occurs("  %r = or disjoint i32 %x, 1\n  %s = fadd float %y, %z")


def test_what_a_bug_needs_is_loaded_where_it_occurs() -> None:
    """In a process of its own, which has loaded nothing yet: `re` takes longer than LLVM for a small kernel."""
    program = (
        "import sys; from flydsl.codegen import llvm_bugs; loaded = set(sys.modules);"
        "assert llvm_bugs.work_around('  %s = fadd float %y, %z', 2, str) == '  %s = fadd float %y, %z';"
        "assert set(sys.modules) == loaded;"
        "assert 'numerator' in llvm_bugs.work_around('  %q = udiv i32 %x, %y', 0, str);"
        "assert 'flydsl.codegen.llvm_bugs.numerators' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
