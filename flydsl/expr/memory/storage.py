"""Memory of a type: `fx.Storage[T](pointer)`, and `fx.Arena`, which cuts memory into such parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import gcd
from types import SimpleNamespace
from typing import Any, ClassVar, NoReturn, Protocol

from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors import MissingName
from flydsl.expr.memory.struct_value import Known, StructValue
from flydsl.expr.memory.tensors import Pointer, Tensor, add_offset, make_view, memref_load, memref_store, recast_iter
from flydsl.expr.numeric import Int8, Int32, Uint8
from flydsl.expr.struct import Align, Array, Empty, align_of, fields_of, is_composite_type, is_struct_type, size_of
from flydsl.layout import make_layout

__all__ = ["Arena", "ArrayInMemory", "Place", "Storage", "peek_from_ptr", "poke_into_ptr", "start_of"]

_DEFAULT_ALIGNMENT_BYTES = 16


class Place(Protocol):
    """The position of a part of memory."""

    def moved(self, offset: int) -> Place:
        """The place `offset` bytes further."""

    def pointer(self, element: str) -> Pointer:
        """A pointer to elements of a type."""


@dataclass(frozen=True)
class _PlaceAt:
    """The place `offset` bytes past a pointer."""

    start: Pointer
    offset: int = 0

    def moved(self, offset: int) -> Place:
        return _PlaceAt(self.start, self.offset + offset)

    def pointer(self, element: str) -> Pointer:
        start = self.start if self.start.type.element == Int8.memory_name else recast_iter(Int8, self.start)
        moved = add_offset(start, self.offset) if self.offset else start
        kind = moved.type
        return recast_iter(type(kind)(element, kind.space).aligned(kind.known_alignment), moved)


class _Nowhere:
    """The place of what takes no memory."""

    def moved(self, offset: int) -> Place:
        return self

    def pointer(self, element: str) -> NoReturn:
        raise trace_error("the address of fx.Empty, which takes no memory", "leave the pointer out")


_NOWHERE = _Nowhere()


class ArrayInMemory:
    """An `fx.Array` in memory: `array[i]` reads and writes its elements. ptr: a pointer to the first of them."""

    def __init__(self, kind: type[Array], place: Place) -> None:
        self._kind, self._place = kind, place

    @property
    def ptr(self) -> Pointer:
        return self._place.pointer(self._kind.dtype.memory_name)

    def view(self, layout: Any) -> Tensor:
        """The array viewed with a layout."""
        return make_view(self.ptr, layout)

    def __getitem__(self, index: Any) -> Any:
        if self._kind.dtype is Empty:
            return Empty()
        if is_struct_type(self._kind.dtype):
            return self._struct_at(index)
        return self._elements(index)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_struct_type(self._kind.dtype):
            raise trace_error(f"a struct written into {self!r}", "array[i] has its fields: array[i].x is one of them")
        self._elements(index)[index] = value

    def _struct_at(self, index: Any) -> Any:
        """The contents of a struct of the array."""
        kind = self._kind.dtype
        start = self._place.pointer(Int8.memory_name)
        moved = add_offset(start, Int32.exactly(index) * size_of(kind))
        place = type(moved.type)(Int8.memory_name, moved.type.space).aligned(gcd(size_of(kind), self._kind.align))
        return _storage_of(kind)(recast_iter(place, moved)).peek()

    def __len__(self) -> int:
        return self._kind.size

    def _elements(self, index: Any) -> Tensor:
        if isinstance(index, tuple):
            raise trace_error(
                f"{len(index)} indices into {self!r}, which has one mode", "array.view(fx.make_layout((4, 8)))[i, j]"
            )
        return self.view(make_layout(self._kind.size, 1))

    def __repr__(self) -> str:
        return f"<{self._kind.__name__} in memory>"


class Storage:
    """Memory of a type. The fields of a struct or union are attributes, themselves storages.

    `fx.Storage[T](pointer)` is the memory at a pointer; allocators make others.
    """

    kind: ClassVar[Any]

    def __class_getitem__(cls, kind: Any) -> type[Storage]:
        return _storage_of(kind)

    def __init__(self, pointer: Pointer) -> None:
        self._place: Place = _PlaceAt(pointer)

    @classmethod
    def at(cls, place: Place) -> Storage:
        """The memory at a place."""
        made = cls.__new__(cls)
        made._place = place
        return made

    def __getattr__(self, name: str) -> Storage:
        known = fields_of(self.kind).kinds if is_composite_type(self.kind) else {}
        if name.startswith("__") or name not in known:
            hint = f"it has {', '.join(known)}" if known else ".peek() is what it holds, .poke(value) changes that"
            if name in ("view", "ptr") and issubclass(self.kind, Array):
                hint = f"its contents have it: .peek().{name}"
            raise MissingName(f"{self!r} has no field {name!r}", hint=hint)
        if isinstance(known[name], Known):
            raise MissingName(
                f"{self!r}.{name} is compile-time only, and takes no memory",
                hint="the type has its value; what a kernel stores needs a type such as fx.Int32",
            )
        offset, kind = fields_of(self.kind).places[name]
        return _storage_of(kind).at(self._place.moved(offset))

    @property
    def _ptr(self) -> Pointer:
        """A pointer to the first byte, under the name by which FlyDSL documents it."""
        return self._place.pointer(Int8.memory_name)

    def peek(self) -> Any:
        """The current contents: a number, a value of a struct, or an array as a place with `.ptr` and `.view`.

        A union's contents are its fields', which are read when they are asked for.
        """
        if self.kind is Empty:
            return Empty()
        if issubclass(self.kind, Array):
            return ArrayInMemory(self.kind, self._place)
        if is_struct_type(self.kind):
            return self._struct()
        if is_composite_type(self.kind):
            return PeekedUnion(self)
        if hasattr(self.kind, "__peek_from_ptr__"):
            return self.kind.__peek_from_ptr__(self._place.pointer(Int8.memory_name))
        return memref_load(self._number(), 0)

    def _struct(self) -> Any:
        fields = {name: getattr(self, name).peek() for name in fields_of(self.kind).places}
        if not issubclass(self.kind, StructValue):
            return SimpleNamespace(**fields)
        return self.kind(**fields, **self.kind.known_values)

    def poke(self, value: Any) -> None:
        """Write a number, or a value of the struct."""
        if self.kind is Empty:
            if not isinstance(value, Empty):
                raise trace_error(f"poke of {value!r} into {self!r}", "fx.Empty() is its only value")
        elif is_struct_type(self.kind) and isinstance(value, self.kind):
            for name in fields_of(self.kind).places:
                getattr(self, name).poke(getattr(value, name))
        elif hasattr(self.kind, "__poke_into_ptr__"):
            self.kind.__poke_into_ptr__(self._place.pointer(Int8.memory_name), value)
        elif is_composite_type(self.kind) or issubclass(self.kind, Array):
            raise trace_error(
                f"poke into {self!r} takes a number or the value of a struct, not {value!r}",
                "write to an array by its .view(...), and to a field by .field.poke(...)",
            )
        else:
            memref_store(value, self._number(), 0)

    def __getitem__(self, index: Any) -> NoReturn:
        raise trace_error(
            f"an index into {self!r}, which is the place of an array", "index the array: storage.peek()[i]"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index]

    def _number(self) -> Tensor:
        return make_view(self._place.pointer(self.kind.memory_name), make_layout(1, 1))

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} in memory>"


@cache
def _storage_of(kind: Any) -> type[Storage]:
    inner = kind.dtype if isinstance(kind, type) and issubclass(kind, Align) else kind
    size_of(inner)  # raises for what cannot be in memory
    return type(f"Storage[{inner.__name__}]", (Storage,), {"kind": inner})


class PeekedUnion:
    """A union in memory. Its attributes are the contents of its fields."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name).peek()

    def __repr__(self) -> str:
        return repr(self._storage)


