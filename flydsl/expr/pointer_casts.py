"""Pointers as integers, and back."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.dialect.location import user_location
from flydsl.dialect.types import PointerType, fly_type
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit
from flydsl.expr.numeric import Int32, Int64, Integer
from flydsl.expr.pointer import Pointer

__all__ = ["inttoptr", "ptrtoint"]

# LLVM's number of an address space, and the integers that hold its addresses.
_SPACES: dict[str, tuple[int, type[Integer]]] = {"generic": (0, Int64), "global": (1, Int64), "shared": (3, Int32)}


def ptrtoint(pointer: Any) -> Any:
    """The address of a pointer, in bytes: Int64, in shared memory Int32, which counts from the start of the LDS."""
    kind = fly_type(pointer.value.type) if isinstance(pointer, Pointer) else None
    if kind is None:
        raise ArgumentError(f"ptrtoint takes a pointer, not {pointer!r}", at=user_location())
    space, dtype = _space("ptrtoint", kind)
    raw = emit("builtin.unrealized_conversion_cast", [pointer.value], [_llvm_pointer(space)]).result
    return dtype.of(emit("llvm.ptrtoint", [raw], [dtype.ir_type]).result)


def inttoptr(result_type: Any, address: Any) -> Pointer:
    """A pointer from an address in bytes; that there is such memory, and so aligned, is the author's promise.

    result_type: `fx.PointerType.get(fx.Float32, fx.AddressSpace.Global)`.
    """
    if not isinstance(result_type, PointerType):
        hint = "fx.PointerType.get(fx.Float32, fx.AddressSpace.Global)"
        raise ArgumentError(f"inttoptr: {result_type!r} is not a pointer type", at=user_location(), hint=hint)
    space, dtype = _space("inttoptr", result_type)
    raw = emit("llvm.inttoptr", [dtype(address).ir_value()], [_llvm_pointer(space)]).result
    return Pointer(emit("builtin.unrealized_conversion_cast", [raw], [result_type.ir]).result)


def _space(what: str, kind: PointerType) -> tuple[int, type[Integer]]:
    if kind.space not in _SPACES:
        raise ArgumentError(f"{what} of {kind}: {kind.space} has no addresses in bytes", at=user_location())
    return _SPACES[kind.space]


def _llvm_pointer(space: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")
