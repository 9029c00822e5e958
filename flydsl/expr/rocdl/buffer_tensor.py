"""Buffer tensors, and the copies that go through them."""

from __future__ import annotations

from typing import Any

from flydsl import atoms
from flydsl.atoms import CopyOp, MmaOp
from flydsl.dialect.location import user_location
from flydsl.dialect.types import BUFFER, PointerType
from flydsl.errors import ArgumentError
from flydsl.expr import primitive
from flydsl.expr.emit import emit_fly
from flydsl.expr.numeric import Int16, Int32, Int64
from flydsl.expr.operands import element_name, located
from flydsl.expr.typing import Tensor

__all__ = [
    "MFMA",
    "BufferCopy",
    "BufferCopy8b",
    "BufferCopy16b",
    "BufferCopy32b",
    "BufferCopy64b",
    "BufferCopy128b",
    "make_buffer_tensor",
]

# The largest size that the resource's 32-bit field holds: no bound.
_MAX_BYTES = 0xFFFFFFFF


def make_buffer_tensor(tensor: Tensor, max_size: bool = True) -> Tensor:
    """A tensor in global memory as one that buffer instructions read and write.

    max_size: leave the size open. False: the tensor's own size, so that hardware reads 0 beyond its end and drops
    writes there. Offsets have 32 bits, so a tensor of more than 4 GiB cannot be reached to its end.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"make_buffer_tensor takes a tensor, not {tensor!r}", at=user_location())
    kind = tensor.type
    if kind.space != "global":
        raise ArgumentError(f"make_buffer_tensor of {kind}: it must lie in global memory", at=user_location())
    size = Int64(_MAX_BYTES) if max_size else _size_bytes(tensor)
    operands = [
        primitive.get_iter(tensor).value,
        Int16(0).ir_value(),
        size.ir_value(),
        Int32(atoms.BufferCopy.resource_flags).ir_value(),
    ]
    pointer = emit_fly("make_ptr", operands, results=[PointerType(kind.element, BUFFER)]).result
    return primitive.make_view(pointer, tensor.layout)


def _size_bytes(tensor: Tensor) -> Int64:
    """From the first to the last element. The resource's field would take a larger size modulo 4 GiB."""
    size = Int64(primitive.cosize(tensor.layout)) * (tensor.type.element_bits // 8)
    if size.is_static:
        return Int64(min(int(size), _MAX_BYTES))
    return (size > _MAX_BYTES).select(Int64(_MAX_BYTES), size)


def BufferCopy(bits: int) -> CopyOp:
    """A copy of `bits` contiguous bits (8 to 128) between a buffer tensor and registers."""
    return located(atoms.BufferCopy, bits)


def _width(bits: int) -> Any:
    def make() -> CopyOp:
        return BufferCopy(bits)

    make.__name__ = make.__qualname__ = f"BufferCopy{bits}b"
    make.__doc__ = f"A buffer copy of {bits} bits by one thread."
    return make


BufferCopy8b = _width(8)
BufferCopy16b = _width(16)
BufferCopy32b = _width(32)
BufferCopy64b = _width(64)
BufferCopy128b = _width(128)


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, elem_ty_b: Any = None) -> MmaOp:
    """A matrix instruction of CDNA on a tile of m x n x k.

    elem_ty_ab: the element type of A and B; elem_ty_b: of B, where it is another one (fp8 with bf8).
    elem_ty_acc: of C and D, by default f32, for i8 i32, for f64 f64.
    Raises ArgumentError for a combination that no architecture has; compiling raises CompileError where the target
    lacks it.
    """
    a = element_name(elem_ty_ab)
    b = a if elem_ty_b is None else element_name(elem_ty_b)
    acc = {"i8": "i32", "f64": "f64"}.get(a, "f32") if elem_ty_acc is None else element_name(elem_ty_acc)
    return located(atoms.MFMA, m, n, k, a, b, acc)
