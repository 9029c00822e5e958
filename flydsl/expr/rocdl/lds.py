"""LDS accesses of one instruction."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.expr.emit import emit
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import as_type, llvm_pointer, operand, wrap

__all__ = ["ds_read_b128", "ds_write_b128"]

_LDS_SPACE = 3
_B128_ALIGNMENT_BYTES = 16


def ds_read_b128(lds_ptr: Any, offset: Any = 0) -> Any:
    """16 bytes as a vector of 4 i32.

    lds_ptr: a tensor or pointer in LDS, or a `SmemPtr`. offset: bytes. Their sum is a multiple of 16.
    """
    alignment = {"alignment": ir.IntegerAttr.get(element_type("i64"), _B128_ALIGNMENT_BYTES)}
    return wrap(emit("llvm.load", [_address("ds_read_b128", lds_ptr, offset)], [_four_words()], alignment).result)


def ds_write_b128(lds_ptr: Any, offset: Any, data: Any) -> None:
    """Write 16 bytes: a vector of 128 bits, of any element type. See `ds_read_b128`."""
    alignment = {"alignment": ir.IntegerAttr.get(element_type("i64"), _B128_ALIGNMENT_BYTES)}
    value = as_type("the data of ds_write_b128", data, _four_words())
    emit("llvm.store", [value, _address("ds_write_b128", lds_ptr, offset)], attributes=alignment)


def _four_words() -> ir.Type:
    return ir.VectorType.get([4], element_type("i32"))


def _address(name: str, pointer: Any, offset: Any) -> ir.Value:
    base = llvm_pointer(f"the address of {name}", pointer, _LDS_SPACE)
    attributes = {
        "elem_type": ir.TypeAttr.get(element_type("i8")),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)]),
    }
    step = operand(f"the offset of {name}", offset, Int32)
    return emit("llvm.getelementptr", [base, step], [base.type], attributes).result
