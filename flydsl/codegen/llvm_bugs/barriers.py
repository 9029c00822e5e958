"""Keep LLVM's back end from moving reads behind barriers: an empty inline assembly precedes each barrier.

LLVM 22.1's MachineSink moves a load into the block that uses its value, past barriers and fences: it stops only at
instructions that may store, and barriers merely have side effects (llvm-project issue 181708). To the passes on machine
code, an inline assembly that clobbers memory may store. This one has no text, so it costs no instruction. To the passes
before them it touches no memory that a program can address (`inaccessiblemem`), so uniform loads can still become
scalar ones. It is convergent, as barriers are, so that it stays beside its barrier.
"""

from __future__ import annotations

import re

GUARD = (
    'call void asm sideeffect "", "~{memory}"() convergent nocallback nounwind willreturn '
    "memory(inaccessiblemem: readwrite)"
)
# What the assembly printer writes for the guard.
_PRINTED = re.compile(r"^[ \t]*;+#ASMSTART\n[ \t]*;+#ASMEND\n", re.M)

# Strings and comments, which may say anything; else a barrier of any kind, or a fence.
_BARRIER = re.compile(
    r"""
    "[^"]*" | ;.* |
    (?P<barrier>
        (?: %[\w.$-]+ \s* = \s* )? (?: (?:tail|notail) \s+ )? \b call \b [^@";]*
            @llvm\.amdgcn\.(?!sched\.) [\w.]* barrier [\w.]* \( |
        (?<! [\w.$%@-] ) fence \s+ (?: syncscope | acquire | release | acq_rel | seq_cst ) \b
    )
    """,
    re.X,
)


def guard_barriers(llvm_ir: str) -> str:
    """LLVM IR text with the guard before each barrier and fence, on the same line: line numbers do not change."""
    lines = llvm_ir.split("\n")
    return "\n".join(
        _BARRIER.sub(_with_guard, line) if "barrier" in line or "fence" in line else line for line in lines
    )


def remove_guards(listing: str) -> str:
    """Assembly text without the two comments that each guard leaves."""
    return _PRINTED.sub("", listing)


def _with_guard(found: re.Match[str]) -> str:
    return f"{GUARD} {found[0]}" if found["barrier"] else found[0]
