"""Keep -0.0 beside another f16: it comes out of an empty inline assembly, which LLVM does not look into.

LLVM 22.1's back end treats the constant -0.0 in the upper half of a register as 0. Vectors of constants only are not
affected.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import opaque

_NEGATIVE_ZERO = "half 0xH8000"
# Stores next to each other become one of a vector; a select or a store of a vector may be split and put together again.
_OPERATION = re.compile(r"\s*(?:%\S+ = (?:insertelement|shufflevector|select)|store) ")
_CONSTANT = re.compile(r"<(?P<count>\d+) x half> (?:<(?P<elements>half [^<>]*)>|splat \((?P<all>half 0xH8000)\))")


def hide_negative_zeros(llvm_ir: str) -> str:
    """LLVM IR text, as LLVM prints it, in which no f16 vector is built from values and the constant -0.0."""
    lines = enumerate(llvm_ir.split("\n"))
    return "\n".join(
        _with_opaque_zeros(line, i) if _NEGATIVE_ZERO in line and _OPERATION.match(line) else line for i, line in lines
    )


def _with_opaque_zeros(line: str, number: int) -> str:
    """One operation, preceded by those that make its constants. Their names have spaces, unlike LLVM's own."""
    zero = f'%"zero of line {number}"'
    lines = [opaque(zero, "half", "0xH8000", scalar=True)]

    def named(constant: re.Match[str]) -> str:
        """The constant vector with its zeros inserted one after the other."""
        kind = f"<{constant['count']} x half>"
        elements = [constant["all"]] * int(constant["count"]) if constant["all"] else constant["elements"].split(", ")
        known = ", ".join("half poison" if element == _NEGATIVE_ZERO else element for element in elements)
        value = f"<{known}>"
        for i, element in enumerate(elements):
            if element == _NEGATIVE_ZERO:
                name = f'%"constant {len(lines)} of line {number}"'
                lines.append(f"{name} = insertelement {kind} {value}, half {zero}, i32 {i}")
                value = name
        return f"{kind} {value}"

    changed = _CONSTANT.sub(named, line).replace(_NEGATIVE_ZERO, f"half {zero}")
    return "\n".join((*lines, changed))
