"""Loads and stores of values of a type, and pointers made of addresses."""

from __future__ import annotations

import numpy as np
from mlir import ir

from flydsl.interpreter.elements import Array, from_bytes, size_bytes, to_bytes
from flydsl.interpreter.execution import Execution
from flydsl.interpreter.memory import Pointer


def load(x: Execution, pointer: Pointer, kind: ir.Type) -> Array:
    """The value of a type at a pointer."""
    return from_bytes(pointer.space.load(pointer.address, size_bytes(kind), x.mask, x.fault), kind)


def store(x: Execution, value: Array, kind: ir.Type, pointer: Pointer) -> None:
    """Write a value of a type at a pointer."""
    x.stores += 1
    pointer.space.store(pointer.address, to_bytes(value, kind), x.mask, x.fault)


def pointer_at(x: Execution, space: str, address: Array) -> Pointer:
    """A pointer to an address in global or generic memory, or in LDS ("shared")."""
    return Pointer(x.shared if space == "shared" else x.memory, address.astype(np.int64))
