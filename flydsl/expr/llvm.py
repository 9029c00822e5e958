"""Memory accesses with the guarantees of LLVM's memory model: loads and stores that are atomic, fences, exchanges.

A kernel rarely needs them: `tensor[i]`, `fx.barrier()` and `fx.atomic_add` are enough within a launch. They are for
flags between workgroups and between devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.elements import element_type, scalar_of
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import PointerType
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory.atomics import (
    atomic_add,
    atomic_and,
    atomic_fmax,
    atomic_fmin,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xchg,
    atomic_xor,
)
from flydsl.expr.memory.memory_order import (
    FENCES,
    LOADS,
    STORES,
    AtomicOrdering,
    SyncScope,
    extra_alignment,
    ordering_number,
    scope_name,
)
from flydsl.expr.memory.tensors import address_of
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int8, Integer, Numeric, numeric_class
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.operands import ir_type_of

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyPointer, Number, Result, ScalarType, Scope, Value

__all__ = [
    "AtomicOrdering", "SyncScope", "atomic_add", "atomic_and", "atomic_cas", "atomic_fmax", "atomic_fmin", "atomic_max",
    "atomic_min", "atomic_or", "atomic_sub", "atomic_xchg", "atomic_xor", "generic_load", "generic_store",
    "memory_fence", "to_llvm_ptr",
]  # fmt: skip


def to_llvm_ptr(ptr: AnyPointer) -> ir.Value:
    """A pointer as MLIR's `!llvm.ptr`, in LLVM's number of its address space."""
    return address_of("to_llvm_ptr", ptr, Int8)[1]


def _access(kind: PointerType, bits: int, order: int, syncscope: Any, flags: dict[str, bool]) -> dict[str, Any]:
    """Attributes of a load or store. An atomic one is as aligned as it is wide, which the author promises."""
    atomic = order != AtomicOrdering.NotAtomic
    if syncscope is not None and not atomic:
        raise argument_error(
            f"syncscope={syncscope!r} of an access that is not atomic",
            "memory_order=fx.AtomicOrdering.Monotonic makes it atomic",
        )
    i64 = element_type("i64")
    alignment = max(kind.known_alignment, bits // 8) if atomic else kind.known_alignment
    return {
        "alignment": ir.IntegerAttr.get(i64, alignment),
        "ordering": ir.IntegerAttr.get(i64, order),
        **({"syncscope": ir.StringAttr.get(scope_name(syncscope))} if atomic else {}),
        **{name: ir.UnitAttr.get() for name, on in flags.items() if on},
    }


def _check_atomic(what: str, kind: ir.Type, bits: int, order: int) -> None:
    if order != AtomicOrdering.NotAtomic and (isinstance(kind, ir.VectorType) or bits not in (8, 16, 32, 64)):
        raise argument_error(f"an atomic {what} takes one number of 8, 16, 32 or 64 bits, not {kind}")


def generic_load(
    ptr: AnyPointer,
    *,
    dtype: ScalarType | None = None,
    count: int | None = None,
    memory_order: AtomicOrdering | str = AtomicOrdering.NotAtomic,
    syncscope: Scope = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> Result:
    """Read a scalar, or a vector of `count` elements, at a pointer to generic, global or shared memory.

    dtype: an element type or a vector type, by default the pointer's element type; the bytes are read as that. An
    atomic load (memory_order) is of one number.
    """
    kind, address = address_of("generic_load", ptr, dtype)
    element = numeric_class(kind.element)
    result = element.ir_type if dtype is None else ir_type_of(dtype)
    if count not in (None, 1):
        if isinstance(result, ir.VectorType) or not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise argument_error(f"generic_load of {count!r} times {result}", "count=4 of a scalar type")
        result = ir.VectorType.get([count], result)
    named = getattr(dtype, "element", dtype)
    named = named if isinstance(named, type) and issubclass(named, Numeric) else None
    scalar = scalar_of(result)
    number = named or (element if scalar == element.ir_type else numeric_class(scalar))
    order = ordering_number("a load", memory_order, (AtomicOrdering.NotAtomic, *LOADS))
    _check_atomic("load", result, number.width, order)
    attributes = _access(kind, number.width, order, syncscope, {"nontemporal": nontemporal, "volatile_": volatile})
    loaded = emit("llvm.load", [address], [result], attributes).result
    return Vector(loaded, dtype=number) if isinstance(result, ir.VectorType) else number.of(loaded)


def generic_store(
    ptr: AnyPointer,
    value: Value,
    *,
    memory_order: AtomicOrdering | str = AtomicOrdering.NotAtomic,
    syncscope: Scope = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> None:
    """Write a scalar or a vector at a pointer to generic, global or shared memory, as the type that the value has.

    A Python number takes the pointer's element type. An atomic store (memory_order) is of one number.
    """
    kind, address = address_of("generic_store", ptr, value)
    given = value if isinstance(value, ArithValue) else numeric_class(kind.element).exactly(value)
    stored = given.ir_value()
    order = ordering_number("a store", memory_order, (AtomicOrdering.NotAtomic, *STORES))
    _check_atomic("store", stored.type, given.dtype.width, order)
    attributes = _access(kind, given.dtype.width, order, syncscope, {"nontemporal": nontemporal, "volatile_": volatile})
    emit("llvm.store", [stored, address], attributes=attributes)


def memory_fence(*, syncscope: Scope = None, ordering: AtomicOrdering | str = AtomicOrdering.SeqCst) -> None:
    """Order the thread's accesses before the fence with those after it, for the threads of a scope."""
    number = ordering_number("memory_fence", ordering, FENCES)
    attributes = {
        "ordering": ir.IntegerAttr.get(element_type("i64"), number),
        "syncscope": ir.StringAttr.get(scope_name(syncscope)),
    }
    emit("llvm.fence", attributes=attributes)


