"""`a if condition else b`: only one side is evaluated, on the device too.

If both sides are cheap arithmetic, both are computed and one is selected, without a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.dialect.location import mlir_location
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.condition import as_condition
from flydsl.expr.control_flow.containers import Reachable
from flydsl.expr.control_flow.if_statement import scf_if
from flydsl.expr.control_flow.joining import Join, Mismatch
from flydsl.expr.control_flow.region import TracedRegion, regions_closed
from flydsl.expr.control_flow.tree import leaf_like, leaf_value
from flydsl.expr.numeric import Boolean
from flydsl.expr.tracing.executing import executing
from flydsl.expr.tracing.operands import FlyValue

Thunk = Callable[[], Any]

# A side with at most this many operations costs less than a branch.
_FEW = 8


def conditional_expression(condition: Any, then: Thunk, otherwise: Thunk) -> Any:
    """`then() if condition else otherwise()`."""
    decided = as_condition(condition)
    if not isinstance(decided, Boolean):
        return then() if decided else otherwise()
    if (executor := executing.get()) is not None:
        return executor.choose(decided, then, otherwise)
    at = user_location()
    objects = Reachable.from_here()
    sides = traced(then, objects, at), traced(otherwise, objects, at)
    return chosen(decided, *sides, at)


def traced(thunk: Thunk, objects: Reachable, at: SourceLocation | None) -> tuple[TracedRegion, Any]:
    """Trace a function into a region; return the region and the function's value."""
    region = TracedRegion(at, "expression", objects.iterators)
    with regions_closed():
        region.open()
        value = thunk()
        region.close()
    for key in objects.changed(objects.contents()):
        raise TraceError(
            f"{objects.paths[key]} is changed inside an expression that is evaluated on a runtime condition",
            at=at,
            hint="write an `if` statement",
        )
    return region, value


def chosen(
    condition: Boolean, then: tuple[TracedRegion, Any], otherwise: tuple[TracedRegion, Any], at: SourceLocation | None
) -> Any:
    """The value of one of two traced regions. Raises TraceError if their types differ."""
    join = Join()
    try:
        rebuild = join.of(then[1], otherwise[1])
    except Mismatch as mismatch:
        for region, _ in (then, otherwise):
            region.discard()
        raise TraceError(
            f"the value is {mismatch.a} where the condition holds and {mismatch.b} where it does not",
            at=at,
            hint="convert one to the other's type: fx.Float32(...), for example",
        ) from None
    regions = then[0], otherwise[0]
    if all(map(_is_cheap, regions)) and not any(isinstance(leaf, FlyValue) for leaf, _ in join.pairs):
        for region in regions:
            region.inline()
        return rebuild([_select(condition, *pair, at) for pair in join.pairs])
    return rebuild(scf_if(condition, *regions, join, at))


def _select(condition: Boolean, then: Any, otherwise: Any, at: SourceLocation | None) -> Any:
    operands = [leaf_value(leaf) for leaf in (condition, then, otherwise)]
    op = ir.Operation.create("arith.select", [operands[1].type], operands, loc=mlir_location(at))
    return leaf_like(then, op.result)


def _is_cheap(region: TracedRegion) -> bool:
    """True if a region can run on any condition, and is not worth a branch."""
    return len(region.operations) <= _FEW and all(map(_is_plain_arithmetic, region.operations))


def _is_plain_arithmetic(op: ir.Operation) -> bool:
    """True for arithmetic that always has a result. Integer division does not: division by zero is undefined."""
    return op.name.startswith("arith.") and not any(word in op.name for word in ("div", "rem"))
