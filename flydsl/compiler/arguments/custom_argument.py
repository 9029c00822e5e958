"""Arguments of a program's own classes: `JitArgumentRegistry`.

    @JitArgumentRegistry.register(Interval, dsl_type=DslInterval)
    class IntervalArgument:
        def __init__(self, value: Interval) -> None: ...
        def __get_ir_types__(self) -> list[ir.Type]: ...              # numbers: i32, i64, f32, ...
        def __get_c_pointers__(self) -> list[ctypes.c_void_p]: ...    # where each number lies

Inside the launcher the argument is a `DslInterval`, made by `__construct_from_ir_values__`. The methods may also be
spelt `__ir_types__` and `__c_pointers__`. In place of the latter a class may have `__c_abi_spec__`, which returns
[(ctypes type, fill)] for the numbers; `fill(value, slot)` sets `slot.value` from the value that the call was given.

    JitArgumentRegistry.register(Ticket)(fx.Int32)            # a Ticket is passed as fx.Int32(ticket)

With a scalar type as `dsl_type`, such as fx.Int32, the argument is that number inside the launcher.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from flydsl.compiler.arguments.argument import STREAM, Adapted, custom_argument, scalar_argument
from flydsl.compiler.arguments.signature import OWN, Parameter
from flydsl.dialect.context import context
from flydsl.dialect.location import argument_error
from flydsl.errors import ArgumentError
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Stream

_TYPES_METHODS = ("__get_ir_types__", "__ir_types__")
_POINTERS_METHODS = ("__get_c_pointers__", "__c_pointers__")


class JitArgumentRegistry:
    """The classes whose values a launcher takes, besides tensors and numbers."""

    _adaptors: ClassVar[dict[type, Callable[[Parameter, Any], Adapted]]] = {}
    _classes: ClassVar[dict[type, tuple[Any, Any]]] = {}

    @classmethod
    def register(cls, py_type: type, *, dsl_type: Any = None) -> Callable[[type], type]:
        """Register a Python type: launchers take its values through the class that is decorated with this.

        dsl_type: what the value is inside, a class with `__construct_from_ir_values__`; by default the decorated class,
        which may be `fx.Stream` or a scalar type.
        """
        if not isinstance(py_type, type):
            raise argument_error(
                f"JitArgumentRegistry.register must be given a Python class, got {py_type!r}",
                "register(PythonClass, dsl_type=ClassOfTheKernel)",
            )
        if dsl_type is not None and not hasattr(dsl_type, "__construct_from_ir_values__"):
            raise _no_dsl_type(py_type, dsl_type)

        def decorate(argument_class: type) -> type:
            inside = argument_class if dsl_type is None else dsl_type
            if isinstance(inside, type) and issubclass(inside, Numeric | Stream):
                cls._adaptors[py_type] = lambda parameter, value: _adapted_as(parameter, argument_class(value), inside)
            elif hasattr(inside, "__construct_from_ir_values__"):
                cls._adaptors[py_type] = lambda parameter, value: _adapted(
                    parameter, value, argument_class(value), inside
                )
            else:
                raise _no_dsl_type(py_type, inside)
            cls._classes[py_type] = argument_class, inside
            return argument_class

        return decorate

    @classmethod
    def get(cls, py_type: type) -> tuple[Any, Any]:
        """The class that values of a type pass through and what they are inside; (None, None) for other types."""
        return next((cls._classes[base] for base in py_type.__mro__ if base in cls._classes), (None, None))

    @classmethod
    def find(cls, kind: type) -> Callable[[Parameter, Any], Adapted] | None:
        """The adaptor of values of a type, or of its nearest base class that has one; None if there is none."""
        return next((cls._adaptors[base] for base in kind.__mro__ if base in cls._adaptors), None)


OWN.append(lambda kind: JitArgumentRegistry.find(kind) is not None)


def _no_dsl_type(py_type: type, given: Any) -> ArgumentError:
    return argument_error(
        f"JitArgumentRegistry.register({py_type.__name__}): dsl_type must be a class with "
        f"__construct_from_ir_values__, got {given!r}"
    )


def _adapted_as(parameter: Parameter, argument: Any, inside: type[Numeric | Stream]) -> Adapted:
    """A value that is passed as a number or stream of the DSL, which it is, or which it has the address of."""
    if isinstance(argument, Stream):
        return STREAM, argument.value
    if not isinstance(argument, Numeric):
        return _number_at(parameter, argument, inside)
    kind = argument.dtype
    if not argument.is_static:
        raise argument_error(f"{parameter.name} is {argument!r}, a value of the device")
    return scalar_argument(kind), argument.value


def _number_at(parameter: Parameter, argument: Any, inside: type[Numeric | Stream]) -> Adapted:
    """The number or stream that lies where `__get_c_pointers__` says; what the class does not say is `inside`."""
    (pointer,) = _one_each(parameter, argument, _POINTERS_METHODS)
    if issubclass(inside, Stream):
        return STREAM, _number("q", pointer)
    with context():
        (given,) = _one_each(parameter, argument, _TYPES_METHODS)
        if given != inside.ir_type:
            raise argument_error(
                f"{parameter.name}: the type of {type(argument).__name__} is {given}, that of its dsl_type "
                f"{inside.__name__} is {inside.ir_type}",
                f"register it with the type that {_TYPES_METHODS[0]} returns",
            )
    made = scalar_argument(inside)
    return made, _number(made.codes()[0], pointer)


def _one_each(parameter: Parameter, argument: Any, methods: tuple[str, ...]) -> list[Any]:
    found = _call(parameter, argument, methods)
    if len(found) != 1:
        raise argument_error(
            f"{parameter.name}: {methods[0]} of {type(argument).__name__} returns {len(found)} items for one number",
            "return one, or register a class with __construct_from_ir_values__ as dsl_type",
        )
    return found


def _adapted(parameter: Parameter, value: Any, argument: Any, dsl_type: Any) -> Adapted:
    """value: as the call was given it; argument: as its class wraps it."""
    with context():
        types = tuple(str(kind) for kind in _call(parameter, argument, _TYPES_METHODS))
    if hasattr(argument, "__c_abi_spec__"):
        slots = [(kind(), fill) for kind, fill in argument.__c_abi_spec__()]
        for slot, fill in slots:
            fill(value, slot)
        return custom_argument(dsl_type, types), [slot.value for slot, _ in slots]
    pointers = _call(parameter, argument, _POINTERS_METHODS)
    if len(types) != len(pointers):
        raise argument_error(
            f"{parameter.name}: {type(argument).__name__} has {len(types)} types and {len(pointers)} pointers",
            "__get_ir_types__ and __get_c_pointers__ give one of each for every argument of the compiled launcher",
        )
    made = custom_argument(dsl_type, types)
    return made, [_number(code, pointer) for code, pointer in zip(made.codes(), pointers, strict=True)]


def _call(parameter: Parameter, argument: Any, methods: tuple[str, ...]) -> list[Any]:
    for name in methods:
        if hasattr(argument, name):
            return list(getattr(argument, name)())
    raise argument_error(
        f"{parameter.name}: {type(argument).__name__} has no {methods[0]}",
        "a class of launchers' arguments has the methods of JitArgument, in flydsl.compiler.protocol",
    )


def _number(code: str, pointer: Any) -> Any:
    """The number of a struct code at a C pointer."""
    address = ctypes.cast(pointer, ctypes.c_void_p).value
    if not address:
        raise argument_error(
            "a null pointer to a launcher's argument",
            "__get_c_pointers__ gives addresses of memory that holds the values",
        )
    return struct.unpack(code, ctypes.string_at(address, struct.calcsize(code)))[0]
