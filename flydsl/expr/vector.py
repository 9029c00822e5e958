"""The vector operations of MLIR by name. The methods of `Vector` do the same and are shorter.

Result types are MLIR vector types, `fx.T.vec(4, fx.T.f32)`. Results are bare (see `flydsl.expr.numbers.promotion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from math import prod
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.dialect.upstream import upstream
from flydsl.expr import math
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory import vector_memory
from flydsl.expr.numbers.vector_value import (
    ReductionOp,
    Vector,
    as_vector,
    empty_like,
    full,
    full_like,
    ones_like,
    runtime_position,
    zeros_like,
)
from flydsl.expr.numeric import as_numeric, bare_value, numeric_class
from flydsl.expr.tracing.builder import MlirBuilder
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.traced_value import with_operators

_P = ParamSpec("_P")
_T = TypeVar("_T")

__all__ = [
    "CombiningKind", "ReductionOp", "Vector", "bitcast", "broadcast", "empty_like", "extract", "extractelement", "fma",
    "from_elements", "full", "full_like", "insert", "insertelement", "load", "load_op", "ones_like", "reduction",
    "shape_cast", "shuffle", "store", "to_elements", "zeros_like",
]  # fmt: skip


class CombiningKind(str, Enum):
    """Operations that combine elements in `reduction`, by MLIR's names."""

    ADD = "add"
    MUL = "mul"
    MINUI = "minui"
    MINSI = "minsi"
    MINNUMF = "minnumf"
    MAXUI = "maxui"
    MAXSI = "maxsi"
    MAXNUMF = "maxnumf"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MINIMUMF = "minimumf"
    MAXIMUMF = "maximumf"

    def __str__(self) -> str:
        return str(self.value)


def _bare(function: Callable[_P, _T]) -> Callable[_P, _T]:
    @wraps(function)
    def bare(*arguments: _P.args, **options: _P.kwargs) -> _T:
        return bare_value(function(*arguments, **options))

    return bare


def _result(name: str, result_type: Any) -> ir.VectorType:
    if isinstance(result_type, ir.VectorType):
        return result_type
    hint = "such as fx.T.vec(4, fx.T.f32)"
    raise argument_error(f"vector.{name}: {result_type!r} is not an MLIR vector type", hint)


@_bare
def from_elements(result_type: Any, elements: Sequence[Any]) -> Vector:
    """A vector of scalars, converted to the type's elements."""
    kind = _result("from_elements", result_type)
    if prod(kind.shape) != len(elements):
        raise argument_error(f"{len(elements)} elements for a {kind}", "give as many as the vector type has")
    return Vector.from_elements(list(elements), numeric_class(kind.element_type)).reshape(tuple(kind.shape))


@_bare
def broadcast(result_type: Any, source: Any) -> Vector:
    """Broadcast a scalar, or a vector with extents of 1."""
    kind = _result("broadcast", result_type)
    if isinstance(source, Vector):
        return source.broadcast_to(tuple(kind.shape))
    return Vector.filled(tuple(kind.shape), source, numeric_class(kind.element_type))


@_bare
def bitcast(result_type: Any, source: Any) -> Vector:
    """The same bits as elements of another width."""
    kind = _result("bitcast", result_type)
    cast = as_vector("bitcast", source).bitcast(numeric_class(kind.element_type))
    return cast.reshape(tuple(kind.shape))


@_bare
def shape_cast(result_type: Any, source: Any) -> Vector:
    """The same elements with other extents."""
    return as_vector("shape_cast", source).reshape(tuple(_result("shape_cast", result_type).shape))


@_bare
def extract(vector: Any, static_position: Any = None, dynamic_position: Any = None) -> Any:
    """The element at a position. static_position: Python integers; dynamic_position: runtime ones instead."""
    return as_vector("extract", vector)[tuple(_one_position(static_position, dynamic_position))]


@_bare
def extractelement(vector: Any, position: Any) -> Any:
    """The element at a static or runtime position."""
    return as_vector("extractelement", vector)[position]


