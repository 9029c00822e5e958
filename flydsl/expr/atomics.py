"""Atomic updates at a pointer that return what memory held: tickets, counters, flags.

For tensors, and where the old value is not needed, see the copy atoms (`fx.UniversalAtomicAdd`, ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.location import user_location
from flydsl.dialect.types import PointerType, fly_type
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit
from flydsl.expr.numeric import Numeric, numeric_class
from flydsl.expr.pointer import Pointer

__all__ = ["atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor"]

_SPACES = {"generic": 0, "global": 1, "shared": 3}
_SCOPES = {"system": "", "agent": "agent", "workgroup": "workgroup", "wavefront": "wavefront"}
_MONOTONIC = 2  # MLIR, LLVMEnums.td, `AtomicOrdering`


def _atomic(name: str, summary: str, floats: int | None, signed: int, unsigned: int) -> Callable[..., Any]:
    """An atomic by LLVM's numbers of it (MLIR, LLVMEnums.td, `AtomicBinOp`) for each kind of elements."""

    def function(pointer: Any, value: Any, *, syncscope: str = "agent") -> Any:
        kind = fly_type(pointer.value.type) if isinstance(pointer, Pointer) else None
        if not isinstance(kind, PointerType) or kind.space not in _SPACES:
            raise ArgumentError(
                f"{name} takes a pointer to global or shared memory, not {pointer!r}", at=user_location()
            )
        dtype = numeric_class(kind.element)
        if isinstance(value, Numeric) and value.dtype.ir_type == dtype.ir_type:
            dtype = value.dtype  # which knows the sign
        number = floats if dtype.is_float else signed if dtype.signed else unsigned
        if number is None or dtype.width not in ((16, 32, 64) if dtype.is_float else (32, 64)):
            raise ArgumentError(f"there is no {name} of {dtype.__name__}", at=user_location())
        return dtype.of(_emit(kind, pointer.value, dtype(value).ir_value(), number, _scope(syncscope)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{summary}, atomically; what memory held before. syncscope: the threads that see it in one order, `agent`, "
        "`system`, `workgroup` or `wavefront`."
    )
    return function


def _scope(syncscope: Any) -> str:
    name = str(getattr(syncscope, "value", syncscope)) or "system"
    if name not in _SCOPES:
        raise ArgumentError(f"syncscope={syncscope!r}", at=user_location(), hint=f"there is {', '.join(_SCOPES)}")
    return _SCOPES[name]


def _emit(kind: PointerType, pointer: ir.Value, value: ir.Value, number: int, scope: str) -> ir.Value:
    space = _SPACES[kind.space]
    raw = ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")
    i64 = element_type("i64")
    attributes = {
        "bin_op": ir.IntegerAttr.get(i64, number),
        "ordering": ir.IntegerAttr.get(i64, _MONOTONIC),
        "syncscope": ir.StringAttr.get(scope),
        "rocdl.no_fine_grained_memory": ir.UnitAttr.get(),
        "rocdl.no_remote_memory": ir.UnitAttr.get(),
    }
    address = emit("builtin.unrealized_conversion_cast", [pointer], [raw]).result
    return emit("llvm.atomicrmw", [address, value], [value.type], attributes).result


atomic_add = _atomic("atomic_add", "memory + value", 11, 1, 1)
atomic_max = _atomic("atomic_max", "The larger of memory and value", 13, 7, 9)
atomic_min = _atomic("atomic_min", "The smaller of memory and value", 14, 8, 10)
atomic_and = _atomic("atomic_and", "memory & value", None, 3, 3)
atomic_or = _atomic("atomic_or", "memory | value", None, 5, 5)
atomic_xor = _atomic("atomic_xor", "memory ^ value", None, 6, 6)
atomic_xchg = _atomic("atomic_xchg", "The value", 0, 0, 0)
