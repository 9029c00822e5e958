"""fly-canonicalize: fold static layout algebra, merge equal fly operations, remove dead ones.

    func.func @f(%p: !fly.ptr<f32, global>) -> !fly.memref<f32, global, (4,4):(1,4)> {
      %all = fly.static : !fly.layout<16:1>
      %four = fly.static : !fly.layout<4:1>
      %l = fly.logical_divide(%all, %four) : (!fly.layout<16:1>, !fly.layout<4:1>) -> !fly.layout<(4,4):(1,4)>
      %v = fly.make_view(%p, %l)
        : (!fly.ptr<f32, global>, !fly.layout<(4,4):(1,4)>) -> !fly.memref<f32, global, (4,4):(1,4)>
      return %v : !fly.memref<f32, global, (4,4):(1,4)>
    }

becomes

    func.func @f(%p: !fly.ptr<f32, global>) -> !fly.memref<f32, global, (4,4):(1,4)> {
      %l = fly.static : !fly.layout<(4,4):(1,4)>
      %v = fly.make_view(%p, %l)
        : (!fly.ptr<f32, global>, !fly.layout<(4,4):(1,4)>) -> !fly.memref<f32, global, (4,4):(1,4)>
      return %v : !fly.memref<f32, global, (4,4):(1,4)>
    }

Upstream canonicalize and cse leave dynamic dialects alone, because their operations count as having side effects.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.leaves import is_static
from flydsl.dialect.types import ComposedLayoutType, CoordSwizzleType, IntTupleType, LayoutType, SwizzleType, fly_type
from flydsl.dialect.walk import blocks_inside
from flydsl.passes.rewriting import create_fly, defining_op, erase_dead, fly_name, is_pure, replace

name = "fly-canonicalize"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Canonicalize the fly operations of a module."""
    _visit(module, {})
    erase_dead(module)


def _visit(outer: ir.Operation, known: dict[Any, ir.Operation]) -> None:
    """Fold and merge in program order what is inside an operation. known: pure operations that dominate it."""
    for block in blocks_inside(outer):
        here = dict(known)
        for op in block:
            if fly_name(op):
                if not _fold(op):
                    _merge(op, here)
            elif len(op.regions):
                isolated = op.name in ("gpu.func", "func.func", "gpu.module")
                _visit(op, {} if isolated else here)


def _fold(op: ir.Operation) -> bool:
    """Replace an operation by its known result. True if the operation is gone."""
    operation = fly_name(op)
    if operation == "make_int_tuple" and "role" in op.attributes:
        del op.attributes["role"]  # a shape, stride or coordinate is an int tuple like others
    if operation in ("get_iter", "get_layout"):
        view = defining_op(op.operands[0])
        if view is not None and fly_name(view) == "make_view":
            replace(op, [view.operands[0 if operation == "get_iter" else 1]])
            return True
    if is_pure(op) and operation != "static" and len(op.results) == 1 and _is_static(fly_type(op.results[0].type)):
        if operation == "make_int_tuple":
            return False
        with ir.InsertionPoint(op):
            constant = create_fly("static", [], op.location, results=[fly_type(op.results[0].type)]).result
        replace(op, [constant])
        return True
    return False


def _is_static(kind: Any) -> bool:
    if isinstance(kind, LayoutType | ComposedLayoutType):
        return is_static(kind.layout)
    return isinstance(kind, SwizzleType | CoordSwizzleType) or (
        isinstance(kind, IntTupleType) and is_static(kind.value)
    )


def _merge(op: ir.Operation, known: dict[Any, ir.Operation]) -> None:
    if not is_pure(op):
        return
    attributes = tuple((key, op.attributes[key]) for key in sorted(op.attributes))
    signature = (op.name, tuple(op.operands), attributes, tuple(result.type for result in op.results))
    first = known.setdefault(signature, op)
    if first is not op:
        replace(op, list(first.results))
