"""Vectors of scalars held in registers: `fx.Vector`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir import ir

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit
from flydsl.expr.numeric import ArithValue, Index, Numeric, numeric_class, wrap_scalar


class Vector(ArithValue):
    """A vector value; operators work element by element, scalars are repeated.

    value: an `ir.Value` of vector type.
    dtype: the element type; by default the one that the MLIR type names (integers signed).
    """

    def __init__(self, value: ir.Value, dtype: type[Numeric] | None = None) -> None:
        if not isinstance(value.type, ir.VectorType):
            raise ArgumentError(f"a Vector needs a vector value, not {value.type}", at=user_location())
        self.value = value
        self.dtype = dtype or numeric_class(value.type.element_type)

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: type[Numeric] | None = None) -> Vector:
        """A vector of the given scalars, converted to `dtype` (by default the first one's type)."""
        if not elements:
            raise ArgumentError("a Vector needs at least one element", at=user_location())
        element = dtype or wrap_first(elements[0])
        values = [element(item).ir_value() for item in elements]
        result = ir.VectorType.get([len(values)], element.ir_type)
        return cls(emit("vector.from_elements", values, [result]).result, element)

    @classmethod
    def filled(cls, shape: Sequence[int], value: Any, dtype: type[Numeric]) -> Vector:
        """A vector with the same scalar everywhere."""
        result = ir.VectorType.get(list(shape), dtype.ir_type)
        return cls(emit("vector.broadcast", [dtype(value).ir_value()], [result]).result, dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension."""
        return tuple(self.value.type.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def ir_value(self) -> ir.Value:
        return self.value

    def to(self, dtype: type[Numeric]) -> Vector:
        """Convert every element to another scalar type."""
        from flydsl.expr import arith

        return self if dtype is self.dtype else Vector(arith.convert(self, dtype), dtype)

    def bitcast(self, dtype: type[Numeric]) -> Vector:
        """The same bits as elements of another width; the last dimension grows or shrinks."""
        bits = self.shape[-1] * self.dtype.width
        if bits % dtype.width:
            raise ArgumentError(
                f"bitcast of {self.value.type} to {dtype.__name__}: {bits} bits are not a multiple of {dtype.width}",
                at=user_location(),
            )
        result = ir.VectorType.get([*self.shape[:-1], bits // dtype.width], dtype.ir_type)
        return Vector(emit("vector.bitcast", [self.value], [result]).result, dtype)

    def __getitem__(self, position: Any) -> Any:
        """One element of a one-dimensional vector, at a static or a runtime position."""
        if isinstance(position, int):
            if not -self.numel <= position < self.numel:
                raise ArgumentError(f"element {position} of a vector of {self.numel}", at=user_location())
            operands, static = [], position % self.numel
        else:
            operands, static = [Index(position).ir_value()], ir.ShapedType.get_dynamic_size()
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([static])}
        value = emit("vector.extract", [self.value, *operands], [self.dtype.ir_type], attributes).result
        return self.dtype.of(value)

    def __repr__(self) -> str:
        return f"Vector({self.value.type})"


def wrap_first(value: Any) -> type[Numeric]:
    """The scalar type of a vector's first element."""
    from flydsl.expr.numeric import as_numeric

    return wrap_scalar(value).dtype if isinstance(value, ir.Value) else as_numeric(value).dtype
