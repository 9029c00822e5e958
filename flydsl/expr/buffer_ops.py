"""Global memory through a buffer resource: bounds checked by the hardware, lanes masked without a branch.

    rsrc = buffer_ops.create_buffer_resource(A, max_size=False)
    data = buffer_ops.buffer_load(rsrc, row * columns + column, vec_width=4, dtype=fx.Float16, mask=row < rows)
    buffer_ops.buffer_store(data, rsrc, offset)

Offsets count elements of the type that is loaded or stored; with `offset_is_bytes=True` they count bytes, as
`soffset_bytes` always does. Beyond the end of the resource, loads return 0 and stores do nothing.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl.atoms.buffer_copy import resource_flags
from flydsl.dialect.elements import element_type, llvm_pointer_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.flydsl_names.keywords import accept_keywords
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.layouts.algebra import cosize
from flydsl.expr.memory.tensors import Tensor
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Boolean, Float32, Index, Int32, Int64, as_numeric
from flydsl.expr.rocdl.buffer_tensor import s_buffer_load
from flydsl.expr.rocdl.intrinsic import bits_of, ir_type, is_in_lds, llvm_pointer, operand, value_of
from flydsl.expr.rocdl.raw_buffer import make_buffer_rsrc, raw_ptr_buffer_load, raw_ptr_buffer_store
from flydsl.expr.tracing.emit import emit, target_name
from flydsl.expr.tracing.immediates import immediate
from flydsl.expr.tracing.operands import as_fly_value

__all__ = [
    "BufferResourceDescriptor", "buffer_load", "buffer_store", "create_buffer_resource",
    "create_buffer_resource_from_addr", "create_llvm_ptr", "extract_base_index", "get_element_ptr",
]  # fmt: skip

# A masked lane's offset. Even the last of the 16 bytes that an instruction moves is addressed without a carry, and a
# resource made here is never larger, so the lane is always out of range.
MASKED_OFFSET = 0xFFFF_FFF0
MAX_BYTES = MASKED_OFFSET
_BUFFER_SPACE = 8


def create_buffer_resource(
    tensor: Any, stride: int = 0, max_size: bool = True, *, num_records_bytes: Any = None, base_byte_offset: Any = None
) -> ir.Value:
    """A buffer resource, `!llvm.ptr<8>`, that begins at a tensor's first element.

    tensor: in global memory. stride: 0; structured buffers are unsupported.
    max_size: use the largest size, 4 GiB - 16 bytes. False: the tensor's own, from its first to its last element.
    num_records_bytes: the size in bytes instead, an integer or a runtime value.
    base_byte_offset: number of bytes by which to move the start, the same in all lanes.
    """
    tensor = as_fly_value(tensor)
    if not isinstance(tensor, Tensor) or tensor.type.space != "global":
        shown = tensor.type if isinstance(tensor, Tensor) else repr(tensor)
        raise argument_error(
            f"create_buffer_resource takes a tensor in global memory, not {shown}", how_to_make.GLOBAL_TENSOR
        )
    if stride != 0:
        raise argument_error(
            f"unsupported stride={stride!r} of create_buffer_resource; supported: 0",
            "omit it: offsets are in elements",
        )
    pointer = llvm_pointer("create_buffer_resource", tensor, 1)
    if base_byte_offset is not None:
        pointer = get_element_ptr(pointer, base_byte_offset)
    if num_records_bytes is None and not max_size:
        num_records_bytes = Int64(cosize(tensor.layout)) * tensor.type.element_bits // 8
    return _resource(pointer, num_records_bytes)


def create_buffer_resource_from_addr(addr_i64: Any, *, num_records_bytes: Any = None) -> ir.Value:
    """A buffer resource that begins at a raw 64-bit device address, which is the same in all lanes."""
    return _resource(create_llvm_ptr(addr_i64, 1), num_records_bytes)


def _resource(pointer: ir.Value, num_records_bytes: Any) -> ir.Value:
    size = Int64(MAX_BYTES) if num_records_bytes is None else _clamped_size(num_records_bytes)
    return make_buffer_rsrc(pointer, 0, size, resource_flags(target_name()))


def _clamped_size(num_records_bytes: Any) -> Any:
    """A size clamped to the range of the resource's field: 0 for a negative one, at most MAX_BYTES."""
    size = as_numeric(num_records_bytes)
    if size.is_float:
        raise argument_error(
            f"num_records_bytes must be an integer, in bytes, got {num_records_bytes!r}",
            "pass rows * columns * 4, for example, or omit it for the tensor's own size",
        )
    if size.is_static:
        return Int64(min(max(int(size), 0), MAX_BYTES))
    if isinstance(size, Int32):
        # It is never larger than the field: one instruction does it.
        return (size < 0).select(Int32(0), size)
    size = Int64.exactly(size)
    return (size < 0).select(Int64(0), (size > MAX_BYTES).select(Int64(MAX_BYTES), size))


