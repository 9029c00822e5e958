"""Loads from global memory at an offset that a kernel computes, whatever the tensor's layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.elements import element_bits, scalar_of
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import PointerType
from flydsl.expr.llvm import generic_load
from flydsl.expr.memory.tensors import Pointer, Tensor, get_iter, recast_iter
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Int8, Int64, Numeric, as_numeric, numeric_class
from flydsl.expr.threads.guarded import chosen
from flydsl.expr.tracing.operands import element_name, ir_type_of

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number, Result, ScalarType, Value

_PLACE = "pass elem_offset= or byte_offset=, one of the two"


def global_load(
    dtype: ScalarType,
    source: Tensor | Pointer,
    *,
    elem_offset: Number | None = None,
    byte_offset: Number | None = None,
    alignment: int | None = None,
    mask: Boolean | None = None,
    other: Value | None = None,
) -> Result:
    """Read a scalar or a vector at an offset from the start of a tensor in global memory, or from a pointer.

    dtype: what to read, `fx.Int32` or `fx.Int32x4`. elem_offset: in elements, which must be as wide as the tensor's;
    byte_offset: in bytes. alignment: of the address in bytes, by default that of one element; you must ensure it.
    mask: threads where it is false read nothing and get `other`, by default zeros.
    """
    pointer = get_iter(source) if isinstance(source, Tensor) else source
    kind = pointer.type if isinstance(pointer, Pointer) else None
    if not isinstance(kind, PointerType) or kind.space != "global":
        raise argument_error(f"global_load takes a tensor in global memory or a pointer to it, not {source!r}")
    if (elem_offset is None) == (byte_offset is None):
        raise argument_error("global_load takes one offset", _PLACE)
    element = element_name(scalar_of(ir_type_of(dtype)))
    bits = element_bits(element)
    if elem_offset is not None and bits != element_bits(kind.element):
        raise argument_error(f"elem_offset= of {element} in a tensor of {kind.element}", "pass byte_offset=")
    bytes_away = Int64(byte_offset) if elem_offset is None else Int64(elem_offset) * (bits // 8)
    aligned = PointerType(element, "global", alignment or bits // 8)

    def value() -> Any:
        return generic_load(recast_iter(aligned, recast_iter(Int8, pointer) + bytes_away), dtype=dtype)

    if mask is None:
        if other is not None:
            raise argument_error("global_load has other= without mask=", "pass the mask, or leave out other=")
        return value()
    return chosen(as_numeric(mask).to(Boolean), value, _otherwise(dtype, 0 if other is None else other))


def _otherwise(dtype: Any, other: Any) -> Any:
    """The value of the threads that read nothing, in the type of what the others read."""
    result = ir_type_of(dtype)
    named = getattr(dtype, "element", dtype)
    number = named if isinstance(named, type) and issubclass(named, Numeric) else numeric_class(scalar_of(result))
    if isinstance(result, ir.VectorType) and not isinstance(other, Vector):
        other = Vector.filled(result.shape[0], other, number)
    given = other if isinstance(other, Vector) else number.exactly(other)
    if given.ir_value().type != result:
        raise argument_error(f"global_load of {result}: other is {given.ir_value().type}")
    return given
