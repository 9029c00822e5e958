"""Single-instruction LDS accesses: wide and transposing reads, and loads from global memory straight into LDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA4, FROM_CDNA3
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import user_location
from flydsl.errors import ArgumentError
from flydsl.expr.emit import emit, target_name
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import (
    as_type,
    bitcast,
    bits_of,
    call,
    i32_attribute,
    immediate,
    intrinsic_result,
    ir_type,
    llvm_pointer,
    operand,
    require_target,
    result_type_first,
    value_of,
)

__all__ = [
    "ds_read_b128", "ds_read_tr4_b64", "ds_read_tr4_b64_", "ds_read_tr6_b96", "ds_read_tr6_b96_", "ds_read_tr8_b64",
    "ds_read_tr8_b64_", "ds_read_tr16_b64", "ds_read_tr16_b64_", "ds_write_b128", "global_load_lds", "lds_load",
    "lds_store", "load_to_lds",
]  # fmt: skip

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


# --- transposing reads of CDNA 4 -------------------------------------------------------------------------------------


def _transposing(element_bits: int, bits: int) -> Callable[..., Any]:
    name = f"ds_read_tr{element_bits}_b{bits}"

    @result_type_first
    def read(res: Any, ptr: Any) -> Any:
        require_target(name, CDNA4)
        words = ir.VectorType.get([bits // 32], Int32.ir_type)
        kind = words if res is None else ir_type(name, res)
        if bits_of(kind) != bits:
            raise ArgumentError(
                f"{name}: the result has {bits} bits, {kind} has {bits_of(kind)}",
                at=user_location(),
                hint="leave the result type away, or name one of that width",
            )
        moved = ir.VectorType.get([4], element_type("i16")) if element_bits == 16 else words
        address = llvm_pointer(f"the address of {name}", ptr, _LDS_SPACE)
        return intrinsic_result(bitcast(call(f"ds.read.tr{element_bits}.b{bits}", [address], moved).ir_value(), kind))

    read.__name__ = read.__qualname__ = name
    read.__doc__ = (
        f"Read {bits} bits per lane of a matrix of {element_bits}-bit elements, with rows and columns of blocks of 16 "
        f"lanes exchanged. res: a type of {bits} bits. CDNA 4."
    )
    return read


# Under FlyDSL's other names, which end in an underscore, too.
ds_read_tr16_b64 = ds_read_tr16_b64_ = _transposing(16, 64)
ds_read_tr8_b64 = ds_read_tr8_b64_ = _transposing(8, 64)
ds_read_tr6_b96 = ds_read_tr6_b96_ = _transposing(6, 96)
ds_read_tr4_b64 = ds_read_tr4_b64_ = _transposing(4, 64)


# --- global memory to LDS --------------------------------------------------------------------------------------------


def global_load_lds(global_ptr: Any, lds_ptr: Any, size: Any, offset: Any = 0, aux: Any = 0) -> None:
    """Load straight into LDS: each lane's `size` bytes at `global_ptr`, contiguous from `lds_ptr` on.

    global_ptr: per lane. lds_ptr: the same in all lanes. size: 1, 2 or 4 bytes, on CDNA 4 also 12 or 16.
    offset: bytes added to both, aux: cache policy; constants. A barrier alone does not wait for it: `s_waitcnt` does.
    """
    name = "global_load_lds"
    require_target(name, FROM_CDNA3)
    number = immediate(f"the size of {name}", size, 1, 16)
    sizes = (1, 2, 4, 12, 16) if target_name() in CDNA4 else (1, 2, 4)
    if number not in sizes:
        shown = ", ".join(map(str, sizes))
        raise ArgumentError(
            f"{name} of {number} bytes: {target_name()} has {shown}",
            at=user_location(),
            hint="copy in several calls, or use another size",
        )
    addresses = [
        llvm_pointer(f"the source of {name}", global_ptr, _GLOBAL_SPACE),
        llvm_pointer(f"the target of {name}", lds_ptr, _LDS_SPACE),
    ]
    attributes = {
        "size": i32_attribute(number),
        "offset": i32_attribute(immediate(f"the offset of {name}", offset, -4096, 4095)),
        "aux": i32_attribute(immediate(f"aux of {name}", aux, 0, 0x1F)),
    }
    call("global.load.lds", addresses, attributes=attributes)


load_to_lds = global_load_lds