def start_of(memory: Storage | ArrayInMemory) -> Pointer:
    """A pointer to the first byte of memory: to the element type of a number or an array, else to bytes."""
    if isinstance(memory, ArrayInMemory):
        return memory.ptr
    kind = memory.kind
    element = kind.dtype if issubclass(kind, Array) else kind
    return memory._place.pointer(getattr(element, "memory_name", Int8.memory_name))


def peek_from_ptr(kind: Any, ptr: Pointer) -> Any:
    """The contents of memory of a type at a pointer: see `Storage.peek`."""
    return _storage_of(kind)(ptr).peek()


def poke_into_ptr(kind: Any, ptr: Pointer, value: Any) -> None:
    """Write a value of a type to memory at a pointer."""
    _storage_of(kind)(ptr).poke(value)


class Arena:
    """Cuts the memory from a pointer on into parts, one after another.

    A subclass gives `base_ptr`. base_alignment: in bytes, of memory that is asked for by its size.
    allocated_bytes: how much is in use.
    """

    DEFAULT_BASE_ALIGNMENT = _DEFAULT_ALIGNMENT_BYTES

    def __init__(self, base_alignment: int = DEFAULT_BASE_ALIGNMENT) -> None:
        self._base_alignment = base_alignment
        self.allocated_bytes = 0

    @property
    def base_ptr(self) -> Pointer:
        """A pointer to the beginning of the memory."""
        raise NotImplementedError(f"{type(self).__name__} has no base_ptr")

    def allocate(self, what: Any, alignment: int | None = None) -> Storage:
        """Allocate memory for a type - a number, an `fx.Array`, a struct or union - or for a number of bytes."""
        if alignment is not None and not isinstance(alignment, int):
            raise argument_error(f"alignment must be a number of bytes, got {alignment!r}", "16, for example")
        if isinstance(what, int):
            if what < 1:
                raise argument_error(f"allocate takes a positive number of bytes, not {what}", "pass 1024, for example")
            kind: Any = Array.__class_getitem__((Uint8, what, alignment or self._base_alignment))
        else:
            kind = what if alignment is None else Align.__class_getitem__((what, max(alignment, align_of(what))))
        if not isinstance(kind, type):
            raise argument_error(
                f"allocate takes a type or a number of bytes, not {what!r}",
                "pass fx.Array[fx.Float32, 256], or 1024 bytes, for example",
            )
        storage = _storage_of(kind)
        return storage.at(_NOWHERE if size_of(kind) == 0 else self._place(storage.kind, align_of(kind)))

    def _place(self, kind: Any, align: int) -> Place:
        """Reserve memory of a type, of an alignment in bytes."""
        return self._reserve(size_of(kind), align)

    def _reserve(self, size: int, align: int) -> Place:
        offset = -(-self.allocated_bytes // align) * align
        self.allocated_bytes = offset + size
        return _PlaceAt(self.base_ptr, offset)
