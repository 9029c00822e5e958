"""Loads, stores and atomics through a buffer resource, as in the hardware: offsets are in bytes.

rsrc: a resource (`make_buffer_rsrc`, `buffer_ops.create_buffer_resource`), or its four words as a vector of i32; the
functions have a name with and one without `ptr`, and take both. offset: bytes, per lane. soffset: bytes,
the same in all lanes. aux: cache policy, part of the instruction (bit 0 sc0, bit 1 nt, bit 4 sc1 on CDNA 3).

Beyond the resource's size loads give 0, and stores and atomics do nothing. The hardware compares `offset` with the size
less `soffset`, without a sign: a `soffset` larger than the size makes everything in bounds (CDNA 3 ISA, "Range
Checking").

`buffer_ops` is the convenient form: offsets in elements, masks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA
from flydsl.dialect import async_copies
from flydsl.dialect.elements import element_type, llvm_pointer_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numeric import Int16, Int32, Int64
from flydsl.expr.rocdl.intrinsic import (
    alias_scopes_of_call,
    bitcast,
    bits_of,
    call,
    intrinsic_result,
    ir_type,
    llvm_pointer,
    operand,
    require_target,
    result_type_first,
    takes_alias_scopes,
    value_of,
)
from flydsl.expr.rocdl.lds import bytes_into_lds
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "buffer_load_to_lds", "make_buffer_rsrc", "raw_buffer_atomic_cmpswap", "raw_buffer_atomic_fadd",
    "raw_buffer_atomic_fmax", "raw_buffer_atomic_smax", "raw_buffer_atomic_umin", "raw_buffer_load", "raw_buffer_store",
    "raw_ptr_buffer_atomic_cmpswap",
    "raw_ptr_buffer_atomic_fadd", "raw_ptr_buffer_atomic_fmax", "raw_ptr_buffer_atomic_smax",
    "raw_ptr_buffer_atomic_umin", "raw_ptr_buffer_load", "raw_ptr_buffer_load_async_lds", "raw_ptr_buffer_load_lds",
    "raw_ptr_buffer_store",
]  # fmt: skip

_GENERIC, _GLOBAL, _LDS, _BUFFER = 0, 1, 3, 8
_WIDTHS = (8, 16, 32, 64, 96, 128)
AUX_MAX = 0x1F


@result_type_first
def make_buffer_rsrc(res: Any, base: Any, stride: Any, num_records: Any, flags: Any) -> ir.Value:
    """A buffer resource, `!llvm.ptr<8>`.

    base: a tensor in global memory, or its pointer; the same in all lanes. stride: bytes, 16 bits, 0 for raw buffers.
    num_records: size in bytes where stride is 0. flags: word 3 of the resource.
    """
    kind = llvm_pointer_type(_BUFFER)
    if res is not None and ir_type("make_buffer_rsrc", res) != kind:
        raise argument_error(f"make_buffer_rsrc gives {kind}, not {res}", how_to_make.RESULT)
    generic = isinstance(base, ir.Value) and str(base.type) == "!llvm.ptr"
    operands = [
        base if generic else llvm_pointer("the base of make_buffer_rsrc", base, _GLOBAL),
        operand("the stride of make_buffer_rsrc", stride, Int16),
        _size(num_records),
        operand("the flags of make_buffer_rsrc", flags, Int32),
    ]
    return emit("rocdl.make.buffer.rsrc", operands, [kind]).result


def _size(num_records: Any) -> ir.Value:
    given = num_records if isinstance(num_records, int) else value_of("num_records of make_buffer_rsrc", num_records)
    if isinstance(given, ir.Value) and given.type == Int32.ir_type:
        return emit("arith.extui", [given], [Int64.ir_type]).result
    return operand("num_records of make_buffer_rsrc", given, Int64)


def _place(name: str, rsrc: Any, offset: Any, soffset: Any, aux: Any) -> list[ir.Value]:
    return [
        rsrc if _is_words(rsrc) else llvm_pointer(f"the resource of {name}", rsrc, _BUFFER),
        operand(f"the offset of {name}", offset, Int32),
        operand(f"the soffset of {name}", soffset, Int32),
        Int32(immediate(f"aux of {name}", 0 if aux is None else aux, 0, AUX_MAX)).ir_value(),
    ]


def _is_words(rsrc: Any) -> bool:
    """True for a resource given as its four words."""
    return isinstance(rsrc, ir.Value) and str(rsrc.type) == "vector<4xi32>"


def _operation(operation: str, place: list[ir.Value]) -> str:
    """The ROCDL operation for the form of the resource."""
    return f"raw.{'' if _is_words(place[0]) else 'ptr.'}buffer.{operation}"


def transfer_type(name: str, kind: ir.Type) -> ir.Type:
    """The type that an instruction moves for a value of type `kind`: 32-bit words, or a part of one."""
    bits = bits_of(kind)
    if bits not in _WIDTHS:
        widths = ", ".join(map(str, _WIDTHS))
        raise argument_error(
            f"{name} of {kind}: {bits} bits; an instruction moves {widths}", "use another type, or several instructions"
        )
    return element_type(f"i{bits}") if bits <= 32 else ir.VectorType.get([bits // 32], element_type("i32"))


@takes_alias_scopes
@result_type_first
def raw_ptr_buffer_load(res: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> Any:
    """Load a scalar or vector of type `res`, 8 to 128 bits; an i32 if `res` is left out."""
    name = "raw_ptr_buffer_load"
    kind = Int32.ir_type if res is None else ir_type(name, res)
    moved = transfer_type(name, kind)
    place = _place(name, rsrc, offset, soffset, aux)
    op = emit(f"rocdl.{_operation('load', place)}", place, [moved], alias_scopes_of_call())
    return intrinsic_result(bitcast(op.result, kind))


@takes_alias_scopes
def raw_ptr_buffer_store(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
    """Store a scalar or vector of 8 to 128 bits."""
    name = "raw_ptr_buffer_store"
    value = value_of(f"the data of {name}", vdata)
    moved = bitcast(value, transfer_type(name, value.type))
    place = _place(name, rsrc, offset, soffset, aux)
    call(_operation("store", place), [moved, *place])


@takes_alias_scopes
def raw_ptr_buffer_load_lds(
    rsrc: Any, lds_ptr: Any, size: Any, voffset: Any, soffset: Any = 0, offset: Any = 0, aux: Any = 0
) -> None:
    """Load straight into LDS: lane i's `size` bytes go to `lds_ptr` + size * i; the pointer is uniform.

    size: 1, 2 or 4 bytes, on CDNA 4 also 12 or 16.
    """
    _load_lds("raw_ptr_buffer_load_lds", (rsrc, lds_ptr, size), (voffset, soffset, offset), aux)


def raw_ptr_buffer_load_async_lds(
    rsrc: Any, lds_ptr: Any, size: Any, voffset: Any, soffset: Any = 0, offset: Any = 0, aux: Any = 0
) -> None:
    """`raw_ptr_buffer_load_lds` for which the program itself waits, with `s_waitcnt` or `wait_asyncmark`.

    Otherwise LLVM waits for all of them before LDS is read: a pipeline with several tiles on their way needs this one.
    """
    _load_lds(
        "raw_ptr_buffer_load_async_lds", (rsrc, lds_ptr, size), (voffset, soffset, offset), aux, async_copies.mark()
    )


def _load_lds(
    name: str, what: tuple[Any, Any, Any], offsets: tuple[Any, Any, Any], aux: Any,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> None:  # fmt: skip
    """what: the resource, the target and the bytes of a lane. offsets: of the lane, of all lanes, and a constant."""
    (rsrc, lds_ptr, size), (voffset, soffset, offset) = what, offsets
    require_target(name, CDNA)
    number = bytes_into_lds(name, size)
    resource, lane_offset, scalar_offset, policy = _place(name, rsrc, voffset, soffset, aux)
    static = Int32(immediate(f"the offset of {name}", offset, 0, 0xFFF)).ir_value()
    target = llvm_pointer(f"the target of {name}", lds_ptr, _LDS)
    operands = [resource, target, Int32(number).ir_value(), lane_offset, scalar_offset, static, policy]
    call("raw.ptr.buffer.load.lds", operands, attributes=attributes)


@takes_alias_scopes
def buffer_load_to_lds(
    rsrc: Any, lds_ptr: Any, voffset: Any, size_bytes: Any = 4, soffset: Any = 0, offset: Any = 0
) -> None:
    """`raw_ptr_buffer_load_lds` with the usual size."""
    raw_ptr_buffer_load_lds(rsrc, lds_ptr, size_bytes, voffset, soffset, offset)


def _atomic(operation: str, meaning: str, types: tuple[str, ...], archs: tuple[str, ...] = ()) -> Callable[..., None]:
    name = f"raw_ptr_buffer_atomic_{operation}"

    def atomic(vdata: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0) -> None:
        if archs:
            require_target(name, archs)
        value = value_of(f"the data of {name}", vdata)
        if str(value.type) not in types:
            raise argument_error(
                f"{name} takes {', '.join(types)}, not {value.type}", "convert it first: value.to(dtype)"
            )
        place = _place(name, rsrc, offset, soffset, aux)
        call(_operation(f"atomic.{operation}", place), [value, *place])

    return described(atomic, name, f"{meaning}, atomically. vdata: {', '.join(types)}. Nothing is returned.")


raw_ptr_buffer_atomic_fadd = _atomic("fadd", "Add to memory", ("f32", "vector<2xf16>", "vector<2xbf16>"))
raw_buffer_atomic_fadd = raw_ptr_buffer_atomic_fadd
raw_ptr_buffer_atomic_fmax = _atomic("fmax", "Keep the larger number", ("f64",), CDNA)
raw_ptr_buffer_atomic_smax = _atomic("smax", "Keep the larger signed integer", ("i32", "i64"))
raw_ptr_buffer_atomic_umin = _atomic("umin", "Keep the smaller unsigned integer", ("i32", "i64"))


@result_type_first
def raw_ptr_buffer_atomic_cmpswap(
    res: Any, src: Any, cmp: Any, rsrc: Any, offset: Any, soffset: Any = 0, aux: Any = 0
) -> Any:
    """Store `src` atomically if memory holds `cmp`, and return the previous value. i32 or i64."""
    name = "raw_ptr_buffer_atomic_cmpswap"
    value = value_of(name, src)
    if str(value.type) not in ("i32", "i64") or (res is not None and ir_type(name, res) != value.type):
        raise argument_error(f"{name} takes and gives i32 or i64, not {value.type}", "pass both values with that type")
    place = _place(name, rsrc, offset, soffset, aux)
    return call(_operation("atomic.cmpswap", place), [value, operand(name, cmp, value.type), *place], value.type)


raw_buffer_load, raw_buffer_store = raw_ptr_buffer_load, raw_ptr_buffer_store
raw_buffer_atomic_cmpswap, raw_buffer_atomic_umin = raw_ptr_buffer_atomic_cmpswap, raw_ptr_buffer_atomic_umin
raw_buffer_atomic_fmax, raw_buffer_atomic_smax = raw_ptr_buffer_atomic_fmax, raw_ptr_buffer_atomic_smax
