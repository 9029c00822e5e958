"""Shifts by any amount: as the hardware does, by its low bits.

Upstream, a shift by the width or more is poison, from which LLVM may conclude that the code around it never runs. The
machine's instructions look at the low 5 bits of the amount (6 of 64-bit ones), so LLVM drops the mask again there.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from flydsl.dialect.elements import scalar_of
from flydsl.passes.rewriting import create

_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")


def expand(ops: Iterable[ir.Operation]) -> bool:
    """Mask the amount of every shift whose amount is not a constant. Return whether there is one."""
    shifts = [op for op in ops if op.name in _SHIFTS and not _is_constant(op.operands[1])]
    for op in shifts:
        _mask(op)
    return bool(shifts)


def _is_constant(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name == "arith.constant"


def _mask(op: ir.Operation) -> None:
    amount = op.operands[1]
    kind = amount.type
    element = scalar_of(kind)
    width = element.width if isinstance(element, ir.IntegerType) else 64  # an index has 64 bits here
    number = ir.IntegerAttr.get(element, width - 1)
    value = ir.DenseElementsAttr.get_splat(kind, number) if isinstance(kind, ir.VectorType) else number
    with ir.InsertionPoint(op):
        mask = create("arith.constant", [], [kind], op.location, {"value": value}).result
        op.operands[1] = create("arith.andi", [amount, mask], [kind], op.location).result
