"""Detect writes to a vector at an index that is only known when the kernel runs.

LLVM 22.1 turns such a write into compares of the index. Where the index has a single bit, as in `i & 1`, one may be
"is 0" and another "is not 0", and `SIInstrInfo::optimizeCompareInstr`, part of the peephole optimizer, makes both
"is 0": a write is lost, or goes to two elements. Switching the optimizer off costs a scalar compare or two.
"""

from __future__ import annotations

import re

# Register memory, of which LLVM makes vectors; and vectors that are indexed at run time as they are.
_INDEXED = re.compile(r"= alloca |= insertelement [^\n]*, i\d+ %")

WITHOUT_PEEPHOLE_OPTIMIZER = "-disable-peephole"


def may_be_lost(llvm_ir: str) -> bool:
    """True if LLVM IR text, as it is or optimized, writes to a vector at an index that is not a constant."""
    return _INDEXED.search(llvm_ir) is not None
