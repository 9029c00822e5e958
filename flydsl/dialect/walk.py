"""The operations of a module, by MLIR's own walk.

It is several times quicker than Python's iterators, which also import the classes of every dialect that they meet:
20 ms for `rocdl`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from mlir import ir


def operations(root: ir.Operation) -> list[ir.Operation]:
    """Every operation below `root` in program order; a list, so that the program can be changed on the way."""
    found: list[ir.Operation] = []
    append, go_on = found.append, ir.WalkResult.ADVANCE  # looked up once: modules have thousands of operations

    def visit(op: ir.Operation) -> ir.WalkResult:
        append(op)
        return go_on

    _walk(root, visit)
    return found[1:]


def blocks_inside(root: ir.Operation) -> list[list[ir.Operation]]:
    """The operations of each block of an operation, without those further inside; blocks that have any."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE if len(found) == 1 else ir.WalkResult.SKIP

    _walk(root, visit)
    return [list(block) for _, block in groupby(found[1:], lambda op: op.block)]


def _walk(root: ir.Operation, visit: Callable[[ir.Operation], ir.WalkResult]) -> None:
    try:
        root.walk(visit, ir.WalkOrder.PRE_ORDER)
    except RuntimeError as error:  # which MLIR makes of what a callback raises; these raise nothing of their own
        if KeyboardInterrupt.__name__ in str(error):
            raise KeyboardInterrupt from None
        raise
