"""Buffer tensors and their copies."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl import atoms
from flydsl.atoms import BUFFER, CopyOp
from flydsl.atoms.buffer_copy import resource_flags
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import PointerType, fly_type
from flydsl.errors import how_to_make
from flydsl.expr.layouts.algebra import cosize
from flydsl.expr.memory.tensors import Pointer, Tensor, get_iter, make_view
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Int16, Int32, Int64
from flydsl.expr.rocdl.intrinsic import call_intrinsic, llvm_pointer
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import emit, emit_fly, target_name
from flydsl.expr.tracing.immediates import immediate
from flydsl.expr.tracing.operands import as_fly_value, located
from flydsl.expr.tracing.traced_value import with_operators

__all__ = [
    "BufferCopy", "BufferCopy8b", "BufferCopy16b", "BufferCopy32b", "BufferCopy64b", "BufferCopy128b", "BufferCopyLDS",
    "BufferCopyLDS32b", "BufferCopyLDS64b", "BufferCopyLDS128b", "get_buffer_rsrc", "make_buffer_ptr",
    "make_buffer_tensor", "s_buffer_load",
]  # fmt: skip

# The largest size that the resource's 32-bit field holds: no bound.
_MAX_BYTES = 0xFFFFFFFF


def make_buffer_tensor(tensor: Tensor, max_size: bool = True, *, num_records_bytes: Any = None) -> Tensor:
    """Convert a tensor in global memory to one that buffer instructions read and write.

    max_size: use the largest size. False: the tensor's own size, so that the hardware reads 0 beyond its end and drops
    writes there. Offsets have 32 bits, so only the first 4 GiB of a tensor can be reached.
    num_records_bytes: another size, an integer or a runtime value.
    """
    tensor = as_fly_value(tensor)
    if not isinstance(tensor, Tensor):
        raise argument_error(f"make_buffer_tensor takes a tensor, not {tensor!r}", how_to_make.TENSOR)
    kind = tensor.type
    if kind.space != "global":
        raise argument_error(f"make_buffer_tensor of {kind}: it must lie in global memory", how_to_make.GLOBAL_TENSOR)
    if num_records_bytes is None and not max_size:
        num_records_bytes = _size_bytes(tensor)
    return make_view(make_buffer_ptr(get_iter(tensor), num_records_bytes), tensor.layout)


def make_buffer_ptr(ptr: Any, num_records_bytes: Any = None) -> Pointer:
    """Convert a pointer to global memory to one that buffer instructions use.

    num_records_bytes: the size in bytes, an integer or a runtime value; the hardware reads 0 beyond it, and drops
    writes there. Without it there is no bound.
    """
    ptr = as_fly_value(ptr)
    kind = fly_type(ptr.value.type) if isinstance(ptr, Pointer) else None
    if not isinstance(kind, PointerType) or kind.space != "global":
        raise argument_error(f"make_buffer_ptr takes a pointer to global memory, not {ptr!r}", how_to_make.POINTER)
    size = Int64(_MAX_BYTES) if num_records_bytes is None else _bounded(Int64(num_records_bytes))
    operands = [ptr.value, Int16(0).ir_value(), size.ir_value(), Int32(resource_flags(target_name())).ir_value()]
    return Pointer(emit_fly("make_ptr", operands, results=[PointerType(kind.element, BUFFER)]).result)


def get_buffer_rsrc(ptr: Any) -> ir.Value:
    """The resource of a pointer for buffer instructions, `!llvm.ptr<8>`: what `raw_ptr_buffer_load` takes."""
    return with_operators(llvm_pointer("get_buffer_rsrc", ptr, 8))


def s_buffer_load(ptr: Any, offset: Any, *, count: int = 1, cache_modifier: int = 0) -> Any:
    """Read 1 or 4 words of a buffer once for the wave, into scalar registers: Int32, or a vector of 4.

    ptr: the pointer of a buffer tensor. offset: in words of 4 bytes, the same in all lanes.
    """
    number = immediate("the count of s_buffer_load", count, 1, 4)
    if number not in (1, 4):
        raise argument_error(f"s_buffer_load reads 1 or 4 words, not {number}", "read the others by another call")
    i32 = element_type("i32")
    words = ir.VectorType.get([4], i32)
    bits = emit("llvm.ptrtoint", [llvm_pointer("s_buffer_load", ptr, 8)], [element_type("i128")]).result
    resource = emit("llvm.bitcast", [bits], [words]).result
    place = (Int32(offset) * 4).ir_value()
    policy = Int32(immediate("the cache_modifier of s_buffer_load", cache_modifier, 0, 0x1F)).ir_value()
    result, suffix = (i32, "i32") if number == 1 else (words, "v4i32")
    read = call_intrinsic(f"llvm.amdgcn.s.buffer.load.{suffix}", [resource, place, policy], result)
    return Int32.of(read) if number == 1 else Vector(read, dtype=Int32)


def _size_bytes(tensor: Tensor) -> Int64:
    """Number of bytes from the first to the last element."""
    return _bounded(Int64(cosize(tensor.layout)) * (tensor.type.element_bits // 8))


def _bounded(size: Int64) -> Int64:
    """A size clamped to the resource's field, which would take a larger one modulo 4 GiB."""
    if size.is_static:
        return Int64(min(int(size), _MAX_BYTES))
    return (size > _MAX_BYTES).select(Int64(_MAX_BYTES), size)


def BufferCopy(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """A copy of `bit_size` contiguous bits (8 to 128) between a buffer tensor and registers.

    cache_modifier: bits of the instruction, on CDNA 3 1 for sc0, 2 for nt (non-temporal), 16 for sc1.
    """
    return located(atoms.BufferCopy, bit_size, cache_modifier)


def _width(bits: int) -> Any:
    def make(cache_modifier: int = 0) -> CopyOp:
        return BufferCopy(bits, cache_modifier)

    return described(
        make, f"BufferCopy{bits}b", f"A buffer copy of {bits} bits by one thread; cache_modifier as of `BufferCopy`."
    )


BufferCopy8b = _width(8)
BufferCopy16b = _width(16)
BufferCopy32b = _width(32)
BufferCopy64b = _width(64)
BufferCopy128b = _width(128)


def BufferCopyLDS(bit_size: int) -> CopyOp:
    """A copy of `bit_size` contiguous bits per lane from a buffer tensor straight into LDS.

    bit_size: 8, 16, 32, on CDNA 4 also 96 and 128. The wave writes contiguously: the bits of lane i go to the first
    lane's address in LDS plus i * bit_size, whatever address lane i has. `rocdl.s_barrier()` does not wait for it:
    `rocdl.s_waitcnt` does.
    """
    return located(atoms.BufferCopyLDS, bit_size)


def BufferCopyLDS32b() -> CopyOp:
    """A copy of 32 bits per lane straight into LDS."""
    return BufferCopyLDS(32)


def BufferCopyLDS64b() -> CopyOp:
    """Raises ArgumentError: no architecture has this width."""
    return BufferCopyLDS(64)


def BufferCopyLDS128b() -> CopyOp:
    """A copy of 128 bits per lane straight into LDS. CDNA 4."""
    return BufferCopyLDS(128)
