"""The protocols for a program's own classes: `DslType` inside a kernel, `JitArgument` outside."""

from __future__ import annotations

import ctypes
from typing import Protocol, runtime_checkable

from mlir import ir

from flydsl.expr.names import unknown_name
from flydsl.expr.protocol import DslType, construct_from_ir_values, extract_to_ir_values, get_ir_types
from flydsl.expr.struct import align_of as dsl_align_of
from flydsl.expr.struct import size_of as dsl_size_of

__all__ = [
    "DslType",
    "JitArgument",
    "construct_from_ir_values",
    "dsl_align_of",
    "dsl_size_of",
    "extract_to_ir_values",
    "get_ir_types",
]


@runtime_checkable
class JitArgument(Protocol):
    """An argument of a launcher: the types that it passes, and the addresses of the numbers that it passes."""

    def __get_ir_types__(self) -> list[ir.Type]: ...

    def __get_c_pointers__(self) -> list[ctypes.c_void_p]: ...


__getattr__ = unknown_name(__name__, globals())
