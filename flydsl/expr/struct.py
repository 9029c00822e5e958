"""Types of memory with several parts: `fx.Array`, `@fx.struct`, `@fx.union`.

    @fx.struct
    class Tiles:
        a: fx.Array[fx.Float16, 4096, 16]     # 4096 elements, aligned to 16 bytes
        flag: fx.Int32

Fields lie one after another, each at its alignment, as in C; those of a union all begin at 0. `fx.SharedAllocator`
gives memory of such a type. `Point(x, y=1.0)` is a value of a struct whose fields are numbers, or structs of numbers;
values of unions, and of structs with arrays, are unsupported.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NoReturn

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.names import unknown_name
from flydsl.expr.numeric import Numeric
from flydsl.expr.struct_value import StructValue

__all__ = ["Align", "Array", "is_composite_type", "is_struct_type", "struct", "union"]

_MAX_ALIGNMENT_BYTES = 128


class Array:
    """`fx.Array[dtype, size, align]`: `size` contiguous numbers. align: in bytes, by default the size of one number."""

    dtype: ClassVar[type[Numeric]]
    size: ClassVar[int]
    align: ClassVar[int]

    def __class_getitem__(cls, parameters: Any) -> type[Array]:
        given = parameters if isinstance(parameters, tuple) else (parameters,)
        if len(given) not in (2, 3):
            raise ArgumentError(f"fx.Array[{parameters!r}]: a type, a size, and an alignment", at=user_location())
        dtype, size, align = (*given, None)[:3]
        _check_number("fx.Array", dtype)
        if not isinstance(size, int) or size < 1:
            raise ArgumentError(f"fx.Array of {size!r} elements: an integer from 1 on", at=user_location())
        return _array(dtype, size, align_of(dtype) if align is None else _checked_alignment(align))


class Align:
    """`fx.Align[type, align]`: a type with an alignment, in bytes, larger than its own."""

    dtype: ClassVar[Any]
    align: ClassVar[int]

    def __class_getitem__(cls, parameters: Any) -> type[Align]:
        if not isinstance(parameters, tuple) or len(parameters) != 2:
            raise ArgumentError(f"fx.Align[{parameters!r}]: a type and an alignment", at=user_location())
        dtype, align = parameters
        return _align(dtype, max(_checked_alignment(align), align_of(dtype)))


@cache
def _array(dtype: type[Numeric], size: int, align: int) -> type[Array]:
    name = f"Array[{dtype.__name__}, {size}, {align}]"
    return type(name, (Array,), {"dtype": dtype, "size": size, "align": align})


@cache
def _align(dtype: Any, align: int) -> type[Align]:
    return type(f"Align[{dtype.__name__}, {align}]", (Align,), {"dtype": dtype, "align": align})


def _checked_alignment(align: Any) -> int:
    if not isinstance(align, int) or align < 1 or align & (align - 1) or align > _MAX_ALIGNMENT_BYTES:
        raise ArgumentError(
            f"an alignment of {align!r} bytes: a power of two up to {_MAX_ALIGNMENT_BYTES}", at=user_location()
        )
    return align


def _check_number(what: str, dtype: Any) -> None:
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric) and hasattr(dtype, "mlir_name")):
        raise ArgumentError(f"{what} of {dtype!r}: a scalar type", at=user_location(), hint="such as fx.Float16")
    if dtype.width % 8:
        raise ArgumentError(f"{what} of {dtype.__name__}: {dtype.width} bits are not whole bytes", at=user_location())


@dataclass(frozen=True)
class Fields:
    """The parts of a struct or union: name -> (offset in bytes, type)."""

    places: Mapping[str, tuple[int, Any]]
    size: int
    align: int
    is_union: bool


def struct(cls: type) -> type:
    """Make a class with annotated fields a type of memory. The fields follow one another."""
    return _composite(cls, is_union=False)


def union(cls: type) -> type:
    """Make a class with annotated fields a type of memory. The fields share it, so only one is in use at a time."""
    return _composite(cls, is_union=True)


def _composite(cls: type, is_union: bool) -> type:
    places: dict[str, tuple[int, Any]] = {}
    end, align = 0, 1
    for name, kind in _annotations(cls).items():
        if name.startswith("_") or name in ("peek", "poke", "numbers"):
            raise ArgumentError(f"{cls.__name__}.{name}: a field cannot have this name", at=user_location())
        start = 0 if is_union else -(-end // align_of(kind)) * align_of(kind)
        places[name] = start, kind
        end, align = max(end, start + size_of(kind)), max(align, align_of(kind))
    if not places:
        raise ArgumentError(f"{cls.__name__} has no annotated fields", at=user_location())
    fields = Fields(places, -(-end // align) * align, align, is_union)
    members = {"dsl_fields": fields, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if is_union or not all(_is_value_field(kind) for _, kind in places.values()):
        return type(cls.__name__, (cls,), {**members, "__init__": _no_values})
    return type(cls.__name__, (cls, StructValue), members)


def _is_value_field(kind: Any) -> bool:
    """True if a value can have a field of a type."""
    inner = kind.dtype if issubclass(kind, Align) else kind
    return issubclass(inner, Numeric | StructValue)


def _annotations(cls: type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls, eval_str=True)
    except NameError as error:
        raise ArgumentError(
            f"the fields of {cls.__name__}: {error}",
            at=user_location(),
            hint="with `from __future__ import annotations`, field types must be names of the module",
        ) from None


def _no_values(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    raise TraceError(
        f"unsupported: a value of {type(self).__name__}",
        at=user_location(),
        hint="it is a type of memory: fx.SharedAllocator().allocate(...)",
    )


def is_composite_type(kind: Any) -> bool:
    """True if a type is a struct or a union."""
    return isinstance(kind, type) and isinstance(getattr(kind, "dsl_fields", None), Fields)


def is_struct_type(kind: Any) -> bool:
    """True if a type is a struct."""
    return is_composite_type(kind) and not fields_of(kind).is_union


def fields_of(kind: Any) -> Fields:
    """The parts of a struct or union."""
    return kind.dsl_fields


def size_of(kind: Any) -> int:
    """Number of bytes that a type takes in memory."""
    if is_composite_type(kind):
        return fields_of(kind).size
    if isinstance(kind, type) and issubclass(kind, Align):
        return -(-size_of(kind.dtype) // kind.align) * kind.align
    if isinstance(kind, type) and issubclass(kind, Array) and hasattr(kind, "size"):
        return kind.size * size_of(kind.dtype)
    _check_number("memory", kind)
    return kind.width // 8


def align_of(kind: Any) -> int:
    """The alignment of a type in bytes."""
    if is_composite_type(kind):
        return fields_of(kind).align
    if isinstance(kind, type) and issubclass(kind, Align | Array) and hasattr(kind, "align"):
        return kind.align
    return size_of(kind)


__getattr__ = unknown_name(__name__, globals())
