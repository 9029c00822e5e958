"""Fences are of the optimizer only: around floats that become integers, and sums of bf16 that become f16.

LLVM 22.1's back end has no instruction for a fence of a number that it wants in a scalar register and computes in a
vector one. Behind the optimizer a known number alone needs the fence: it is in a scalar register.
"""

from __future__ import annotations

import re

_FENCE = re.compile(
    r"= (?:tail )?call (?:[a-z]+ )*?(?P<type>half|bfloat|float|double|<\d+ x \w+>) @llvm\.arithmetic\.fence\.\w+"
    r'\((?P=type) (?:noundef )?(?P<value>%(?:"[^"]*"|[-\w.$]+))\)'
)
_NAME = "@llvm.arithmetic.fence."


def has_fences(llvm_ir: str) -> bool:
    """True if there are fences in LLVM IR text."""
    return _NAME in llvm_ir


def open_fences(llvm_ir: str) -> str:
    """Optimized LLVM IR text without the fences of what LLVM does not know."""
    return _FENCE.sub(r"= freeze \g<type> \g<value>", llvm_ir)
