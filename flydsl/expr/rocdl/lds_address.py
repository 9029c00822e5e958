"""Addresses in LDS, of whatever a program has there."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.dialect.elements import llvm_pointer_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Index, Int32, as_numeric, is_python_number
from flydsl.expr.rocdl.intrinsic import llvm_pointer
from flydsl.expr.tracing.emit import emit

_LDS = 3


def lds_address(what: str, place: Any, byte_offset: Any = 0) -> Int32:
    """The address in bytes of a place in LDS.

    place: a tensor, pointer or storage of the DSL, a SmemPtr, a memref, an LLVM pointer to LDS, or an address.
    """
    return Int32(_base(what, place)) + Int32(byte_offset)


def _base(what: str, place: Any) -> Any:
    if isinstance(place, ArithValue) or is_python_number(place):
        return place
    if isinstance(place, ir.Value) and isinstance(place.type, ir.MemRefType):
        index = emit("memref.extract_aligned_pointer_as_index", [place], [Index.ir_type]).result
        return Index.of(index)
    if isinstance(place, ir.Value) and isinstance(place.type, ir.IndexType | ir.IntegerType):
        return as_numeric(place)
    pointer = llvm_pointer(what, place, _LDS)
    return Int32.of(emit("llvm.ptrtoint", [pointer], [Int32.ir_type]).result)


def lds_pointer(what: str, place: Any, byte_offset: Any = None) -> ir.Value:
    """A place in LDS, as of `lds_address`, as `!llvm.ptr<3>`."""
    is_number = isinstance(place, ArithValue) or is_python_number(place)
    is_memref = isinstance(place, ir.Value) and isinstance(place.type, ir.MemRefType)
    if byte_offset is None and not is_number and not is_memref:
        return llvm_pointer(what, place, _LDS)
    if is_number and isinstance(place, float):
        raise argument_error(f"{what}: {place!r} is not an address in LDS", how_to_make.SHARED_POINTER)
    address = lds_address(what, place, 0 if byte_offset is None else byte_offset)
    return emit("llvm.inttoptr", [address.ir_value()], [llvm_pointer_type(_LDS)]).result
