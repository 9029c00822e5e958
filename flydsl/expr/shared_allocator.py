"""`fx.SharedAllocator`: static shared memory (LDS), allocated inside a kernel.

    tiles = fx.SharedAllocator().allocate(Tiles).peek()
    a = tiles.a.view(fx.make_layout((64, 64), (64, 1)))     # a tensor
    pointer = tiles.a.ptr

Every allocation is a storage of its own in the program; the launch adds up those that a kernel uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.dialect.location import user_location
from flydsl.dialect.types import PointerType
from flydsl.errors import ArgumentError, FlyError, TraceError
from flydsl.expr.emit import emit, require_trace
from flydsl.expr.memory import Pointer, Tensor, make_view, memref_load, memref_store
from flydsl.expr.numeric import Uint8
from flydsl.expr.struct import Align, Array, align_of, fields_of, is_composite_type, size_of
from flydsl.expr.struct_value import StructValue
from flydsl.layout import make_layout

_DEFAULT_BYTES_ALIGNMENT = 16
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
        return min(self.storage_align, self.offset & -self.offset) if self.offset else self.storage_align

    def pointer(self, element: str) -> Pointer:
        """A pointer to elements of a type."""
        name = {"global_name": ir.FlatSymbolRefAttr.get(self.symbol)}
        space = ir.Type.parse(f"!llvm.ptr<{_LDS_SPACE}>")
        base = emit("llvm.mlir.addressof", [], [space], name).result
        if self.offset:
            attributes = {
                "elem_type": ir.TypeAttr.get(element_type("i8")),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([self.offset]),
            }
            base = emit("llvm.getelementptr", [base], [space], attributes).result
        kind = PointerType(element, "shared", self.align)
        return Pointer(emit("builtin.unrealized_conversion_cast", [base], [kind.ir]).result)


class ArrayInMemory:
    """An `fx.Array` in shared memory. ptr: a pointer to its first element."""

    def __init__(self, kind: type[Array], place: _Place) -> None:
        self._kind, self._place = kind, place

    @property
    def ptr(self) -> Pointer:
        return self._place.pointer(self._kind.dtype.memory_name)

    def view(self, layout: Any) -> Tensor:
        """The array viewed with a layout."""
        return make_view(self.ptr, layout)

    def __repr__(self) -> str:
        return f"<{self._kind.__name__} in shared memory>"


class Storage:
    """Shared memory of a type. The fields of a struct or union are attributes, themselves storages."""

    def __init__(self, kind: Any, place: _Place) -> None:
        self._kind = kind.dtype if issubclass(kind, Align) else kind
        self._place = place

    def __getattr__(self, name: str) -> Storage:
        if name.startswith("_") or not is_composite_type(self._kind) or name not in fields_of(self._kind).places:
            known = fields_of(self._kind).places if is_composite_type(self._kind) else ()
            hint = f"; it has {', '.join(known)}" if known else ""
            raise AttributeError(f"{self!r} has no field {name!r}{hint}")
        offset, kind = fields_of(self._kind).places[name]
        return Storage(kind, self._place.moved(offset))

    def peek(self) -> Any:
        """The current contents: a number, an array as a place with `.ptr` and `.view`, or a struct as its fields.

        The fields of a struct are looked at when they are asked for.
        """
        if is_composite_type(self._kind):
            return Peeked(self)
        if issubclass(self._kind, Array):
            return ArrayInMemory(self._kind, self._place)
        return memref_load(self._number(), 0)

    def poke(self, value: Any) -> None:
        """Write a number, or a value of the struct."""
        if isinstance(value, StructValue) and isinstance(value, self._kind):
            for name in fields_of(self._kind).places:
                getattr(self, name).poke(getattr(value, name))
            return
        if is_composite_type(self._kind) or issubclass(self._kind, Array):
            raise TraceError(f"poke of {self!r}: it is for numbers", at=user_location(), hint="write to its .view(...)")
        memref_store(value, self._number(), 0)

    def _number(self) -> Tensor:
        return make_view(self._place.pointer(self._kind.memory_name), make_layout(1, 1))

    def __repr__(self) -> str:
        return f"<{self._kind.__name__} in shared memory>"


class Peeked:
    """A struct or union in shared memory. Its attributes are the contents of its fields."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name).peek()

    def __repr__(self) -> str:
        return repr(self._storage)


class SharedAllocator:
    """Allocates static shared memory of the kernel that is being traced.

    base_alignment: in bytes, of memory that is asked for by its size. static=False, parts of the launch's dynamic
    memory, is unsupported.
    """

    def __init__(self, base_alignment: int = _DEFAULT_BYTES_ALIGNMENT, *, static: bool = True) -> None:
        if not static:
            raise FlyError(
                "unsupported: SharedAllocator(static=False)",
                at=user_location(),
                hint="static memory is supported: SharedAllocator()",
            )
        self._body = _gpu_module_body()
        self._base_alignment = base_alignment

    def allocate(self, what: Any, alignment: int | None = None) -> Storage:
        """Allocate memory for a type - a number, an `fx.Array`, a struct or union - or for a number of bytes."""
        if isinstance(what, int):
            kind: Any = Array.__class_getitem__((Uint8, what, alignment or self._base_alignment))
        else:
            kind = what if alignment is None else Align.__class_getitem__((what, alignment))
        if not isinstance(kind, type):
            raise ArgumentError(f"allocate takes a type or a number of bytes, not {what!r}", at=user_location())
        symbol = f"shared_{len(self._body.operations)}"
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{size_of(kind)} x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "addr_space": ir.IntegerAttr.get(element_type("i32"), _LDS_SPACE),
            "alignment": ir.IntegerAttr.get(element_type("i64"), align_of(kind)),
        }
        with ir.InsertionPoint(self._body):
            emit("llvm.mlir.global", attributes=attributes, regions=1)
        return Storage(kind, _Place(symbol, align_of(kind), 0))


def _gpu_module_body() -> ir.Block:
    """The body of the GPU module whose kernel is being traced."""
    require_trace("SharedAllocator")
    op = ir.InsertionPoint.current.block.owner
    while op is not None and op.operation.name != "gpu.module":
        op = op.parent
    if op is None:
        raise TraceError("SharedAllocator outside a kernel", at=user_location())
    return op.regions[0].blocks[0]
