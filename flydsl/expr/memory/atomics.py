"""Atomic updates of memory.

Functions such as `fx.atomic_add` update one element at a pointer and return its previous value: tickets, counters,
flags. Copy atoms update whole tensors, element by element, and do not return the previous values:
`fx.copy(fx.make_copy_atom(fx.UniversalAtomicAdd(fx.Float32), ...), r, g)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl import atoms
from flydsl.atoms import CopyOp
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import PointerType
from flydsl.expr.memory.memory_order import AtomicOrdering, extra_alignment, ordering_number, scope_name
from flydsl.expr.memory.tensors import address_of
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import BFloat16, Float16, Numeric, numeric_class, require_numeric
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.operands import located

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyPointer, Number, ScalarType, Scope
    from flydsl.expr.numbers.arith_value import ArithValue

__all__ = [
    "AtomicOp", "UniversalAtomic", "UniversalAtomicAdd", "UniversalAtomicAnd", "UniversalAtomicDec",
    "UniversalAtomicInc", "UniversalAtomicMax", "UniversalAtomicMin", "UniversalAtomicOr", "atomic_add",
    "atomic_and", "atomic_fmax", "atomic_fmin", "atomic_max", "atomic_min", "atomic_or", "atomic_sub", "atomic_xchg",
    "atomic_xor",
]  # fmt: skip


def _atomic(name: str, summary: str, floats: int | None, signed: int, unsigned: int) -> Callable[..., Any]:
    """An atomic, with LLVM's number for each kind of element (MLIR, LLVMEnums.td, `AtomicBinOp`)."""

    def function(
        pointer: AnyPointer,
        value: Number,
        *,
        syncscope: Scope = "agent",
        ordering: AtomicOrdering | str = AtomicOrdering.Monotonic,
    ) -> ArithValue:
        kind, address = address_of(name, pointer, value)
        order = ordering_number(name, ordering), scope_name(syncscope)
        dtype = numeric_class(kind.element)
        if isinstance(value, Vector):
            _check_pair(name, value, dtype)
            return Vector(_emit(kind, address, value.ir_value(), floats or 0, *order), dtype=dtype)
        if isinstance(value, Numeric) and value.dtype.ir_type == dtype.ir_type:
            dtype = value.dtype  # which knows the sign
        number = floats if dtype.is_float else signed if dtype.signed else unsigned
        if number is None or dtype.width not in ((16, 32, 64) if dtype.is_float else (32, 64)):
            raise argument_error(
                f"there is no {name} of {dtype.__name__}",
                "floats of 16 to 64 bits have add, max and min; integers of 32 and 64 bits have all of them",
            )
        if isinstance(value, Numeric) and value.dtype.is_float and not dtype.is_float:
            raise argument_error(
                f"{name} of {value.dtype.__name__} to memory of {dtype.__name__}",
                f"convert it with .to(fx.{dtype.__name__})",
            )
        return dtype.of(_emit(kind, address, dtype.exactly(value).ir_value(), number, *order))

    return described(
        function,
        name,
        f"{summary}, atomically; what memory held before. syncscope: the threads that see it in one order, `agent`, "
        "`system`, `workgroup` or `wavefront` (None is `system`). ordering: of the thread's other accesses around it.",
    )


def _check_pair(name: str, value: Vector, dtype: Any) -> None:
    """Raise ArgumentError unless the vector is one that an instruction takes: two 16-bit floats, for `atomic_add`."""
    if name != "atomic_add" or value.shape != (2,) or value.dtype is not dtype or dtype not in (Float16, BFloat16):
        raise argument_error(
            f"there is no {name} of {value!r} to {dtype.__name__}",
            "atomic_add takes a pair of Float16 or BFloat16, at an address that is a multiple of 4",
        )


def _emit(kind: PointerType, address: ir.Value, value: ir.Value, number: int, ordering: int, scope: str) -> ir.Value:
    i64 = element_type("i64")
    attributes = extra_alignment(kind) | {
        "bin_op": ir.IntegerAttr.get(i64, number),
        "ordering": ir.IntegerAttr.get(i64, ordering),
        "syncscope": ir.StringAttr.get(scope),
    }
    if scope:  # the memory of other devices is reached by atomics of the system's scope
        attributes |= {"rocdl.no_fine_grained_memory": ir.UnitAttr.get(), "rocdl.no_remote_memory": ir.UnitAttr.get()}
    return emit("llvm.atomicrmw", [address, value], [value.type], attributes).result


