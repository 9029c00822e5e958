"""Vectors of scalars held in registers: `fx.Vector`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from mlir import ir

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.emit import emit
from flydsl.expr.names import unknown_name
from flydsl.expr.numeric import ArithValue, Index, Numeric, as_numeric, numeric_class, require_numeric


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
        if self.dtype.ir_type != value.type.element_type:
            raise ArgumentError(f"{value.type} is not a vector of {self.dtype.__name__}", at=user_location())

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: type[Numeric] | None = None) -> Vector:
        """A vector of the given scalars, converted to `dtype` (by default the first one's type)."""
        if not isinstance(elements, tuple | list) or not elements:
            raise ArgumentError(f"a Vector of {elements!r}: it takes a list of scalars", at=user_location())
        element = as_numeric(elements[0]).dtype if dtype is None else require_numeric("from_elements", dtype)
        values = [element(item).ir_value() for item in elements]
        result = vector_type([len(values)], element)
        return cls(emit("vector.from_elements", values, [result]).result, element)

    @classmethod
    def filled(cls, shape: Sequence[int], value: Any, dtype: type[Numeric]) -> Vector:
        """A vector with the same scalar everywhere."""
        result = vector_type(shape, dtype)
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
        from flydsl.expr.conversions import convert

        target = require_numeric("to", dtype)
        return self if target is self.dtype else Vector(convert(self, target), target)

    def bitcast(self, dtype: type[Numeric]) -> Vector:
        """The same bits as elements of another width; the last dimension grows or shrinks."""
        target = require_numeric("bitcast", dtype)
        bits = self.shape[-1] * self.dtype.width
        if Index in (self.dtype, target) or bits % target.width:
            raise ArgumentError(
                f"bitcast of {self.value.type} to {target.__name__}",
                at=user_location(),
                hint="an index has no bits of its own"
                if Index in (self.dtype, target)
                else f"{bits} bits are not a multiple of {target.width}",
            )
        result = vector_type([*self.shape[:-1], bits // target.width], target)
        return Vector(emit("vector.bitcast", [self.value], [result]).result, target)

    def __getitem__(self, position: Any) -> Any:
        """One element of a one-dimensional vector, at a static or a runtime position."""
        if len(self.shape) != 1:
            raise ArgumentError(f"an element of {self.value.type}: it has {len(self.shape)} modes", at=user_location())
        number = as_numeric(position)
        if not isinstance(number, Numeric) or number.is_float:
            raise ArgumentError(f"{position!r} as the position in a vector", at=user_location())
        operands, static = [], ir.ShapedType.get_dynamic_size()
        if number.is_static:
            if not -self.numel <= int(number) < self.numel:
                raise ArgumentError(f"element {int(number)} of a vector of {self.numel}", at=user_location())
            static = int(number) % self.numel
        else:
            operands = [Index(number).ir_value()]
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([static])}
        value = emit("vector.extract", [self.value, *operands], [self.dtype.ir_type], attributes).result
        return self.dtype.of(value)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TraceError(
            f"{self!r} as a condition: it has one truth value per element",
            at=user_location(),
            hint="choose per element with condition.select(a, b), or reduce it to one value",
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return f"Vector({self.value.type})"


def vector_type(shape: Sequence[int], dtype: type[Numeric]) -> ir.Type:
    """The MLIR vector type. Raises ArgumentError for an empty one, which LLVM does not have."""
    extents = list(shape)
    if not extents or min(extents) < 1:
        raise ArgumentError(f"a vector of shape {tuple(extents)}", at=user_location(), hint="extents are at least 1")
    return ir.VectorType.get(extents, dtype.ir_type)


__getattr__ = unknown_name(__name__, globals())
