"""Create operations while a kernel or launcher is traced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mlir import ir

from flydsl.dialect import ops
from flydsl.dialect.location import mlir_location, trace_error
from flydsl.errors import FlyError, TraceError
from flydsl.errors.places import SourceLocation, user_location
from flydsl.expr.numbers.fastmath_flags import flags_of_block
from flydsl.expr.tracing.executing import executed
from flydsl.expr.tracing.trace_limit import count_operation
from flydsl.expr.tracing.undefined import refuse_undefined


def is_traced() -> bool:
    """True while a kernel or launcher is being traced, so that operations have a place."""
    try:
        return ir.InsertionPoint.current is not None
    except ValueError:
        return False


def gpu_module_body() -> ir.Block | None:
    """The block of the `gpu.module` around the insertion point, or None outside of one."""
    op = ir.InsertionPoint.current.block.owner if is_traced() else None
    while op is not None and op.operation.name != "gpu.module":
        op = op.parent
    return None if op is None else op.regions[0].blocks[0]


def require_trace(what: str) -> None:
    """Raise TraceError unless a kernel or launcher is being traced."""
    if not is_traced():
        raise trace_error(
            f"{what} outside a kernel",
            "runtime values exist only inside functions decorated with @flyc.kernel or @flyc.jit",
        )


def emit(
    name: str,
    operands: Sequence[ir.Value] = (),
    results: Sequence[ir.Type] = (),
    attributes: Mapping[str, ir.Attribute] | None = None,
    regions: int = 0,
) -> ir.Operation:
    """Create an upstream MLIR operation at the insertion point, with the user's line as its location."""
    require_trace(name)
    _require_registered(name)
    count_operation()
    try:
        op = ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes={**flags_of_block(name), **(attributes or {})},
            regions=regions,
            loc=mlir_location(user_location()),
        )
    except IndexError:
        raise after_terminator(name) from None
    except TypeError:
        for operand in operands:
            refuse_undefined(operand)
        raise
    return executed(op)


def after_terminator(name: str) -> TraceError:
    """The error for an operation, built by name, that follows the terminator of its block."""
    return trace_error(
        f"{name} after an operation that ends its block",
        "scf.YieldOp and the like come last in a block; a kernel's own end is made for it",
    )


_registered: set[str] = set()


def _require_registered(name: str) -> None:
    """Raise TraceError for an operation that MLIR does not have: its translation to LLVM IR would end the process."""
    if name in _registered:
        return
    if not ir.Context.current.is_registered_operation(name):
        raise trace_error(f"this version of MLIR has no operation {name}")
    _registered.add(name)


def emit_fly(
    name: str,
    operands: Sequence[ir.Value] = (),
    *,
    results: Sequence[Any] | None = None,
    attributes: ops.Attributes | None = None,
    at: SourceLocation | None = None,
    checked: bool = True,
) -> ir.Operation:
    """Create `fly.name` at the insertion point; see `flydsl.dialect.ops.create`. checked: `results` must fit."""
    require_trace(f"fly.{name}")
    count_operation()
    try:
        op = ops.create(name, operands, results=results, attributes=attributes, at=at)
    except IndexError:
        raise after_terminator(f"fly.{name}") from None
    except TypeError:
        for operand in operands:
            refuse_undefined(operand)
        raise
    if results is not None and checked:
        try:
            ops.check(op)
        except FlyError as error:
            raise error.located(user_location()) from None
    return executed(op)


def target_name() -> str | None:
    """The architecture that the code at the insertion point is compiled for, in a kernel or a launcher, or None."""
    try:
        op = ir.InsertionPoint.current.block.owner
    except ValueError:
        return None
    around = op
    while op is not None:
        if op.operation.name == "gpu.module":
            return chip_of(op)
        around, op = op, op.parent
    # A launcher stands beside the module of its kernels.
    beside = around.operation.regions[0].blocks[0] if around.operation.name == "builtin.module" else ()
    return next((chip_of(op) for op in beside if op.operation.name == "gpu.module"), None)


def chip_of(gpu_module: ir.OpView) -> str | None:
    """The architecture that a `gpu.module` is for, if it names one."""
    targets = str(gpu_module.attributes["targets"]) if "targets" in gpu_module.attributes else ""
    found = re.search(r'chip = "(\w+)"', targets)
    return found[1] if found else None
