"""Hide numerators of unsigned divisions from LLVM's back end where nothing is optimized.

LLVM 22.1's back end divides numbers of up to 24 bits as floats. Of an unsigned number whose highest bits are equal,
such as 0xffffffff, it thinks that it has few bits (`LowerDIVREM24`). From opt level 1 on divisions are expanded before.
The numerator comes out of an empty inline assembly, which LLVM does not look into.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import opaque, split_operands

_DIVISION = re.compile(
    r"(?m)^(?P<start>\s*%\S+ = u(?:div|rem) (?:exact )?)(?P<type>i32|i64|<\d+ x i(?:32|64)>) (?P<operands>.*)$"
)


def hide_numerators(llvm_ir: str) -> str:
    """LLVM IR text, as LLVM prints it, in which nothing is known of what is divided."""

    def with_hidden(division: re.Match[str]) -> str:
        kind, name = division["type"], f'%"numerator {division.start()}"'
        numerator, *rest = split_operands(division["operands"])
        return f"{opaque(name, kind, numerator)}\n{division['start']}{kind} {', '.join([name, *rest])}"

    return _DIVISION.sub(with_hidden, llvm_ir)
