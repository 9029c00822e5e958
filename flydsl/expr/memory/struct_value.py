"""Values of structs: named values that a kernel makes, passes on, and carries through loops and branches."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any, ClassVar

from mlir import ir

from flydsl.dialect.location import argument_error
from flydsl.errors import ArgumentError
from flydsl.expr.numeric import Numeric


class Known:
    """The type of a field that is known at compile time: the values of the struct have it in their type."""

    def __init__(self, kind: type | None) -> None:
        self.kind = kind

    @property
    def __name__(self) -> str:
        return f"Constexpr[{self.kind.__name__ if self.kind else ''}]"

    def check(self, where: str, value: Any) -> None:
        """Raise ArgumentError for a value of another type, or one that cannot be part of a type."""
        if self.kind is not None and not isinstance(value, self.kind):
            raise argument_error(f"{where} must be {self.__name__}, got {value!r}", "pass a value of that type")
        try:
            hash(value)
        except TypeError:
            raise argument_error(
                f"{where} is known at compile time, so it must be hashable; {value!r} is not",
                "pass a tuple for a list, a frozen dataclass for an object",
            ) from None


class StructValue(SimpleNamespace):
    """A value of a struct. Fields are given in order or by name.

    A field that is set becomes the field's type. Like other namespaces, it is taken apart at the edges of loops and
    branches, where its fields may change; fields that are known at compile time cannot.

    value_kinds: the types of the fields, and known_values: of those that are known at compile time, which a class of
    its own has for each choice of them.
    """

    value_kinds: ClassVar[dict[str, Any]]
    known_values: ClassVar[dict[str, Any]] = {}

    def __init__(self, *values: Any, **named: Any) -> None:
        kinds = self.value_kinds
        given = dict(zip(kinds, values, strict=False)) | named
        wrong = _wrong_fields(list(kinds), len(values), named)
        if wrong:
            raise argument_error(
                f"{type(self).__name__} has the fields {', '.join(kinds)}: {wrong}", "pass one value for each field"
            )
        self.__class__ = _with_known(type(self), given)
        for name in runtime_fields(type(self)):
            setattr(self, name, given[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__class__":
            return super().__setattr__(name, value)
        kind, where = self.value_kinds.get(name), f"{type(self).__name__}.{name}"
        if kind is None:
            raise argument_error(
                f"{type(self).__name__} has no field {name!r}", f"it has {', '.join(self.value_kinds)}"
            )
        if isinstance(kind, Known):
            raise argument_error(
                f"{where} is known at compile time: it cannot change",
                "annotate the field with a type of run time, or make another struct",
            )
        if issubclass(kind, Numeric):
            value = kind.taken(where, value)
        elif not isinstance(value, kind) and not (_is_memory(kind) and _is_of_the_host(value)):
            raise argument_error(f"{where} must be a {kind.__name__}, got {value!r}", "convert it: value.to(dtype)")
        return super().__setattr__(name, value)

    def __eq__(self, other: object) -> Any:
        """True if a value of the same struct has the same fields."""
        return type(self) is type(other) and SimpleNamespace.__eq__(self, other)

    def __ne__(self, other: object) -> Any:
        return not self == other

    __hash__ = None  # fields may change

    def replace(self, **changes: Any) -> StructValue:
        """The same value with other fields."""
        return struct_of(type(self))(**({name: getattr(self, name) for name in self.value_kinds} | changes))

    def __extract_to_ir_values__(self) -> list[ir.Value]:
        """The values of all fields, in order."""
        return [value for field in vars(self).values() for value in _ir_values(field)]

    def __get_ir_types__(self) -> list[ir.Type]:
        """The types of the values of all fields, in order."""
        return [value.type for value in self.__extract_to_ir_values__()]

    @classmethod
    def __construct_from_ir_values__(cls, values: list[ir.Value]) -> StructValue:
        """Make a value from the values of its fields."""
        return _constructed(cls, iter(values))


def _wrong_fields(names: list[str], in_order: int, named: dict[str, Any]) -> str:
    """A description of wrong fields that a struct is given; empty if there are none."""
    if in_order > len(names):
        return f"it got {in_order} values in order"
    given = names[:in_order]
    if twice := [name for name in given if name in named]:
        return f"it got {', '.join(twice)} twice"
    if unexpected := [name for name in named if name not in names]:
        return f"it got the unexpected field {', '.join(unexpected)}"
    missing = [name for name in names if name not in given and name not in named]
    return f"it is missing required field {', '.join(missing)}" if missing else ""


def struct_of(cls: type[StructValue]) -> type[StructValue]:
    """The struct of values of a class: the class itself, without the fields that are known at compile time."""
    return cls.__mro__[1] if cls.known_values else cls


def runtime_fields(cls: type[StructValue]) -> dict[str, Any]:
    """The fields that values have at run time, by name, with their types."""
    return {name: kind for name, kind in cls.value_kinds.items() if not isinstance(kind, Known)}


def _with_known(cls: Any, given: dict[str, Any]) -> type[StructValue]:
    known = {name: given[name] for name, kind in cls.value_kinds.items() if isinstance(kind, Known)}
    for name, value in known.items():
        cls.value_kinds[name].check(f"{cls.__name__}.{name}", value)
    if not known or cls.known_values == known:
        return cls
    base: Any = struct_of(cls)
    return _specialised(base, tuple((name, type(value), value) for name, value in known.items()))


@cache
def _specialised(cls: Any, known: tuple[tuple[str, type, Any], ...]) -> type[StructValue]:
    values = {name: value for name, _, value in known}
    shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return type(f"{cls.__name__}[{shown}]", (cls,), {**values, "known_values": values, "__module__": cls.__module__})


def _is_memory(kind: type) -> bool:
    """True for tensors, pointers and other values of the fly dialect."""
    return hasattr(kind, "operand") and not issubclass(kind, StructValue)


def _is_of_the_host(value: Any) -> bool:
    """True for what a launcher is called with, such as a torch tensor: the launcher says whether it takes it."""
    return not isinstance(value, Numeric | StructValue) and not _is_memory(type(value))


def _ir_values(field: Any) -> list[ir.Value]:
    if isinstance(field, Numeric):
        return [field.ir_value()]
    if hasattr(field, "__extract_to_ir_values__"):
        return list(field.__extract_to_ir_values__())
    return [field.value]


def _constructed(cls: type[StructValue], values: Iterator[ir.Value]) -> StructValue:
    if any(isinstance(kind, Known) for kind in cls.value_kinds.values()) and not cls.known_values:
        raise ArgumentError(
            f"a {cls.__name__} of runtime values alone: it has fields that are known at compile time",
            hint="call the class with a value for each field",
        )
    made = cls.__new__(cls)
    for name, kind in runtime_fields(cls).items():
        vars(made)[name] = _field_of(kind, values)
    return made


def _field_of(kind: Any, values: Iterator[ir.Value]) -> Any:
    if issubclass(kind, StructValue):
        return _constructed(kind, values)
    if is_own_value(kind):
        return kind.__construct_from_ir_values__(list(islice(values, _value_count(kind))))
    return kind.of(next(values)) if issubclass(kind, Numeric) else kind(next(values))


def is_own_value(kind: Any) -> bool:
    """True for vectors and for a program's own class that follows the protocol of `DslType`."""
    methods = ("__construct_from_ir_values__", "__extract_to_ir_values__")
    return all(hasattr(kind, name) for name in methods) and not (issubclass(kind, Numeric) or _is_memory(kind))


def _value_count(kind: Any) -> int:
    """The number of values of one of a program's own classes, by its class method `__get_ir_types__`; one without that.

    As FlyDSL does; a method of values alone cannot be asked of the class.
    """
    types = getattr(kind, "__get_ir_types__", None)
    return len(types()) if inspect.ismethod(types) else 1
