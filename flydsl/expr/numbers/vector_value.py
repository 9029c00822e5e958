"""Vectors of scalars held in registers: `fx.Vector`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from mlir import ir

from flydsl.dialect.context import context
from flydsl.dialect.elements import scalar_of
from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors import IndexOutOfRange, how_to_make
from flydsl.errors.places import user_location
from flydsl.expr.numbers.arith_value import ArithValue, functions
from flydsl.expr.numbers.fastmath_flags import fastmath_attribute
from flydsl.expr.numbers.rounding_mode import RoundingMode, direction_of
from flydsl.expr.numeric import (
    Index,
    Int32,
    Numeric,
    as_numeric,
    convert,
    convert_rounded,
    is_python_number,
    numeric_class,
    require_numeric,
)
from flydsl.expr.printing.refusals import WHILE_TRACED, TracedText
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.executing import lanes_of, text_of_lanes
from flydsl.expr.tracing.outlived import note

if TYPE_CHECKING:
    from flydsl.expr.kinds import IntTupleLike, Number


class ReductionOp(Enum):
    """Operations that combine elements in `Vector.reduce`, which also takes their names as strings."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


_OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip


@dataclass(frozen=True)
class VectorMemory:
    """Loads and stores of vectors, defined with the tensors that they access."""

    load: Callable[[ir.Type, Any, Sequence[Any], int | None], Vector]
    store: Callable[[Vector, Any, Sequence[Any], int | None], None]


