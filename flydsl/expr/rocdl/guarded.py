"""Operations that only the threads run for which a condition holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlir import ir

from flydsl.expr.numeric import Boolean
from flydsl.expr.tracing.emit import emit


@contextmanager
def only_where(condition: Boolean) -> Iterator[None]:
    """Put the operations of the `with` block under an `scf.if`."""
    branch = emit("scf.if", [condition.ir_value()], regions=2)
    with ir.InsertionPoint(ir.Block.create_at_start(branch.regions[0], [])):
        yield
        emit("scf.yield")
