"""The protocols for a program's own classes: `DslType` inside a kernel, `JitArgument` outside."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from mlir import ir

from flydsl.compiler.arguments.argument import Argument
from flydsl.compiler.arguments.signature import Parameter
from flydsl.compiler.jit_argument import adapt
from flydsl.errors import ArgumentError
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory.storage import peek_from_ptr, poke_into_ptr
from flydsl.expr.memory.tensors import Pointer
from flydsl.expr.struct import align_of as dsl_align_of
from flydsl.expr.struct import size_of as dsl_size_of
from flydsl.expr.tracing.protocol import DslType, construct_from_ir_values, extract_to_ir_values, get_ir_types
from flydsl.runtime.interface import Device

__all__ = [
    "DslType", "JitArgument", "Storable", "c_abi_spec", "cache_signature", "construct_from_ir_values", "dsl_align_of",
    "dsl_size_of", "extract_to_ir_values", "fly_types", "fly_values", "get_c_pointers", "get_ir_types", "peek_from_ptr",
    "poke_into_ptr",
]  # fmt: skip

# The names before FlyDSL 0.2, which some programs have kept.
fly_types, fly_values = get_ir_types, extract_to_ir_values

_C_TYPES: dict[str, type[Any]] = {
    "?": ctypes.c_bool, "b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64,
    "B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32, "Q": ctypes.c_uint64, "f": ctypes.c_float,
    "d": ctypes.c_double, "16s": ctypes.c_char * 16,
}  # fmt: skip


@runtime_checkable
class JitArgument(Protocol):
    """An argument of a launcher: the types that it passes, and the addresses of the numbers that it passes."""

    def __get_ir_types__(self) -> list[ir.Type]: ...

    def __get_c_pointers__(self) -> list[ctypes.c_void_p]: ...


@runtime_checkable
class Storable(Protocol):
    """A type of memory of a program's own: its size and alignment in bytes, and how it is read and written."""

    @classmethod
    def __dsl_size_of__(cls) -> int: ...

    @classmethod
    def __dsl_align_of__(cls) -> int: ...

    @classmethod
    def __peek_from_ptr__(cls, ptr: Pointer) -> Any: ...

    @classmethod
    def __poke_into_ptr__(cls, ptr: Pointer, value: Any) -> None: ...


def cache_signature(value: Any) -> Hashable:
    """The part of a launcher's argument that a compilation depends on: values of equal signatures share compiled code.

    >>> cache_signature(3) == cache_signature(4), cache_signature(3) == cache_signature(4.0)
    (True, False)
    """
    if hasattr(value, "__cache_signature__"):
        return cast(Hashable, value.__cache_signature__())
    try:
        return adapt(Parameter("value", None), value)[0]
    except ArgumentError as error:
        error.hint = "a class of your own has __cache_signature__, which returns it"
        raise


def c_abi_spec(value: Any) -> list[tuple[type[Any], Callable[[Any, Any], None]]]:
    """The C parameters by which a compiled launcher takes a number, or a container of numbers: (type, fill) of each.

    fill: `fill(value, slot)` sets `slot.value`, of that type, from a value of the same `cache_signature`.

    >>> [(kind, fill)] = c_abi_spec(3)
    >>> slot = kind()
    >>> fill(4, slot)
    >>> slot
    c_int(4)
    """
    argument = adapt(Parameter("value", None), value)[0]
    if argument.device is not None:
        raise ArgumentError(f"c_abi_spec of {argument.describe()}: tensors have an address only in a launch")
    return [(_C_TYPES[code], partial(_fill, argument, number)) for number, code in enumerate(argument.codes())]


def get_c_pointers(value: Any) -> list[ctypes.c_void_p]:
    """Addresses of the numbers by which a compiled launcher takes a value; each keeps its number in memory.

    >>> import struct
    >>> [pointer] = get_c_pointers(3)
    >>> struct.unpack("i", ctypes.string_at(pointer, 4))
    (3,)
    """
    if hasattr(value, "__get_c_pointers__"):
        return list(value.__get_c_pointers__())
    slots = [(kind(), fill) for kind, fill in c_abi_spec(value)]
    for slot, fill in slots:
        fill(value, slot)
    return [ctypes.cast(ctypes.pointer(slot), ctypes.c_void_p) for slot, _ in slots]


def _fill(argument: Argument, number: int, value: Any, slot: Any) -> None:
    given, payload = adapt(Parameter("value", None), value)
    if given is not argument:
        raise ArgumentError(f"a value of another kind: {given.describe()}, not {argument.describe()}")
    slot.value = list(argument.flat("value", payload, cast(Device, None), None))[number]


__getattr__ = unknown_name(__name__, globals())
