"""Floats that are rounded up, down or toward zero to a narrower type: the nearest one, or its neighbour.

The machine rounds to the nearest, ties to even. Where this goes in the wrong direction, the neighbour on the other side
is the right one: its bits, as an integer, are one more or one less. So what overflows becomes the largest number unless
it is rounded away from zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue

_ATTRIBUTE = "roundingmode"
_DOWNWARD, _UPWARD, _TOWARD_ZERO = 1, 2, 3


def expand(ops: Iterable[ir.Operation]) -> bool:
    """Expand every `arith.truncf` that says in which direction it rounds. Return whether there is one."""
    directed = [op for op in ops if op.name == "arith.truncf" and _ATTRIBUTE in op.attributes]
    for op in directed:
        mode = ir.IntegerAttr(op.attributes[_ATTRIBUTE]).value
        with ir.InsertionPoint(op):
            op.result.replace_all_uses_with(_rounded(op, mode))
        op.erase()
    return bool(directed)


def _rounded(op: ir.Operation, mode: int) -> ir.Value:
    given = ElementwiseValue(op.operands[0], op.location)
    nearest = given.op("arith.truncf", kind=op.result.type)
    if mode not in (_DOWNWARD, _UPWARD, _TOWARD_ZERO):
        return nearest.value
    back, bits = nearest.op("arith.extf", kind=given.value.type), nearest.bits()
    if mode == _TOWARD_ZERO:
        is_wrong, neighbour = back.abs() > given.abs(), bits - 1
    else:
        is_wrong = back < given if mode == _UPWARD else back > given
        # The magnitude grows upward of positive numbers, and downward of negative ones.
        steps = (-1, 1) if mode == _UPWARD else (1, -1)
        neighbour = (bits < 0).choose(bits + steps[0], bits + steps[1])
    return is_wrong.choose(neighbour, bits).op("arith.bitcast", kind=op.result.type).value
