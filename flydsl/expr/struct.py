"""Types of memory and values with several parts: `fx.Array`, `@fx.struct`, `@fx.union`.

    @fx.struct
    class Tiles:
        a: fx.Array[fx.Float16, 4096, 16]     # 4096 elements, aligned to 16 bytes
        flag: fx.Int32

Fields lie one after another, each at its alignment, as in C; those of a union all begin at 0.
`fx.Struct["x": fx.Int32, "y": fx.Float32]` is such a type without a class; fields without a name are `_0`, `_1`.
`fx.SharedAllocator` gives memory of a type. `Point(x, y=1.0)` is a value of a struct whose fields are numbers, vectors,
tensors, pointers, structs of them, objects that follow the protocol of `DslType`, or `fx.Constexpr[...]`, which takes
no memory. A union has no values, only memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, ClassVar, NoReturn, get_args, get_origin

from flydsl.dialect.location import argument_error, trace_error
from flydsl.errors import ArgumentError
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.memory.struct_value import Known, StructValue, is_own_value
from flydsl.expr.memory.tensors import Pointer, Tensor
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Constexpr

__all__ = [
    "Align", "Array", "Empty", "Struct", "Union", "is_composite_type", "is_specializable_struct_type", "is_struct_type",
    "struct", "union",
]  # fmt: skip

_MAX_ALIGNMENT_BYTES = 128


class Array:
    """`fx.Array[dtype, size, align]`: `size` contiguous numbers. align: in bytes, by default the size of one number.

    The elements may be structs, too: `memory.peek()[i]` is the contents of one.
    """

    dtype: ClassVar[Any]
    size: ClassVar[int]
    align: ClassVar[int]
    _Base: ClassVar[type[Array]]  # what FlyDSL calls this class, and programs ask `issubclass` for

    @classmethod
    def __dsl_size_of__(cls) -> int:
        """Bytes of all elements."""
        return size_of(cls)

    @classmethod
    def __dsl_align_of__(cls) -> int:
        """The alignment in bytes."""
        return align_of(cls)

    def __class_getitem__(cls, parameters: Any) -> type[Array]:
        given = parameters if isinstance(parameters, tuple) else (parameters,)
        if len(given) not in (2, 3):
            raise argument_error(
                f"fx.Array takes a type, a size and perhaps an alignment, got {parameters!r}",
                "write fx.Array[fx.Float32, 256] or fx.Array[fx.Float32, 256, 16], for example",
            )
        dtype, size, align = (*given, None)[:3]
        if dtype is not Empty and not is_struct_type(dtype):
            _check_number("fx.Array", dtype)
        if not isinstance(size, int) or size < 1:
            raise argument_error(
                f"the size of fx.Array must be a positive Python int, got {size!r}",
                "a size of run time needs dynamic shared memory: fx.get_dyn_shared",
            )
        return _array(dtype, size, align_of(dtype) if align is None else _checked_alignment(align))


Array._Base = Array


class Empty:
    """The type of what takes no memory, and its only value. Allocated, it is there: `.peek()` is `fx.Empty()`."""

    def __repr__(self) -> str:
        return "Empty()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empty)

    def __hash__(self) -> int:
        return hash(Empty)

    @classmethod
    def __dsl_size_of__(cls) -> int:
        """0 bytes."""
        return 0

    @classmethod
    def __dsl_align_of__(cls) -> int:
        """1 byte."""
        return 1


class Align:
    """`fx.Align[type, align]`: a type with an alignment, in bytes, not smaller than its own. Its size stays."""

    dtype: ClassVar[Any]
    align: ClassVar[int]

    def __class_getitem__(cls, parameters: Any) -> type[Align]:
        if not isinstance(parameters, tuple) or len(parameters) != 2:
            raise argument_error(
                f"fx.Align takes a type and a number of bytes, got {parameters!r}",
                "write fx.Align[fx.Float32, 16], for example",
            )
        dtype, align = parameters
        if _checked_alignment(align) < align_of(dtype):
            raise argument_error(
                f"fx.Align[{dtype.__name__}, {align}]: {align} is smaller than natural, which is {align_of(dtype)}",
                "align it to more, or omit fx.Align",
            )
        return _align(dtype, align)


@cache
def _array(dtype: Any, size: int, align: int) -> type[Array]:
    name = f"Array[{dtype.__name__}, {size}, {align}]"
    return type(name, (Array,), {"dtype": dtype, "size": size, "align": align})


@cache
def _align(dtype: Any, align: int) -> type[Align]:
    return type(f"Align[{dtype.__name__}, {align}]", (Align,), {"dtype": dtype, "align": align})


def _checked_alignment(align: Any) -> int:
    if type(align) is not int:
        wrong = "it must be an int"
    elif align < 1:
        wrong = "it must be positive"
    elif align & (align - 1) or align > _MAX_ALIGNMENT_BYTES:
        wrong = f"it must be a power of two up to {_MAX_ALIGNMENT_BYTES}"
    else:
        return align
    raise argument_error(f"an alignment of {align!r} bytes: {wrong}", "pass 16, for example")


def _check_number(what: str, dtype: Any) -> None:
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric) and hasattr(dtype, "mlir_name")):
        raise argument_error(
            f"{what} takes a Numeric subclass or another Storable type, not {dtype!r}", "pass fx.Float16, for example"
        )
    dtype.__dsl_size_of__()  # raises for one that is not whole bytes


class Fields:
    """The parts of a struct or union. kinds: name -> type, or `Known`."""

    def __init__(self, kinds: Mapping[str, Any], is_union: bool) -> None:
        self.kinds, self.is_union = kinds, is_union

    @cached_property
    def _layout(self) -> tuple[dict[str, tuple[int, Any]], int, int]:
        places: dict[str, tuple[int, Any]] = {}
        end, align = 0, 1
        for name, kind in self.kinds.items():
            if not isinstance(kind, Known):
                start = 0 if self.is_union else -(-end // align_of(kind)) * align_of(kind)
                places[name] = start, kind
                end, align = max(end, start + size_of(kind)), max(align, align_of(kind))
        return places, -(-end // align) * align, align

    @property
    def places(self) -> dict[str, tuple[int, Any]]:
        """name -> (offset in bytes, type) of the fields that take memory."""
        return self._layout[0]

    @property
    def size(self) -> int:
        return self._layout[1]

    @property
    def align(self) -> int:
        return self._layout[2]


class _Composite:
    """`@fx.struct` above a class with annotated fields, or `fx.Struct[...]` with the fields in brackets."""

    def __init__(self, name: str, is_union: bool) -> None:
        self._name, self._is_union = name, is_union

    def __call__(self, cls: type | None = None, /, **options: Any) -> Any:
        """Make a class with annotated fields a type of memory and, unless it is a union, of values."""
        if cls is None:
            return self
        if not isinstance(cls, type):
            raise argument_error(f"fx.{self._name} takes a class, not {cls!r}", f"write @fx.{self._name} above a class")
        return _composite(cls, cls.__name__, _annotations(cls), self._is_union)

    def __getitem__(self, parts: Any) -> type:
        given = parts if isinstance(parts, tuple) else (parts,)
        named = [(p.start, p.stop) if isinstance(p, slice) else (f"_{i}", p) for i, p in enumerate(given)]
        names = [name for name, _ in named]
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"fx.{self._name}[...] with the names {names}", hint='each is text: ["x": fx.Int32]')
        for part in given:
            if isinstance(part, slice):
                _check_name(f"fx.{self._name}[...]", part.start)
        if len(set(names)) != len(names):
            raise ArgumentError(
                f"fx.{self._name}[...] with duplicate names: {names}", hint="give each field a name of its own"
            )
        return _inline(self._name, tuple(named), self._is_union)

    def __repr__(self) -> str:
        return f"fx.{self._name}"


@cache
def _inline(name: str, named: tuple[tuple[str, Any], ...], is_union: bool) -> type:
    shown = ", ".join(getattr(kind, "__name__", repr(kind)) for _, kind in named)
    return _composite(object, f"{name}[{shown}]", dict(named), is_union)


def _composite(cls: type, name: str, annotations: dict[str, Any], is_union: bool) -> type:
    if not annotations:
        raise argument_error(f"{name} has no annotated fields", "write them as in a dataclass: name: fx.Float32")
    kinds = {field: _kind(f"{name}.{field}", field, kind) for field, kind in annotations.items()}
    members = {
        "dsl_fields": Fields(kinds, is_union), "__module__": cls.__module__, "__annotations__": annotations,
        "__dsl_size_of__": classmethod(size_of), "__dsl_align_of__": classmethod(align_of),
    }  # fmt: skip
    if cls is not object:
        members["__qualname__"] = cls.__qualname__
    bases = () if cls is object else (cls,)
    if is_union or not all(map(_is_value_field, kinds.values())):
        return type(name, bases, {**members, "__init__": _no_union if is_union else _no_values})
    return type(name, (*bases, StructValue), {**members, "value_kinds": _value_kinds(kinds)})


def _kind(where: str, name: str, kind: Any) -> Any:
    """A field's type, checked; `Constexpr[T]` as what says that it is known."""
    if not name[1:].isdigit():
        _check_name(where, name)
    if kind is Constexpr or get_origin(kind) is Constexpr:
        (inner,) = get_args(kind) or (None,)
        return Known(inner if isinstance(inner, type) else None)
    own = isinstance(kind, type) and (
        issubclass(kind, Align | Array | Tensor | Pointer)
        or (hasattr(kind, "__dsl_size_of__") and not issubclass(kind, Numeric))
        or is_own_value(kind)
    )
    if not own and not is_composite_type(kind):
        _check_number(where, kind)
    return kind