atomic_add = _atomic("atomic_add", "memory + value", 11, 1, 1)
atomic_sub = _atomic("atomic_sub", "memory - value", 12, 2, 2)
atomic_max = _atomic("atomic_max", "The larger of memory and value", 13, 7, 9)
atomic_min = _atomic("atomic_min", "The smaller of memory and value", 14, 8, 10)
atomic_and = _atomic("atomic_and", "memory & value", None, 3, 3)
atomic_or = _atomic("atomic_or", "memory | value", None, 5, 5)
atomic_xor = _atomic("atomic_xor", "memory ^ value", None, 6, 6)
atomic_xchg = _atomic("atomic_xchg", "The value", 0, 0, 0)


def atomic_fmax(pointer: AnyPointer, value: Number, *, is_positive: bool | None = None, **order: Scope) -> ArithValue:
    """The larger float of memory and value, atomically; what memory held before: `atomic_max`.

    is_positive: what the author knows of the value's sign; taken and not used, as the hardware compares floats.
    """
    return atomic_max(pointer, value, **order)


def atomic_fmin(pointer: AnyPointer, value: Number, *, is_positive: bool | None = None, **order: Scope) -> ArithValue:
    """The smaller float of memory and value, atomically; what memory held before: `atomic_min`. See `atomic_fmax`."""
    return atomic_min(pointer, value, **order)


# --- as copy atoms ---------------------------------------------------------------------------------------------------


class AtomicOp(Enum):
    """The operation of an atomic."""

    Add = "add"
    Max = "max"
    Min = "min"
    And = "and"
    Or = "or"
    Inc = "inc"
    Dec = "dec"


_RESULTS = {
    AtomicOp.Add: "memory + operand",
    AtomicOp.Max: "The larger of memory and operand",
    AtomicOp.Min: "The smaller of memory and operand",
    AtomicOp.And: "memory & operand",
    AtomicOp.Or: "memory | operand",
    AtomicOp.Inc: "memory + 1, or 0 if memory >= operand, unsigned",
    AtomicOp.Dec: "memory - 1, or operand if memory is 0 or larger than operand, unsigned",
}


def with_operation(atomic: Callable[..., CopyOp], op: AtomicOp) -> Callable[..., CopyOp]:
    """The function of an element type that makes an atomic of one operation: `UniversalAtomicAdd(val_type)`.

    It hands on what else the atomic takes, such as `syncscope`.
    """

    def function(val_type: ScalarType, *settings: Scope, **named: Scope) -> CopyOp:
        return atomic(op, val_type, *settings, **named)

    return described(function, f"{atomic.__name__}{op.name}", f"{_RESULTS[op]}; see {atomic.__name__}.")


def UniversalAtomic(op: AtomicOp, val_type: ScalarType, syncscope: Scope = "agent") -> CopyOp:
    """An atomic update of an element in global or shared memory.

    syncscope: the threads that see updates in one order, a member of `fx.SyncScope` or `fx.rocdl.SyncScope`.
    val_type: fx.Int32, Uint32, Int64, Uint64, Float32, Float64; for Add also Float16 and BFloat16. Unsigned integers
    compare without a sign. A float update that the hardware does not have becomes a compare-and-swap loop.
    """
    made = atomic_of(atoms.UniversalAtomic, op, val_type)
    assert isinstance(made, atoms.UniversalAtomic)
    return replace(made, scope=scope_name(syncscope) or "system")


UniversalAtomicAdd = with_operation(UniversalAtomic, AtomicOp.Add)
UniversalAtomicMax = with_operation(UniversalAtomic, AtomicOp.Max)
UniversalAtomicMin = with_operation(UniversalAtomic, AtomicOp.Min)
UniversalAtomicAnd = with_operation(UniversalAtomic, AtomicOp.And)
UniversalAtomicOr = with_operation(UniversalAtomic, AtomicOp.Or)
UniversalAtomicInc = with_operation(UniversalAtomic, AtomicOp.Inc)
UniversalAtomicDec = with_operation(UniversalAtomic, AtomicOp.Dec)


def atomic_of(family: type[atoms.AtomicCopy], op: AtomicOp, val_type: ScalarType, values: int = 1) -> CopyOp:
    """The atomic of a family on `values` elements of a type."""
    if not isinstance(op, AtomicOp):
        raise argument_error(f"{op!r} is not an atomic operation", "pass fx.AtomicOp.Add, for example")
    dtype = require_numeric(family.__name__, val_type)
    signed = op in (AtomicOp.Max, AtomicOp.Min) and not dtype.is_float
    name = ("s" if dtype.signed else "u") + op.value if signed else op.value
    width: int = dtype.width
    if width not in family.widths:
        raise argument_error(
            f"{family.__name__} takes types of 16, 32 or 64 bits, not {dtype.__name__}",
            "recast the memory to a wider type",
        )
    return located(family, values * width, name, dtype.mlir_name)
