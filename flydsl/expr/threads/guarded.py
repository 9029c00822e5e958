"""Operations that run only in threads for which a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlir import ir

from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean
from flydsl.expr.tracing.emit import emit


@contextmanager
def only_where(condition: Boolean) -> Iterator[None]:
    """Put the operations of the `with` block under an `scf.if`."""
    branch = emit("scf.if", [condition.ir_value()], regions=2)
    with ir.InsertionPoint(ir.Block.create_at_start(branch.regions[0], [])):
        yield
        emit("scf.yield")


def chosen(condition: Boolean, value: Callable[[], Any], other: Any) -> Any:
    """The result of `value()`, computed only where a condition holds; elsewhere `other`, of the same type."""
    branch = emit("scf.if", [condition.ir_value()], [other.ir_value().type], regions=2)
    for region, given in zip(branch.regions, (value, lambda: other), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            emit("scf.yield", [given().ir_value()])
    made = branch.result
    return Vector(made, dtype=other.dtype) if isinstance(other, Vector) else other.dtype.of(made)