@_bare
def insertelement(vector: Any, value: Any, position: Any) -> Vector:
    """The vector with another element at a static or runtime position; one past the end is the last element's."""
    whole = as_vector("insertelement", vector)
    number = as_numeric(position)
    static, operands = ir.ShapedType.get_dynamic_size(), []
    if number.is_static:
        static = int(number)
        if not 0 <= static < whole.numel:
            raise argument_error(f"element {static} of a vector of {whole.numel}", "elements count from 0")
    else:
        operands = [runtime_position(number, whole.numel)]
    attributes = {"static_position": ir.DenseI64ArrayAttr.get([static])}
    values = [whole.dtype.exactly(value).ir_value(), whole.value, *operands]
    return Vector(emit("vector.insert", values, [whole.value.type], attributes).result, whole.shape, whole.dtype)


def insert(
    value: Any, vector: Any, position: Any = None, *, static_position: Any = None, dynamic_position: Any = None
) -> Vector:
    """`insertelement` with MLIR's order of operands. position: an integer, or a list of one.

    static_position, dynamic_position: the position as MLIR's builder takes it; if the static one is MLIR's mark of a
    dynamic size, the dynamic one counts.
    """
    if position is None:
        position = _one_position(static_position, dynamic_position)
    if isinstance(position, tuple | list):
        if len(position) != 1:
            raise argument_error(
                f"the position of insert must be an integer, or a list of one, got {position!r}",
                "pass [0], for example",
            )
        (position,) = position
    return insertelement(vector, value, position)


def _one_position(static: Sequence[int] | None, dynamic: Sequence[Any] | None) -> list[Any]:
    """Positions as MLIR's builders take them, as one list."""
    runtime = iter(dynamic or ())
    if not static:
        return list(runtime)
    return [next(runtime) if number == ir.ShapedType.get_dynamic_size() else number for number in static]


@_bare
def shuffle(first: Any, second: Any, mask: Sequence[int]) -> Vector:
    """Elements of two vectors by their numbers; those of the second follow those of the first."""
    return as_vector("shuffle", first).shuffle(second, mask)


def to_elements(vector: Any) -> list[Any]:
    """The scalars of a vector."""
    whole = as_vector("to_elements", vector)
    return [whole[position] for position in range(whole.numel)]


@_bare
def reduction(result_type: Any, kind: Any, vector: Any, acc: Any = None, fastmath: Any = None) -> Any:
    """Combine all elements. kind: "add", "mul", "minsi", "maximumf", ..., or MLIR's CombiningKind."""
    name = str(kind).removeprefix("#vector.kind<").removesuffix(">").lower()
    for suffix in ("imumf", "numf", "si", "ui"):
        name = name.removesuffix(suffix) if name.startswith(("max", "min")) else name
    whole = as_vector("reduction", vector)
    if result_type is not None and result_type != whole.dtype.ir_type:
        raise argument_error(
            f"vector.reduction of {whole!r} to {result_type}", "the result has the type of the elements"
        )
    return whole.reduce(name, acc, fastmath=fastmath)


def fma(lhs: Any, rhs: Any, acc: Any) -> Any:
    """lhs * rhs + acc with one rounding."""
    return math.fma(lhs, rhs, acc)


def store(
    value: Any, memref: Any, indices: Sequence[Any], *, nontemporal: bool | None = None, alignment: int | None = None
) -> None:
    """Write a vector's elements contiguously to a tensor, from the one at `indices` on.

    nontemporal: they are not read again soon, which an access of an MLIR memref tells the caches. alignment: in bytes.
    """
    vector_memory.store(as_vector("store", value), memref, indices, alignment, nontemporal)


@_bare
def load(
    result_type: Any,
    memref: Any,
    indices: Sequence[Any],
    *,
    nontemporal: bool | None = None,
    alignment: int | None = None,
) -> Vector:
    """Read contiguous elements of a tensor, from the one at `indices` on. nontemporal, alignment: as of `store`."""
    return vector_memory.load(_result("load", result_type), memref, indices, alignment, nontemporal)


load_op = load


def __getattr__(name: str) -> Any:
    """MLIR's operation class or function of the name; it takes values of the DSL, and gives values with operators."""
    found = None if name.startswith("_") else getattr(upstream("vector"), name, None)
    if isinstance(found, type) and issubclass(found, ir.OpView):
        return MlirBuilder(found)
    if isinstance(found, FunctionType) and found.__module__.startswith("mlir.dialects._vector"):
        builder = MlirBuilder(found)
        return lambda *arguments, **named: with_operators(builder(*arguments, **named))
    return _unknown(name)


_unknown = unknown_name(__name__, globals())
