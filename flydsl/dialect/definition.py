"""The fly dialect as MLIR reads it: IRDL text from the tables of types and operations."""

from __future__ import annotations

from flydsl.dialect.context import define
from flydsl.dialect.ops import OPS
from flydsl.dialect.types import TYPES


def irdl_text() -> str:
    """The dialect's definition. `ops.infer` checks operand and result types, because its errors say what is wrong."""
    types = [f"irdl.type @{name} {{ %any = irdl.any irdl.parameters(value: %any) }}" for name in TYPES]
    operations = [
        _irdl_operation(spec.mlir_name(arity, count or 0), arity, count)
        for spec in OPS.values()
        for arity in spec.arities
        for count in spec.results or (None,)
    ]
    return "irdl.dialect @fly {\n" + "\n".join(types + operations) + "\n}"


def _irdl_operation(name: str, arity: int, count: int | None) -> str:
    """An operation with `arity` operands and `count` results, None for any number of one type.

    Each has its own constraint: IRDL unifies the types that share one.
    """
    if count is not None:
        kinds = "".join(f"%r{i} = irdl.any " for i in range(count))
        each = f"irdl.results({', '.join(f'result{i}: %r{i}' for i in range(count))})" if count else ""
        return f"irdl.operation @{name} {{ %0 = irdl.any {kinds}irdl.operands(operand0: %0) {each} }}"
    constraints = "".join(f"%{i} = irdl.any " for i in range(arity))
    operands = f"irdl.operands({', '.join(f'operand{i}: %{i}' for i in range(arity))})" if arity else ""
    return f"irdl.operation @{name} {{ {constraints}%r = irdl.any {operands} irdl.results(results: variadic %r) }}"


define(irdl_text)
