"""Values of structs: named numbers that a kernel makes, passes on, and carries through loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from mlir import ir

from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.numeric import Numeric


class StructValue(SimpleNamespace):
    """A value of a struct whose fields are numbers or such structs. Fields are given in order or by name.

    A field that is set becomes the field's type. Like other namespaces, it is taken apart at the edges of loops and
    branches, where its fields may change.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        kinds = value_fields(type(self))
        given = dict(zip(kinds, values, strict=False)) | named
        doubled = [name for name in list(kinds)[: len(values)] if name in named]
        if len(values) > len(kinds) or doubled or set(given) != set(kinds):
            raise ArgumentError(
                f"{type(self).__name__} has the fields {', '.join(kinds)}, and got {len(values)} values in order"
                f"{''.join(f', {name}=' for name in named)}",
                at=user_location(),
            )
        for name in kinds:
            setattr(self, name, given[name])

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = value_fields(type(self))
        if name not in kinds:
            raise ArgumentError(
                f"{type(self).__name__} has no field {name!r}", at=user_location(), hint=f"it has {', '.join(kinds)}"
            )
        kind = kinds[name]
        if issubclass(kind, Numeric):
            value = kind(value)
        elif not isinstance(value, kind):
            raise ArgumentError(f"{type(self).__name__}.{name} is a {kind.__name__}, got {value!r}", at=user_location())
        super().__setattr__(name, value)

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        """The values of all fields, in order."""
        return [number.ir_value() for number in self.numbers()]

    def numbers(self) -> list[Any]:
        """The numbers of all fields, in order."""
        fields = vars(self).values()
        return [n for field in fields for n in (field.numbers() if isinstance(field, StructValue) else [field])]

    @classmethod
    def __construct_from_ir_values__(cls, values: list[ir.Value]) -> StructValue:
        """Make a value from the values of its fields."""
        return _constructed(cls, iter(values))


def value_fields(cls: Any) -> dict[str, Any]:
    """The fields of a struct by name, with the types of their values."""
    kinds = {name: kind for name, (_, kind) in cls.dsl_fields.places.items()}
    return {name: k if issubclass(k, Numeric | StructValue) else k.dtype for name, k in kinds.items()}


def _constructed(cls: type[StructValue], values: Iterator[ir.Value]) -> StructValue:
    made = cls.__new__(cls)
    for name, kind in value_fields(cls).items():
        value = kind.of(next(values)) if issubclass(kind, Numeric) else _constructed(kind, values)
        vars(made)[name] = value
    return made
