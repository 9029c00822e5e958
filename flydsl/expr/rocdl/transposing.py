"""Loads of matrices from LDS and memory that exchange rows and columns: CDNA 4, RDNA 4 and gfx1250."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA4, GFX12, GFX1250
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import (
    bitcast,
    bits_of,
    call,
    intrinsic_result,
    ir_type,
    llvm_pointer,
    require_target,
    result_type_first,
    takes_alias_scopes,
)
from flydsl.expr.rocdl.lds_address import lds_pointer
from flydsl.expr.tracing.described import described

__all__ = [
    "ds_load_tr4_b64", "ds_load_tr6_b96", "ds_load_tr8_b64", "ds_load_tr16_b128", "ds_read_tr4_b64",
    "ds_read_tr4_b64_", "ds_read_tr6_b96", "ds_read_tr6_b96_", "ds_read_tr8_b64", "ds_read_tr8_b64_",
    "ds_read_tr16_b64", "ds_read_tr16_b64_", "global_load_tr4_b64", "global_load_tr6_b96", "global_load_tr_b64",
    "global_load_tr_b128", "lds_transpose_load",
]  # fmt: skip

_GLOBAL = 1


def _transposing(name: str, element_bits: int, bits: int, archs: tuple[str, ...], what: str = "") -> Callable[..., Any]:
    """The function of an instruction. what: the rows and columns that are exchanged, by default those of the matrix."""
    from_lds = name.startswith("ds_")

    @takes_alias_scopes
    @result_type_first
    def load(res: Any, ptr: Any) -> Any:
        require_target(name, archs)
        words = ir.VectorType.get([bits // 32], Int32.ir_type)
        kind = words if res is None else ir_type(name, res)
        if bits_of(kind) != bits:
            raise argument_error(
                f"{name}: the result has {bits} bits, {kind} has {bits_of(kind)}",
                "omit the result type, or name one of that width",
            )
        moved = ir.VectorType.get([bits // 16], element_type("i16")) if element_bits == 16 else words
        place = f"the address of {name}"
        address = lds_pointer(place, ptr) if from_lds else llvm_pointer(place, ptr, _GLOBAL)
        return intrinsic_result(bitcast(call(name.replace("_", "."), [address], moved).ir_value(), kind))

    return described(
        load,
        name,
        f"Read {bits} bits per lane of a matrix of {element_bits}-bit elements from {'LDS' if from_lds else 'memory'}, "
        f"with rows and columns {what}exchanged. res: a type of {bits} bits. {', '.join(archs)}.",
    )


def _reading(element_bits: int, bits: int) -> Callable[..., Any]:
    return _transposing(f"ds_read_tr{element_bits}_b{bits}", element_bits, bits, CDNA4, "of blocks of 16 lanes ")


# Under FlyDSL's other names, which end in an underscore, too.
ds_read_tr16_b64 = ds_read_tr16_b64_ = _reading(16, 64)
ds_read_tr8_b64 = ds_read_tr8_b64_ = _reading(8, 64)
ds_read_tr6_b96 = ds_read_tr6_b96_ = _reading(6, 96)
ds_read_tr4_b64 = ds_read_tr4_b64_ = _reading(4, 64)

ds_load_tr16_b128 = _transposing("ds_load_tr16_b128", 16, 128, GFX1250)
ds_load_tr8_b64 = _transposing("ds_load_tr8_b64", 8, 64, GFX1250)
ds_load_tr6_b96 = _transposing("ds_load_tr6_b96", 6, 96, GFX1250)
ds_load_tr4_b64 = _transposing("ds_load_tr4_b64", 4, 64, GFX1250)
global_load_tr_b128 = _transposing("global_load_tr_b128", 16, 128, GFX12)
global_load_tr_b64 = _transposing("global_load_tr_b64", 8, 64, GFX12)
global_load_tr6_b96 = _transposing("global_load_tr6_b96", 6, 96, GFX1250)
global_load_tr4_b64 = _transposing("global_load_tr4_b64", 4, 64, GFX1250)


def lds_transpose_load(result_type: Any, lds_memref: Any, elem_offset: Any, elem_bytes: int) -> Any:
    """`ds_load_tr16_b128` of 16-bit elements, or `ds_load_tr8_b64` of 8-bit ones, at an element of LDS.

    lds_memref: a tensor, pointer, SmemPtr or memref in LDS. elem_offset: elements of `elem_bytes` bytes, 1 or 2.
    """
    name = "lds_transpose_load"
    load = {2: ds_load_tr16_b128, 1: ds_load_tr8_b64}.get(elem_bytes)
    if load is None:
        raise argument_error(
            f"elem_bytes of {name} must be 1 or 2, got {elem_bytes!r}",
            "pass elem_bytes=2 for 16-bit elements, for example",
        )
    return load(result_type, lds_pointer(name, lds_memref, elem_offset * elem_bytes))
