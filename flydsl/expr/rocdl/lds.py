"""Single-instruction LDS accesses: wide reads and writes, and loads from global memory straight into LDS."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA4, FROM_CDNA3
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import (
    as_type,
    bits_of,
    call,
    i32_attribute,
    intrinsic_result,
    ir_type,
    llvm_pointer,
    operand,
    require_target,
    result_type_first,
    takes_alias_scopes,
    value_of,
)
from flydsl.expr.tracing.emit import emit, target_name
from flydsl.expr.tracing.immediates import immediate

__all__ = ["ds_read_b128", "ds_write_b128", "global_load_lds", "lds_load", "lds_store", "load_to_lds"]

_GLOBAL_SPACE, _LDS_SPACE = 1, 3


@result_type_first
def lds_load(res: Any, lds_ptr: Any, offset: Any = 0) -> Any:
    """Read a scalar or vector of type `res`, by default i32, at an address that is a multiple of its size.

    lds_ptr: a tensor or pointer in LDS, or a `SmemPtr`. offset: bytes.
    """
    kind = Int32.ir_type if res is None else ir_type("lds_load", res)
    return intrinsic_result(emit("llvm.load", [_address("lds_load", lds_ptr, offset)], [kind], _alignment(kind)).result)


def lds_store(lds_ptr: Any, offset: Any, data: Any) -> None:
    """Write a scalar or vector. See `lds_load`."""
    value = value_of("the data of lds_store", data)
    emit("llvm.store", [value, _address("lds_store", lds_ptr, offset)], attributes=_alignment(value.type))


def ds_read_b128(lds_ptr: Any, offset: Any = 0) -> Any:
    """Read 16 bytes as a vector of 4 i32.

    lds_ptr: a tensor or pointer in LDS, or a `SmemPtr`. offset: bytes. Their sum must be a multiple of 16.
    """
    return lds_load(_four_words(), lds_ptr, offset)


def ds_write_b128(lds_ptr: Any, offset: Any, data: Any) -> None:
    """Write 16 bytes: a vector of 128 bits, of any element type. See `ds_read_b128`."""
    lds_store(lds_ptr, offset, as_type("the data of ds_write_b128", data, _four_words()))


def _alignment(kind: ir.Type) -> dict[str, ir.Attribute]:
    return {"alignment": ir.IntegerAttr.get(element_type("i64"), bits_of(kind) // 8)}


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


# --- global memory to LDS --------------------------------------------------------------------------------------------


def bytes_into_lds(name: str, size: Any) -> int:
    """The bytes that a lane loads straight into LDS. Raises ArgumentError if the target has no such load."""
    number = immediate(f"the size of {name}", size, 1, 16)
    sizes = (1, 2, 4, 12, 16) if target_name() in CDNA4 else (1, 2, 4)
    if number not in sizes:
        shown = ", ".join(map(str, sizes))
        raise argument_error(
            f"{name} of {number} bytes: {target_name()} has {shown}", "copy in several calls, or use another size"
        )
    return number


@takes_alias_scopes
def global_load_lds(global_ptr: Any, lds_ptr: Any, size: Any, offset: Any = 0, aux: Any = 0) -> None:
    """Load straight into LDS: each lane's `size` bytes at `global_ptr`, contiguous from `lds_ptr` on.

    global_ptr: per lane. lds_ptr: the same in all lanes. size: 1, 2 or 4 bytes, on CDNA 4 also 12 or 16.
    offset: bytes added to both, aux: cache policy; constants. `rocdl.s_barrier()` does not wait for it, `s_waitcnt`
    does.
    """
    name = "global_load_lds"
    require_target(name, FROM_CDNA3)
    number = bytes_into_lds(name, size)
    addresses = [
        llvm_pointer(f"the source of {name}", global_ptr, _GLOBAL_SPACE),
        llvm_pointer(f"the target of {name}", lds_ptr, _LDS_SPACE),
    ]
    attributes = {
        "size": i32_attribute(number),
        "offset": i32_attribute(immediate(f"the offset of {name}", offset, -4096, 4095)),
        "aux": i32_attribute(immediate(f"aux of {name}", 0 if aux is None else aux, 0, 0x1F)),
    }
    call("global.load.lds", addresses, attributes=attributes)


load_to_lds = global_load_lds
