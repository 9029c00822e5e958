"""Keep the sign of zero where the smaller or larger of two floats is selected.

LLVM 22.1 makes a minimum of `x < 0.0 ? x : 0.0`, which is 0.0 where x is -0.0 (`matchDecomposedSelectPattern`, which
looks at signs for `<=` only). The inverse comparison, with the operands of the selection swapped, stays a selection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flydsl.codegen.llvm_bugs.ir_text import NAME, functions, has_any_sign, split_operands

_INVERSE = {"olt": "uge", "ogt": "ule", "ult": "oge", "ugt": "ole"}
_COMPARISON = re.compile(
    rf"\s*(?P<name>{NAME}) = fcmp (?P<flags>(?:[a-z]+ )*?)(?P<predicate>{'|'.join(_INVERSE)}) "
    r"(?P<type>(?:<[^>]*>|\w+)) (?P<operands>.*)"
)
_SELECTION = re.compile(rf"(?P<start>\s*{NAME} = select (?P<flags>(?:[a-z]+ )*?)(?:i1|<\d+ x i1>) )(?P<operands>.*)")
_ZERO = re.compile(r"(?<![-\w.])(?P<minus>-?)0\.000000e\+00\b|0x[HR](?P<bits>[08])000\b|(?P<all>zeroinitializer)")


def keep_signs_of_selections(llvm_ir: str) -> str:
    """Optimized LLVM IR text, as LLVM prints it, in which no selection is a minimum or maximum of another sign."""
    return "".join(map(_function_kept, functions(llvm_ir)))


def _function_kept(text: str) -> str:
    lines = text.split("\n")
    found = (_COMPARISON.match(line) for line in lines if " = fcmp " in line)
    comparisons = {comparison["name"]: comparison for comparison in found if comparison}
    if not comparisons:
        return text
    return "\n".join(_kept(line, i, comparisons) if " = select " in line else line for i, line in enumerate(lines))


def _kept(line: str, number: int, comparisons: Mapping[str, re.Match[str]]) -> str:
    """A selection, after a comparison of its own if need be."""
    selection = _SELECTION.match(line)
    if selection is None:
        return line
    condition, first, second, *rest = split_operands(selection["operands"])
    known = comparisons.get(condition)
    if known is None or has_any_sign(selection["flags"] + known["flags"]):
        return line
    left, right = split_operands(known["operands"])[:2]
    chosen, other = (operand.removeprefix(known["type"]).strip() for operand in (first, second))
    if {chosen, other} != {left, right} or not _may_differ(known["predicate"], chosen == left, chosen, other):
        return line
    name = f'%"inverse of line {number}"'
    inverse = f"  {name} = fcmp {known['flags']}{_INVERSE[known['predicate']]} {known['type']} {left}, {right}"
    return f"{inverse}\n{selection['start']}{', '.join([name, second, first, *rest])}"


def _may_differ(predicate: str, is_left: bool, chosen: str, other: str) -> bool:
    """True if a minimum or maximum may have another sign: of equal numbers, the selection takes the second.

    The hardware's minimum of two zeros is -0.0, if one of them is, and its maximum 0.0.
    """
    is_maximum = (predicate[1:] == "gt") == is_left
    wrong_second, wrong_first = ("-", "+") if is_maximum else ("+", "-")
    if other.startswith("%"):
        return chosen.startswith("%") or wrong_first in _signs(chosen)
    return wrong_second in _signs(other)


def _signs(constant: str) -> set[str]:
    """The signs of the zeros in a constant: "+", "-", or both."""
    return {"-" if zero["minus"] or zero["bits"] == "8" else "+" for zero in _ZERO.finditer(constant)}