def buffer_load(
    rsrc: Any,
    offset: Any,
    vec_width: int = 4,
    dtype: Any = None,
    mask: Any = None,
    cache_modifier: int = 0,
    soffset_bytes: Any = None,
    is_scalar: bool = False,
    *,
    offset_is_bytes: bool = False,
) -> Any:
    """Load `vec_width` elements of type `dtype` (by default f32): a scalar for 1, else a vector.

    Up to 64, by one instruction for each 16 bytes. offset: of the first element, in elements. mask: a Boolean; lanes
    where it is false get 0 and access nothing. cache_modifier: the instruction's cache policy, a constant.
    soffset_bytes: added to the offset, the same in all lanes, and at most the resource's size: see
    `flydsl.expr.rocdl.raw_buffer`. is_scalar: read 1 or 4 words of type i32 once for the wave, at an offset that is the
    same in all lanes.
    """
    if is_scalar:
        return _scalar_load(rsrc, offset, vec_width, cache_modifier, mask, soffset_bytes, offset_is_bytes)
    element = Float32.ir_type if dtype is None else ir_type("the dtype of buffer_load", dtype)
    count = immediate("the vec_width of buffer_load", vec_width, 1, 64)
    pieces = _pieces(count, offset, element, offset_is_bytes)
    if len(pieces) > 1:
        how = {"cache_modifier": cache_modifier, "soffset_bytes": soffset_bytes, "offset_is_bytes": offset_is_bytes}
        loaded = [buffer_load(rsrc, place, size, dtype, mask, **how) for _, size, place in pieces]
        return Vector.from_elements([n for part in loaded for n in (part if isinstance(part, Vector) else [part])])
    kind = element if count == 1 else ir.VectorType.get([count], element)
    place = _byte_offset("buffer_load", offset, element, mask, offset_is_bytes)
    return raw_ptr_buffer_load(kind, rsrc, place, 0 if soffset_bytes is None else soffset_bytes, cache_modifier)


def _scalar_load(
    rsrc: Any, offset: Any, vec_width: int, cache_modifier: int, mask: Any, soffset_bytes: Any, offset_is_bytes: bool
) -> Any:
    if mask is not None or soffset_bytes is not None or offset_is_bytes:
        raise argument_error(
            "buffer_load with is_scalar=True: mask, soffset_bytes and offset_is_bytes are unsupported",
            "add to the offset, which is in words; or leave out is_scalar",
        )
    return s_buffer_load(rsrc, offset, count=vec_width, cache_modifier=cache_modifier)


def buffer_store(
    data: Any,
    rsrc: Any,
    offset: Any,
    mask: Any = None,
    cache_modifier: int = 0,
    *,
    soffset_bytes: Any = None,
    offset_is_bytes: bool = False,
) -> None:
    """Store a scalar or vector; its type determines the number of bytes. See `buffer_load`."""
    value = value_of("the data of buffer_store", data)
    is_vector = isinstance(value.type, ir.VectorType)
    element = value.type.element_type if is_vector else value.type
    pieces = _pieces(value.type.shape[0], offset, element, offset_is_bytes) if is_vector else []
    if len(pieces) > 1:
        for first, size, place in pieces:
            part = Vector(value)[first : first + size]
            buffer_store(part, rsrc, place, mask, cache_modifier, soffset_bytes=soffset_bytes,
                         offset_is_bytes=offset_is_bytes)  # fmt: skip
        return
    place = _byte_offset("buffer_store", offset, element, mask, offset_is_bytes)
    raw_ptr_buffer_store(data, rsrc, place, 0 if soffset_bytes is None else soffset_bytes, cache_modifier)


def _pieces(count: int, offset: Any, element: ir.Type, offset_is_bytes: bool) -> list[tuple[int, int, Any]]:
    """(first element, elements, offset) of each instruction: of 16 bytes, and of what is left."""
    bits = max(bits_of(element), 8)
    at_once, step = 128 // bits, bits // 8 if offset_is_bytes else 1
    return [(first, min(at_once, count - first), offset + first * step if first else offset)
            for first in range(0, count, at_once)]  # fmt: skip


