"""Replace fences of floats, which are there for LLVM's optimizer, by freezes, which its back end can select.

The lowering puts them around floats that become integers, and `bfloat_ranges` around sums of bf16 that become f16.
LLVM 22.1's back end has no instruction for a fence of a number that it wants in a scalar register and computes in a
vector one. Behind the optimizer a known number alone needs the fence: it is in a scalar register.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import NAME

_FENCE = re.compile(
    r"= (?:tail )?call (?:[a-z]+ )*?(?P<type>half|bfloat|float|double|<\d+ x \w+>) @llvm\.arithmetic\.fence\.\w+"
    rf"\((?P=type) (?:noundef )?(?P<value>{NAME})\)"
)


def open_fences(llvm_ir: str) -> str:
    """Optimized LLVM IR text without the fences of what LLVM does not know."""
    return _FENCE.sub(r"= freeze \g<type> \g<value>", llvm_ir)
