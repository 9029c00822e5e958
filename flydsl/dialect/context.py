"""The one MLIR context, with the fly dialect registered in it.

A single context lets types, attributes and locations be cached for the life of the process. MLIR's own threads are
off: modules are small, and a forked or interrupted notebook must not meet a thread pool. `ir.Context` is not safe to
build IR in from two Python threads, so compilation holds `lock`.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache

from mlir import ir
from mlir.dialects import irdl

from flydsl.dialect.ops import OPS
from flydsl.dialect.types import TYPES

lock = threading.RLock()


@cache
def context() -> ir.Context:
    """The context; made at the first call."""
    # Where the bindings find the module `fly`. Mypy would take their own module for the whole of `mlir`.
    importlib.import_module("mlir._mlir_libs._mlir").globals.append_dialect_search_prefix("flydsl.dialect")
    ctx = ir.Context()
    ctx.enable_multithreading(False)
    with ctx, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(_irdl_text()))
    return ctx


def _irdl_text() -> str:
    """The dialect's definition. Operand and result types are checked by `ops.infer`, which can say what is wrong."""
    types = [f"irdl.type @{name} {{ %any = irdl.any irdl.parameters(value: %any) }}" for name in TYPES]
    operations = [_irdl_operation(spec.mlir_name(arity), arity) for spec in OPS.values() for arity in spec.arities]
    return "irdl.dialect @fly {\n" + "\n".join(types + operations) + "\n}"


def _irdl_operation(name: str, arity: int) -> str:
    """An operation with `arity` operands. Each has a constraint of its own: IRDL unifies what one constraint meets."""
    constraints = "".join(f"%{i} = irdl.any " for i in range(arity))
    operands = f"irdl.operands({', '.join(f'operand{i}: %{i}' for i in range(arity))})" if arity else ""
    return f"irdl.operation @{name} {{ {constraints}%r = irdl.any {operands} irdl.results(results: variadic %r) }}"