def atomic_cas(
    ptr: AnyPointer,
    cmp: Number,
    val: Number,
    *,
    syncscope: Scope = None,
    success_ordering: AtomicOrdering | str = AtomicOrdering.Monotonic,
    failure_ordering: AtomicOrdering | str = AtomicOrdering.Monotonic,
    weak: bool = False,
) -> tuple[Result, Result]:
    """Replace an integer in memory by `val` if it is `cmp`, atomically: what memory held before, and whether it was."""
    kind, address = address_of("atomic_cas", ptr, val)
    dtype = numeric_class(kind.element)
    if not issubclass(dtype, Integer) or dtype.width not in (32, 64):
        raise argument_error(f"atomic_cas takes integers of 32 and 64 bits, not {dtype.__name__}", "recast the pointer")
    i64 = element_type("i64")
    attributes: dict[str, ir.Attribute] = extra_alignment(kind) | {
        "success_ordering": ir.IntegerAttr.get(i64, ordering_number("atomic_cas", success_ordering)),
        "failure_ordering": ir.IntegerAttr.get(i64, ordering_number("atomic_cas", failure_ordering, LOADS[1:])),
        "syncscope": ir.StringAttr.get(scope_name(syncscope)),
    }
    if weak:
        attributes["weak"] = ir.UnitAttr.get()
    pair = ir.Type.parse(f"!llvm.struct<({dtype.ir_type}, i1)>")
    values = [address, dtype(cmp).ir_value(), dtype(val).ir_value()]
    found = emit("llvm.cmpxchg", values, [pair], attributes).result
    held, same = (
        emit("llvm.extractvalue", [found], [part], {"position": ir.DenseI64ArrayAttr.get([i])}).result
        for i, part in enumerate((dtype.ir_type, element_type("i1")))
    )
    return dtype.of(held), Boolean.of(same)


__getattr__ = unknown_name(__name__, globals())
