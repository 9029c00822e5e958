"""The fly dialect as MLIR reads it: IRDL text from the tables of types and operations.

The context is made with the types. An operation is defined when the first one of it is created, and all are before a
text is read: MLIR takes 10 ms for the whole dialect, and a kernel has a few of its operations.
"""

from __future__ import annotations

from collections.abc import Iterable

from flydsl.dialect.context import define, extend
from flydsl.dialect.types import TYPES
from flydsl.system.interrupts import interrupt_afterwards

_known: set[str] = set()


@interrupt_afterwards()  # MLIR ends the process when it is told of an operation again
def define_operations(operations: Iterable[tuple[str, int, int | None]]) -> None:
    """Define those operations that MLIR does not know yet: names, numbers of operands and of results.

    The number of results is None for any number of one type. The caller must hold the context's lock.
    """
    new = {name: _irdl_operation(name, arity, count) for name, arity, count in operations if name not in _known}
    if new:
        extend("\n".join(["irdl.dialect @fly {", *new.values(), "}"]))
        _known.update(new)


def _irdl_types() -> str:
    types = [f"irdl.type @{name} {{ %any = irdl.any irdl.parameters(value: %any) }}" for name in TYPES]
    return "\n".join(["irdl.dialect @fly {", *types, "}"])


def _irdl_operation(name: str, arity: int, count: int | None) -> str:
    """An operation with `arity` operands and `count` results. `ops.infer` checks types: its errors say what is wrong.

    Each has its own constraint: IRDL unifies the types that share one.
    """
    if count is not None:
        kinds = "".join(f"%r{i} = irdl.any " for i in range(count))
        each = f"irdl.results({', '.join(f'result{i}: %r{i}' for i in range(count))})" if count else ""
        return f"irdl.operation @{name} {{ %0 = irdl.any {kinds}irdl.operands(operand0: %0) {each} }}"
    constraints = "".join(f"%{i} = irdl.any " for i in range(arity))
    operands = f"irdl.operands({', '.join(f'operand{i}: %{i}' for i in range(arity))})" if arity else ""
    return f"irdl.operation @{name} {{ {constraints}%r = irdl.any {operands} irdl.results(results: variadic %r) }}"


define(_irdl_types)