def _byte_offset(name: str, offset: Any, element: ir.Type, mask: Any, is_bytes: bool) -> Any:
    place = as_numeric(offset)
    if getattr(place, "is_float", True):
        raise argument_error(
            f"the offset of {name} must be an integer, got {offset!r}", "convert it: offset.to(fx.Int32)"
        )
    if bits_of(element) < 8:
        raise argument_error(
            f"{name} takes elements of at least 8 bits, not {element}", "load bytes, and take them apart"
        )
    place = Int32.exactly(place) if is_bytes else Int32.exactly(place) * (bits_of(element) // 8)
    if mask is None:
        return place
    return Boolean.of(operand(f"the mask of {name}", mask, Boolean)).select(place, Int32(MASKED_OFFSET))


# --- addresses -------------------------------------------------------------------------------------------------------


def extract_base_index(tensor: Any, address_space: int = 0) -> Any:
    """The address of a tensor's first element, as an Index. address_space: LLVM's number of the tensor's memory."""
    tensor = as_fly_value(tensor)
    kind = getattr(tensor, "type", None)
    in_lds = is_in_lds(kind) or getattr(kind, "space", "") == "shared"
    space = immediate("the address_space of extract_base_index", address_space, 0, _BUFFER_SPACE)
    space = space or (3 if in_lds else 1)
    pointer = llvm_pointer("extract_base_index", tensor, space)
    bits = "i32" if space == 3 else "i64"
    address = emit("llvm.ptrtoint", [pointer], [element_type(bits)]).result
    return Index.of(emit("arith.index_castui", [address], [Index.ir_type]).result)


def create_llvm_ptr(address: Any, address_space: int = 1) -> ir.Value:
    """An address as an LLVM pointer. address_space: LLVM's number: 1 global memory, 3 LDS (addresses of 32 bits)."""
    space = immediate("the address_space of create_llvm_ptr", address_space, 0, _BUFFER_SPACE)
    number = operand("the address of create_llvm_ptr", Int32(address) if space == 3 else Int64(address),
                     Int32 if space == 3 else Int64)  # fmt: skip
    return emit("llvm.inttoptr", [number], [llvm_pointer_type(space)]).result


def get_element_ptr(
    base_ptr: ir.Value,
    byte_offset: Any = None,
    static_byte_offset: int = 0,
    elem_type: Any = None,
    no_wrap_flags: Any = None,
) -> ir.Value:
    """An LLVM pointer advanced by `byte_offset` + `static_byte_offset` elements of `elem_type`, by default bytes.

    no_wrap_flags: taken and not used. They promise that no sum wraps, which saves nothing here.
    """
    if not isinstance(base_ptr, ir.Value) or not str(base_ptr.type).startswith("!llvm.ptr"):
        raise argument_error(
            f"get_element_ptr takes an LLVM pointer, not {base_ptr!r}",
            "fx.buffer_ops.create_llvm_ptr(address) makes one",
        )
    element = element_type("i8") if elem_type is None else ir_type("elem_type of get_element_ptr", elem_type)
    offset = as_numeric(0 if byte_offset is None else byte_offset) + static_byte_offset
    attributes = {"elem_type": ir.TypeAttr.get(element), "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)])}
    return emit("llvm.getelementptr", [base_ptr, Int64.exactly(offset).ir_value()], [base_ptr.type], attributes).result


class BufferResourceDescriptor:
    """A buffer resource as an object: `.rsrc` is the value that loads and stores take."""

    def __init__(self, rsrc: ir.Value) -> None:
        self.rsrc = llvm_pointer("BufferResourceDescriptor", rsrc, _BUFFER_SPACE)

    @classmethod
    def from_memref(
        cls,
        memref_val: Any,
        stride: int = 0,
        max_size: bool = True,
        data_format: str = "f32",
        num_records_bytes: Any = None,
        base_byte_offset: Any = None,
    ) -> BufferResourceDescriptor:
        """See `create_buffer_resource`. data_format: of typed accesses, which there are none of."""
        return cls(
            create_buffer_resource(
                memref_val, stride, max_size, num_records_bytes=num_records_bytes, base_byte_offset=base_byte_offset
            )
        )


# --- other names of FlyDSL's module that its kernels use -------------------------------------------------------------


def _unwrap_value(value: Any) -> ir.Value:
    """The `ir.Value` of a value of the DSL."""
    return value_of("_unwrap_value", value)


def _create_i32_constant(value: int) -> ir.Value:
    """An i32 constant with the given bits."""
    return Int32(value & 0xFFFF_FFFF).ir_value()


def _get_buffer_flags(arch: str | None = None) -> int:
    """Word 3 of a raw buffer resource, on the target or another architecture."""
    return resource_flags(arch or target_name())


__getattr__ = unknown_name(__name__, globals())


accept_keywords(globals(), __all__)