def _check_name(where: str, name: str) -> None:
    if name.startswith("_"):
        raise argument_error(
            f"{where}: the name {name!r} of a field must not start with an underscore",
            "only fields without a name have one: _0, _1",
        )
    if name in ("peek", "poke", "replace", "dsl_fields"):
        raise argument_error(f"{where}: the name {name!r} is reserved", "rename the field")


def _is_value_field(kind: Any) -> bool:
    """True if a value can have a field of a type."""
    if isinstance(kind, Known):
        return True
    return issubclass(_unaligned(kind), Numeric | StructValue | Tensor | Pointer) or is_own_value(_unaligned(kind))


def _value_kinds(kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind if isinstance(kind, Known) else _unaligned(kind) for name, kind in kinds.items()}


def _unaligned(kind: Any) -> Any:
    return kind.dtype if issubclass(kind, Align) else kind


def _annotations(cls: type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(cls, eval_str=True)
    except NameError as error:
        raise argument_error(
            f"the fields of {cls.__name__}: {error}",
            "with `from __future__ import annotations`, field types must be names of the module",
        ) from None


def _no_values(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    raise trace_error(
        f"unsupported: a value of {type(self).__name__}, which has arrays",
        "it is a type of memory: fx.SharedAllocator().allocate(...)",
    )


def _no_union(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    raise argument_error(
        f"a value of {type(self).__name__}: a union is memory that its fields share, and has no value form",
        "fx.SharedAllocator().allocate(...), and .poke(...) of one of its fields",
    )


struct = Struct = _Composite("Struct", is_union=False)
union = Union = _Composite("Union", is_union=True)


def is_composite_type(kind: object) -> bool:
    """True if a type is a struct or a union."""
    return isinstance(kind, type) and isinstance(getattr(kind, "dsl_fields", None), Fields)


def is_struct_type(kind: object) -> bool:
    """True if a type is a struct."""
    return is_composite_type(kind) and not fields_of(kind).is_union


def is_specializable_struct_type(kind: object) -> bool:
    """True if a type is a struct with a field that is known at compile time, or with such a struct in it."""
    kind = _unaligned(kind) if isinstance(kind, type) else kind
    kinds = fields_of(kind).kinds.values() if is_struct_type(kind) else ()
    return any(isinstance(field, Known) or is_specializable_struct_type(field) for field in kinds)


def fields_of(kind: Any) -> Fields:
    """The parts of a struct or union."""
    return kind.dsl_fields


def size_of(kind: Any) -> int:
    """Number of bytes that a type takes in memory."""
    if kind is Empty:
        return 0
    if is_composite_type(kind):
        return fields_of(kind).size
    if isinstance(kind, type) and issubclass(kind, Align):
        return size_of(kind.dtype)
    if isinstance(kind, type) and issubclass(kind, Array) and hasattr(kind, "size"):
        return kind.size * size_of(kind.dtype)
    return _own(kind, "__dsl_size_of__") or _number_bytes(kind)


def align_of(kind: Any) -> int:
    """The alignment of a type in bytes."""
    if kind is Empty:
        return 1
    if is_composite_type(kind):
        return fields_of(kind).align
    if isinstance(kind, type) and issubclass(kind, Align | Array) and hasattr(kind, "align"):
        return kind.align
    return _own(kind, "__dsl_align_of__") or size_of(kind)


def _own(kind: Any, method: str) -> int:
    """The result of one of the methods of `Storable` of a program's own class; 0 if it does not have the method."""
    if isinstance(kind, type) and issubclass(kind, Numeric):
        return 0
    says: Callable[[], int] | None = getattr(kind, method, None)
    return 0 if says is None else says()


def _number_bytes(kind: Any) -> int:
    _check_number("memory", kind)
    return kind.__dsl_size_of__()


__getattr__ = unknown_name(
    __name__, globals(), {"Arena": "flydsl.expr.memory.storage", "Storage": "flydsl.expr.memory.storage"}
)
