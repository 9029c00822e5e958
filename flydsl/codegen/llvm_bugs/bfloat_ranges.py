"""Keep arithmetic on bf16 numbers that becomes f16 in f32: a fence hides it from LLVM's optimizer.

LLVM 22.1's InstCombine rounds the operands to f16 first, as their mantissas fit there. Their exponents do not: 1e20 is
infinite, and 1e-20 is 0. `float_fences` opens the fence after the optimizer.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import NAME

_ROUNDING = re.compile(
    r"^(?P<before>.* = fptrunc (?:[a-z]+ )*)(?P<type>float|double|<(?P<count>\d+) x (?P<element>float|double)>) "
    rf"(?P<value>{NAME}) to (?P<after>(?:<\d+ x )?half\b.*)$",
    re.M,
)
_WIDTHS = {"float": "f32", "double": "f64"}


def fence_ranges(llvm_ir: str) -> str:
    """LLVM IR text, with a fence before each rounding to f16 if there are bf16 numbers too."""
    if " to float" not in llvm_ir or "fpext" not in llvm_ir or "bfloat" not in llvm_ir:
        return llvm_ir
    numbers = iter(range(len(llvm_ir)))
    return _ROUNDING.sub(lambda match: _fenced(match, next(numbers)), llvm_ir)


def _fenced(rounding: re.Match[str], number: int) -> str:
    kind, name = rounding["type"], f"%flydsl.fence.{number}"
    suffix = f"v{rounding['count']}{_WIDTHS[rounding['element']]}" if rounding["count"] else _WIDTHS[kind]
    fence = f"  {name} = call {kind} @llvm.arithmetic.fence.{suffix}({kind} {rounding['value']})"
    return f"{fence}\n{rounding['before']}{kind} {name} to {rounding['after']}"
