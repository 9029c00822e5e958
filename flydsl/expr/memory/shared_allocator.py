"""`fx.SharedAllocator`: static shared memory (LDS), allocated inside a kernel.

    tiles = fx.SharedAllocator().allocate(Tiles).peek()
    a = tiles.a.view(fx.make_layout((64, 64), (64, 1)))     # a tensor
    pointer = tiles.a.ptr

Every allocation, and every field of a struct, is a global of its own in the program. So LLVM knows that a copy into
one does not change what is read from another, and waits for neither. A launch needs the sum of those that its kernel
uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type, llvm_pointer_type
from flydsl.dialect.location import trace_error
from flydsl.dialect.types import PointerType
from flydsl.expr.memory.storage import Arena, Place
from flydsl.expr.memory.tensors import Pointer, get_dyn_shared
from flydsl.expr.struct import Align, fields_of, is_struct_type
from flydsl.expr.threads.block_threads import note_dynamic_lds
from flydsl.expr.tracing.emit import emit, gpu_module_body, require_trace

_LDS_SPACE = 3


@dataclass(frozen=True)
class _Place:
    """The position of a part of a storage."""

    symbol: str
    storage_align: int
    offset: int

    def moved(self, offset: int) -> _Place:
        """The place `offset` bytes further."""
        return _Place(self.symbol, self.storage_align, self.offset + offset)

    @property
    def align(self) -> int:
        """The number of bytes that the address is a multiple of."""
        return _align_at(self.storage_align, self.offset)

    def pointer(self, element: str) -> Pointer:
        """A pointer to elements of a type."""
        name = {"global_name": ir.FlatSymbolRefAttr.get(self.symbol)}
        space = llvm_pointer_type(_LDS_SPACE)
        base = emit("llvm.mlir.addressof", [], [space], name).result
        if self.offset:
            attributes = {
                "elem_type": ir.TypeAttr.get(element_type("i8")),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([self.offset]),
            }
            base = emit("llvm.getelementptr", [base], [space], attributes).result
        kind = PointerType(element, "shared", self.align)
        return Pointer(emit("builtin.unrealized_conversion_cast", [base], [kind.ir]).result)


class _Parts:
    """The positions of the fields of a struct, each of which has a storage of its own."""

    def __init__(self, kind: Any, parts: dict[int, Place]) -> None:
        self._kind, self._parts = kind, parts

    def moved(self, offset: int) -> Place:
        """The place of the field at an offset in bytes."""
        return self._parts[offset]

    def pointer(self, element: str) -> Pointer:
        raise trace_error(
            f"{self._kind.__name__} in shared memory has no address: each of its fields has one",
            f"pass a field: storage.{next(iter(fields_of(self._kind).places))}, for example",
        )


class SharedAllocator(Arena):
    """Allocates shared memory of the kernel that is being traced.

    base_alignment: in bytes, of memory that is asked for by its size. static=False: parts of the launch's dynamic
    memory, one after another from its beginning; `launch` takes its size from here, if it is not told one (`smem=`).
    """

    def __init__(self, base_alignment: int = Arena.DEFAULT_BASE_ALIGNMENT, *, static: bool = True) -> None:
        super().__init__(base_alignment)
        self._body = _gpu_module_body()
        self._static = static

    @property
    def is_static(self) -> bool:
        """False for parts of the launch's dynamic memory."""
        return self._static

    @property
    def base_ptr(self) -> Pointer:
        """The beginning of the kernel's dynamic shared memory."""
        return get_dyn_shared()

    def _place(self, kind: Any, align: int) -> Place:
        fields = fields_of(kind).places if self._static and is_struct_type(kind) else {}
        if not fields:
            return super()._place(kind, align)
        return _Parts(kind, {at: self._field(part, _align_at(align, at)) for at, part in fields.values()})

    def _field(self, kind: Any, align: int) -> Place:
        return self._place(kind.dtype if issubclass(kind, Align) else kind, align)

    def _reserve(self, size: int, align: int) -> Place:
        """Reserve memory of a size and alignment in bytes."""
        if not self._static:
            place = super()._reserve(size, align)
            note_dynamic_lds(self.allocated_bytes)
            return place
        self.allocated_bytes += size
        # External: programs read it by addresses of their own, and LLVM drops internal memory that is only written.
        symbol = f"shared_{len(self._body.operations)}"
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{size} x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
            "addr_space": ir.IntegerAttr.get(element_type("i32"), _LDS_SPACE),
            "alignment": ir.IntegerAttr.get(element_type("i64"), align),
        }
        with ir.InsertionPoint(self._body):
            emit("llvm.mlir.global", attributes=attributes, regions=1)
        return _Place(symbol, align, 0)


def _align_at(align: int, offset: int) -> int:
    """The number of bytes that an address is a multiple of, `offset` bytes past one that is a multiple of `align`."""
    return min(align, offset & -offset) if offset else align


def _gpu_module_body() -> ir.Block:
    """The body of the GPU module whose kernel is being traced."""
    require_trace("SharedAllocator")
    body = gpu_module_body()
    if body is None:
        raise trace_error("SharedAllocator outside a kernel", "allocate inside a @flyc.kernel function")
    return body
