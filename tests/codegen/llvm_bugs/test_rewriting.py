"""What is asked before the rewriters are loaded: they change nothing where it says so."""

from __future__ import annotations

import itertools

from flydsl.codegen import llvm_bugs

OPERATIONS = ("or", "or disjoint", "and", "udiv", "udiv exact", "urem", "sdiv")
TYPES = ("i1", "i8", "i32", "i33", "i64", "<2 x i8>", "<4 x i32>")
FLOATS = {"float": "0.000000e+00", "half": "0xH0000", "bfloat": "0xR0000", "double": "0.000000e+00"}
MINUS_ZEROS = {"half": "0xH8000", "bfloat": "0xR8000"}


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
    for kind, index in itertools.product(("i8", "i16", "i32"), ("i32 %i", "i64 %i", "i32 1")):
        found.append(f"  %r = insertelement <4 x {kind}> %x, {kind} -1, {index}")
    return found


def test_nothing_is_changed_where_the_rewriters_are_not_loaded() -> None:
    changed = []

    def rewritten(text: str, opt_level: int) -> bool:
        asked: list[str] = []  # of what LLVM may know, which would be changed

        def knows_nothing(asking: str) -> str:
            asked.append(asking)
            return ""

        result = llvm_bugs.work_around(text, opt_level, knows_nothing, halves=False)
        return bool(asked) or result != text

    for text, opt_level in itertools.product(instructions(), (0, 2)):
        if rewritten(text, opt_level):
            changed.append(text)
            assert llvm_bugs.may_be_needed(text, opt_level), text
    assert len(changed) > 20
    assert not llvm_bugs.may_be_needed("  %r = or disjoint i32 %x, 1\n  %s = fadd float %y, %z", 2)