class Vector(ArithValue):
    """A vector value. Operators work element by element; scalars and dimensions of extent 1 are broadcast.

    value: an `ir.Value` of vector type, or a Vector.
    shape: the extents, the last dimension fastest; by default those of the type. The program has one dimension.
    dtype: the element type; by default the one that the MLIR type names (integers signed).
    """

    value: ir.Value
    memory: ClassVar[VectorMemory]  # entered by flydsl.expr.memory.vector_memory

    def __init__(self, value: ir.Value | Vector, shape: Any = None, dtype: type[Numeric] | None = None) -> None:
        if isinstance(value, Vector):
            shape, dtype, value = shape or value.shape, dtype or value.dtype, value.value
        if not isinstance(value.type, ir.VectorType):
            raise argument_error(f"a Vector needs a vector value, not {value.type}", how_to_make.VECTOR)
        self.shape: tuple[int, ...] = _extents(tuple(value.type.shape) if shape is None else shape)
        self.dtype = numeric_class(value.type.element_type) if dtype is None else require_numeric("Vector", dtype)
        if prod(self.shape) != prod(value.type.shape) or self.dtype.ir_type != value.type.element_type:
            raise argument_error(
                f"{value.type} is not a vector of shape {self.shape} of {self.dtype.__name__}",
                "name the shape and the type that it has, or omit both",
            )
        if value.type.rank != 1:
            value = emit("vector.shape_cast", [value], [vector_type(self.shape, self.dtype)]).result
        self.value = value
        note(self)

    @staticmethod
    def make_type(shape: Any, dtype: type[Numeric]) -> ir.Type:
        """The MLIR type of vectors of this shape, for operations that take their result type."""
        with context(), ir.Location.unknown():
            return vector_type(_extents(shape), require_numeric("make_type", dtype))

    @classmethod
    def from_elements(cls, elements: Sequence[Any], dtype: type[Numeric] | None = None) -> Vector:
        """A vector of the given scalars, converted to `dtype` (by default the first one's type)."""
        if not isinstance(elements, tuple | list) or not elements:
            raise argument_error(
                f"a Vector of {elements!r}: it takes a list of scalars", "pass fx.Vector.from_elements([x, y, z, w])"
            )
        element = as_numeric(elements[0]).dtype if dtype is None else require_numeric("from_elements", dtype)
        truncated = next((e for e in elements if isinstance(e, ArithValue) and e.dtype.is_float), None)
        if dtype is None and truncated is not None and not element.is_float:
            raise argument_error(
                f"a Vector of {element.__name__}, as its first element is, with {truncated!r} in it",
                f"convert one of them, or say it: from_elements([...], fx.{truncated.dtype.__name__})",
            )
        values = [element(item).ir_value() for item in elements]
        result = vector_type([len(values)], element)
        return cls(emit("vector.from_elements", values, [result]).result, dtype=element)

    @classmethod
    def filled(cls, shape: Any, fill_value: Any, dtype: type[Numeric]) -> Vector:
        """A vector with the same scalar everywhere. shape: extents, or the extent of one dimension."""
        element = require_numeric("filled", dtype)
        result = vector_type(_extents(shape), element)
        return cls(emit("vector.broadcast", [element(fill_value).ir_value()], [result]).result, shape, element)

    @classmethod
    def filled_like(cls, template: Vector, fill_value: Any, dtype: type[Numeric] | None = None) -> Vector:
        """A vector with the same scalar everywhere, with the shape and by default the type of another."""
        template = as_vector("filled_like", template)
        return cls.filled(template.shape, fill_value, dtype or template.dtype)

    @classmethod
    def zeros_like(cls, template: Vector, dtype: type[Numeric] | None = None) -> Vector:
        """A vector of zeros with the shape and by default the type of another."""
        return cls.filled_like(template, 0, dtype)

    @classmethod
    def load(cls, result_type: ir.Type, memref: Any, indices: Sequence[Any], *, alignment: int | None = None) -> Vector:
        """Read contiguous elements of a tensor, from the one at `indices` on. result_type: an MLIR vector type."""
        return cls.memory.load(result_type, memref, indices, alignment)

    def store(self, memref: Any, indices: Sequence[Any], *, alignment: int | None = None) -> None:
        """Write the elements contiguously to a tensor, from the one at `indices` on; the last mode must have stride 1.

        alignment: in bytes, for memory that is an MLIR memref; a tensor's elements are aligned to their own size.
        """
        self.memory.store(self, memref, indices, alignment)

    @property
    def signed(self) -> bool:
        """True if the elements are integers with a sign."""
        return not self.dtype.is_float and self.dtype.signed

    @property
    def element_type(self) -> type[Numeric]:
        """The scalar type of the elements."""
        return self.dtype

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def ir_value(self) -> ir.Value:
        return self.value

    def to(self, dtype: type[Numeric], *, rounding_mode: RoundingMode | None = None) -> Vector:
        """Convert every element to another scalar type. `ir.Value` leaves the vector as it is.

        rounding_mode: between floats, by default the nearest with ties to even.
        """
        if dtype == ir.Value:
            return self
        target = require_numeric("to", dtype)
        if rounding_mode is not None and (mode := direction_of(self.dtype, target, rounding_mode)) is not None:
            return Vector(convert_rounded(self, target, mode), self.shape, target)
        return self if target is self.dtype else Vector(convert(self, target), self.shape, target)

    def bitcast(self, dtype: type[Numeric]) -> Vector:
        """The same bits as elements of another width. It has one dimension if the number of elements changes."""
        target = require_numeric("bitcast", scalar_of(dtype))
        bits = self.numel * self.dtype.width
        if Index in (self.dtype, target) or bits % target.width:
            raise argument_error(
                f"bitcast of {self.value.type} to {target.__name__}",
                "an index has no bits of its own"
                if Index in (self.dtype, target)
                else f"{bits} bits are not a multiple of {target.width}",
            )
        result = vector_type([bits // target.width], target)
        shape = self.shape if target.width == self.dtype.width else None
        return Vector(emit("vector.bitcast", [self.value], [result]).result, shape, target)

    def reshape(self, shape: Any) -> Vector:
        """The same elements in the same order with other extents."""
        if prod(_extents(shape)) != self.numel:
            raise argument_error(f"{self!r} cannot be reshaped to {_extents(shape)}", "keep the number of elements")
        return Vector(self.value, shape, self.dtype)

    def broadcast_to(self, target_shape: Any) -> Vector:
        """The vector with dimensions of extent 1, and missing leading ones, repeated."""
        target = _extents(target_shape)
        if target == self.shape:
            return self
        if broadcast_shape(self.shape, target) != target:
            raise argument_error(
                f"{self!r} cannot be repeated to shape {target}", "an extent of 1 is repeated; others stay"
            )
        padded = (1,) * (len(target) - len(self.shape)) + self.shape
        axes = [[0] * n if extent == 1 else list(range(n)) for extent, n in zip(padded, target, strict=True)]
        return self._pick(_positions(padded, axes), target)

    def shuffle(self, other: Any, mask: Sequence[int]) -> Vector:
        """Elements of this vector and `other`, whose numbers follow this one's. mask: the number of each element."""
        second = as_vector("shuffle", other)
        total = self.numel + second.numel
        known = isinstance(mask, Sequence) and len(mask) > 0 and all(0 <= int(i) < total for i in mask)
        if second.dtype is not self.dtype or not known:
            raise argument_error(
                f"shuffle of {self!r} and {other!r} by {mask!r}",
                "pass two vectors of one type and one dimension, and positions in both, counted from 0",
            )
        attributes = {"mask": ir.DenseI64ArrayAttr.get([int(i) for i in mask])}
        result = vector_type([len(mask)], self.dtype)
        return Vector(emit("vector.shuffle", [self.value, second.value], [result], attributes).result, dtype=self.dtype)

    def apply_op(self, op: Callable[[Any, Any], Any], other: Any, flip: bool = False) -> Any:
        """`op(self, other)`, or with `flip` `op(other, self)`, for an operator of Python's module `operator`.

        op: one on two numbers, such as `operator.add`, or a comparison. other: a vector or a scalar.
        Raises ArgumentError for another function.
        """
        if op not in _OPERATORS:
            names = ", ".join(function.__name__.strip("_") for function in _OPERATORS)
            raise argument_error(
                f"apply_op takes a function of Python's module operator, got {op!r}", hint=f"one of {names}"
            )
        return op(other, self) if flip else op(self, other)

    def reduce(self, op: ReductionOp | Enum | str, init_val: Any = None, *, fastmath: Any = None) -> Any:
        """Combine all elements to one scalar.

        op: a ReductionOp, its name, or one of MLIR's combining kinds. Of floats, as in FlyDSL, "max" ignores NaNs and
        "min" is NaN if one is; "minnumf" and "maximumf" are the other two.
        init_val: a scalar that is combined with the result.
        fastmath: with "reassoc" floats may be combined in any order, which is faster; otherwise from first to last.
        """
        kind = _combining_kind(op, self.dtype)
        if kind == "add" and self.dtype.is_float and init_val is None:
            init_val = -0.0  # else MLIR begins with 0.0, and a sum of -0.0s is 0.0
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
        operands = [self.value] if init_val is None else [self.value, self.dtype(init_val).ir_value()]
        attributes.update(fastmath_attribute(fastmath))
        return self.dtype.of(emit("vector.reduction", operands, [self.dtype.ir_type], attributes).result)

    def __getitem__(self, position: Any) -> Any:
        """The element at a static or runtime position; a slice, or None, keeps a dimension.

        A runtime position is taken without a sign, and one past the end is the last element's.
        """
        if position is None:
            return self
        coordinate = position if isinstance(position, tuple | list) else (position,)
        if any(part is None or isinstance(part, slice) for part in coordinate):
            return self._slice(tuple(coordinate))
        if len(coordinate) not in (1, len(self.shape)):
            raise argument_error(
                f"{len(coordinate)} indices of {self!r}: it has {len(self.shape)} modes", "give one index for each mode"
            )
        return self._element(_flat_position(coordinate, self.shape if len(coordinate) > 1 else (self.numel,)))

    def _element(self, number: Numeric) -> Any:
        operands, static = [], ir.ShapedType.get_dynamic_size()
        if number.is_static:
            static = int(number)
        else:
            operands = [runtime_position(number, self.numel)]
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([static])}
        return self.dtype.of(emit("vector.extract", [self.value, *operands], [self.dtype.ir_type], attributes).result)

    def _slice(self, coordinate: tuple[Any, ...]) -> Vector:
        if len(coordinate) != len(self.shape):
            raise argument_error(
                f"{len(coordinate)} indices of {self!r}: it has {len(self.shape)} modes", "give one index for each mode"
            )
        axes = [_axis(part, extent) for part, extent in zip(coordinate, self.shape, strict=True)]
        kept = [len(a) for a, part in zip(axes, coordinate, strict=True) if part is None or isinstance(part, slice)]
        return self._pick(_positions(self.shape, axes), kept)

    def _pick(self, positions: list[int], shape: Sequence[int]) -> Vector:
        return self.shuffle(self, positions).reshape(shape) if positions else Vector.filled(shape, 0, self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise trace_error(
            f"{self!r} as a condition: it has one truth value per element",
            "choose per element with condition.select(a, b), or reduce it to one value",
        )

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) != 1:
            rest = (None,) * (len(self.shape) - 1)
            return (self[(i,) + rest] for i in range(len(self)))  # noqa: RUF005 - needs Python 3.11
        return (self[position] for position in range(len(self)))

    @property
    def lanes(self) -> Any:
        """The elements in each lane, as an array (lanes, elements), where the interpreter is on."""
        return lanes_of(self.value, "Vector")

    def __repr__(self) -> str:
        shape = f", shape {self.shape}" if len(self.shape) != 1 else ""
        return text_of_lanes(self.value, "Vector") or f"Vector({self.value.type}{shape})"

    def __str__(self) -> str:
        shown = repr(self)
        return TracedText(f"{shown}{WHILE_TRACED}") if shown.startswith("Vector(vector<") else shown


def full(shape: IntTupleLike, fill_value: Number, dtype: type[Numeric]) -> Vector:
    """A vector with the same scalar everywhere."""
    return Vector.filled(shape, fill_value, dtype)


def full_like(a: Vector, fill_value: Number, dtype: type[Numeric] | None = None) -> Vector:
    """A vector with the same scalar everywhere, with the shape and by default the type of another."""
    return Vector.filled_like(as_vector("full_like", a), fill_value, dtype)


def zeros_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """A vector of zeros with the shape and by default the type of another."""
    return full_like(a, 0, dtype)


def ones_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """A vector of ones with the shape and by default the type of another."""
    return full_like(a, 1, dtype)


def empty_like(a: Vector, dtype: type[Numeric] | None = None) -> Vector:
    """A vector of zeros with the shape and by default the type of another. Values cannot have undefined contents."""
    return full_like(a, 0, dtype)


def vector_type(shape: Sequence[int], dtype: type[Numeric]) -> ir.Type:
    """The one-dimensional MLIR vector type."""
    return ir.VectorType.get([prod(shape)], dtype.ir_type)


def as_vector(what: str, value: Any) -> Vector:
    """The value as a Vector; it may be an `ir.Value` of vector type. Raises ArgumentError for anything else."""
    if isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
        return Vector(value)
    if isinstance(value, Vector):
        return value
    raise argument_error(f"{what} takes a Vector, not {value!r}", how_to_make.VECTOR)


def broadcast_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape of two vectors, with extents of 1 and missing leading ones broadcast, or None.

    >>> broadcast_shape((4, 1), (3,)), broadcast_shape((2,), (3,))
    ((4, 3), None)
    """
    pairs = itertools.zip_longest(reversed(left), reversed(right), fillvalue=1)
    found = [max(a, b) if 1 in (a, b) or a == b else 0 for a, b in pairs]
    return tuple(reversed(found)) if all(found) else None


def _extents(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple. Raises ArgumentError for an empty one, which LLVM does not support."""
    extents = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not extents or not all(isinstance(n, int) and n >= 1 for n in extents):
        raise argument_error(
            f"the extents of a vector must be positive integers, got {extents}", "pass (4,), for example"
        )
    return extents


def _flat_position(coordinate: Sequence[Any], shape: tuple[int, ...]) -> Numeric:
    """A coordinate's number among all elements, checked if it is static."""
    total: Any = 0
    for part, extent in zip(coordinate, shape, strict=True):
        number = as_numeric(part) if is_python_number(part) or isinstance(part, ArithValue | ir.Value) else None
        if not isinstance(number, Numeric) or number.is_float:
            raise argument_error(
                f"the position in a vector must be an integer, got {part!r}", "convert it: .to(fx.Int32), or int(...)"
            )
        total = total * extent + (_checked(int(number), extent) if number.is_static else number)
    return as_numeric(total)


def runtime_position(number: Numeric, count: int) -> ir.Value:
    """A runtime position in a vector of `count` elements as an index, at most that of the last one."""
    position = (number if number.dtype.width >= 32 else Int32(number)).ir_value()
    last = ir.IntegerAttr.get(position.type, count - 1)
    limit = emit("arith.constant", [], [position.type], {"value": last}).result
    return Index(emit("arith.minui", [position, limit], [position.type]).result).ir_value()


def _checked(position: int, extent: int) -> int:
    if not -extent <= position < extent:
        raise IndexOutOfRange(
            f"element {position} of a vector of {extent}",
            at=user_location(),
            hint=f"elements count from 0 to {extent - 1}, and from the end from -1 to {-extent}",
        )
    return position % extent


def _axis(part: Any, extent: int) -> list[int]:
    """The positions along one dimension that an index, a slice or None selects."""
    try:
        if part is None or isinstance(part, slice):
            return list(range(extent))[part or slice(None)]
        return [_checked(part.__index__(), extent)]
    except (AttributeError, TypeError):
        raise argument_error(
            f"the bounds of a slice of a vector must be known at compile time, got {part!r}",
            "index single elements by runtime values: v[i]",
        ) from None


def _positions(shape: tuple[int, ...], axes: list[list[int]]) -> list[int]:
    """The numbers, among all elements of a shape, of the elements that the axes select."""
    found = []
    for coordinate in itertools.product(*axes):
        number = 0
        for part, extent in zip(coordinate, shape, strict=True):
            number = number * extent + part
        found.append(number)
    return found


_FLOAT_KINDS = {"maximumf", "minimumf", "maxnumf", "minnumf"}
_INTEGER_KINDS = {"maxsi", "minsi", "maxui", "minui"}
_EXTREMA = {ReductionOp.MAX: ("maxnumf", "maxsi", "maxui"), ReductionOp.MIN: ("minimumf", "minsi", "minui")}


def _combining_kind(op: ReductionOp | Enum | str, dtype: type[Numeric]) -> str:
    """MLIR's name of a reduction for elements of a type."""
    name = op if isinstance(op, str) else op.name if isinstance(op, Enum) else ""
    if name.lower() in (_FLOAT_KINDS if dtype.is_float else _INTEGER_KINDS):
        return name.lower()
    try:
        operation = ReductionOp(name.lower())
    except ValueError:
        names = ", ".join(member.value for member in ReductionOp)
        raise argument_error(
            f"reduce by {op!r}: an unknown operation for {dtype.__name__}", f"there is {names}"
        ) from None
    if dtype.is_float and operation in (ReductionOp.AND, ReductionOp.OR, ReductionOp.XOR):
        raise argument_error(
            f"reduce by {operation.name} of {dtype.__name__}",
            "floats add, multiply, and take the larger or smaller; bits belong to integers",
        )
    if operation not in _EXTREMA:
        return operation.value
    return _EXTREMA[operation][0 if dtype.is_float else 1 if dtype.signed else 2]


functions.vector = Vector
