"""Arguments of a program's own classes: `JitArgumentRegistry`.

    @JitArgumentRegistry.register(Interval, dsl_type=DslInterval)
    class IntervalArgument:
        def __init__(self, value: Interval) -> None: ...
        def __get_ir_types__(self) -> list[ir.Type]: ...              # numbers: i32, i64, f32, ...
        def __get_c_pointers__(self) -> list[ctypes.c_void_p]: ...    # where each number lies

Inside the launcher the argument is a `DslInterval`, made by `__construct_from_ir_values__`. The methods may also be
spelt `__ir_types__` and `__c_pointers__`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from flydsl.compiler.arguments import Adapted, custom_argument
from flydsl.compiler.signature import OWN, Parameter
from flydsl.dialect.context import context
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError

_TYPES_METHODS = ("__get_ir_types__", "__ir_types__")
_POINTERS_METHODS = ("__get_c_pointers__", "__c_pointers__")


class JitArgumentRegistry:
    """The classes whose values a launcher takes, besides tensors and numbers."""

    _adaptors: ClassVar[dict[type, Callable[[Parameter, Any], Adapted]]] = {}

    @classmethod
    def register(cls, python_type: type, *, dsl_type: Any) -> Callable[[type], type]:
        """Register a Python type: launchers take its values through the class that is decorated with this.

        dsl_type: what the value is inside, a class with `__construct_from_ir_values__`.
        """
        if not isinstance(python_type, type) or not hasattr(dsl_type, "__construct_from_ir_values__"):
            raise ArgumentError(
                f"JitArgumentRegistry.register({python_type!r}, dsl_type={dsl_type!r}): a Python class, and one with "
                "__construct_from_ir_values__",
                at=user_location(),
                hint="register(PythonClass, dsl_type=ClassOfTheKernel)",
            )

        def decorate(argument_class: type) -> type:
            cls._adaptors[python_type] = lambda parameter, value: _adapted(parameter, argument_class(value), dsl_type)
            return argument_class

        return decorate

    @classmethod
    def find(cls, kind: type) -> Callable[[Parameter, Any], Adapted] | None:
        """The adaptor of values of a type, or of its nearest base class that has one; None if there is none."""
        return next((cls._adaptors[base] for base in kind.__mro__ if base in cls._adaptors), None)


OWN.append(lambda kind: JitArgumentRegistry.find(kind) is not None)


def _adapted(parameter: Parameter, argument: Any, dsl_type: Any) -> Adapted:
    with context():
        types = tuple(str(kind) for kind in _call(parameter, argument, _TYPES_METHODS))
    pointers = _call(parameter, argument, _POINTERS_METHODS)
    if len(types) != len(pointers):
        raise ArgumentError(
            f"{parameter.name}: {type(argument).__name__} has {len(types)} types and {len(pointers)} pointers",
            at=user_location(),
            hint="__get_ir_types__ and __get_c_pointers__ give one of each for every argument of the compiled launcher",
        )
    made = custom_argument(dsl_type, types)
    return made, [_number(code, pointer) for code, pointer in zip(made.codes(), pointers, strict=True)]


def _call(parameter: Parameter, argument: Any, methods: tuple[str, ...]) -> list[Any]:
    for name in methods:
        if hasattr(argument, name):
            return list(getattr(argument, name)())
    raise ArgumentError(
        f"{parameter.name}: {type(argument).__name__} has no {methods[0]}",
        at=user_location(),
        hint="a class of launchers' arguments has the methods of JitArgument, in flydsl.compiler.protocol",
    )


def _number(code: str, pointer: Any) -> Any:
    """The number of a struct code at a C pointer."""
    address = ctypes.cast(pointer, ctypes.c_void_p).value
    if not address:
        raise ArgumentError(
            "a null pointer to a launcher's argument",
            at=user_location(),
            hint="__get_c_pointers__ gives addresses of memory that holds the values",
        )
    return struct.unpack(code, ctypes.string_at(address, struct.calcsize(code)))[0]
