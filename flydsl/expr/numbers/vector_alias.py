"""Vector types by name: `fx.Float32x4`, or `fx.VectorAlias(fx.Float32, 4)`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.expr import numeric
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Numeric, is_python_number, require_numeric

if TYPE_CHECKING:
    from flydsl.expr.kinds import ScalarType

__all__ = ["VectorAlias"]

_NAME = re.compile(r"(\w+?)x(\d+)")
_MAX_BITS = 256


class VectorType(type(Vector)):  # type: ignore[misc]  # mypy takes a metaclass that is computed for none
    """The class of vector types: their elements, extents and MLIR type."""

    element: type[Numeric]
    lanes: tuple[int, ...]

    @property
    def ir_type(cls) -> ir.Type:
        """The MLIR type."""
        return Vector.make_type(cls.lanes, cls.element)

    def __call__(cls, value: Any, shape: Any = None, dtype: Any = None) -> Vector:
        """A vector of this type: of scalars, of one scalar everywhere, or of another vector's elements, converted.

        shape, dtype: as for any Vector; they can only be those of the type.
        """
        if shape not in (None, cls.lanes, *cls.lanes) or dtype not in (None, cls.element):
            raise argument_error(f"{cls.__name__} with another shape or type: {shape}, {dtype}", "fx.Vector takes any")
        if isinstance(value, tuple | list):
            made = Vector.from_elements(list(value), cls.element)
        elif isinstance(value, ir.Value) and isinstance(value.type, ir.VectorType):
            made = Vector(value)
        elif isinstance(value, Numeric) or is_python_number(value):
            return Vector.filled(cls.lanes, value, cls.element)
        else:
            made = Vector(value)
        if made.numel != prod(cls.lanes):
            raise argument_error(f"{cls.__name__} of {made.numel} elements", f"it has {prod(cls.lanes)}")
        return made.to(cls.element).reshape(cls.lanes)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Vector) and (value.dtype, value.shape) == (cls.element, cls.lanes)


def VectorAlias(alias_dtype: ScalarType, lanes: int) -> type[Vector]:
    """The type of vectors of an element type; the same one each time. lanes: the extents, or one extent."""
    element = require_numeric("VectorAlias", alias_dtype)
    extents = tuple(lanes) if isinstance(lanes, tuple | list) else (lanes,)
    if not extents or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in extents):
        raise argument_error(f"VectorAlias of {lanes!r} lanes", "pass fx.VectorAlias(fx.Float32, 4)")
    return _alias(element, tuple(map(int, extents)))


@cache
def _alias(element: type[Numeric], lanes: tuple[int, ...]) -> type[Vector]:
    name = f"{element.__name__}x{'x'.join(map(str, lanes))}"
    made: Any = VectorType(name, (Vector,), {"__doc__": f"{prod(lanes)} values of {element.__name__}."})
    made.element, made.lanes = element, lanes
    return made


def vector_names(otherwise: Callable[[str], Any]) -> Callable[[str], Any]:
    """A module's `__getattr__` that knows vector types such as `Int8x16`, of at most 256 bits."""

    def __getattr__(name: str) -> Any:
        match = _NAME.fullmatch(name)
        dtype = getattr(numeric, match[1], None) if match else None
        if match and isinstance(dtype, type) and issubclass(dtype, Numeric):
            lanes = int(match[2])
            if lanes.bit_count() == 1 and lanes * dtype.width <= max(_MAX_BITS, dtype.width):
                return _alias(dtype, (lanes,))
        return otherwise(name)

    return __getattr__
