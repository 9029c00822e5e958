"""The types that signatures name, and the traced values behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeAlias, TypeVar

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.context import context
from flydsl.dialect.elements import element_type
from flydsl.dialect.inference import register_elements
from flydsl.dialect.location import user_location
from flydsl.dialect.types import (
    ComposedLayoutType,
    IntTupleType,
    LayoutType,
    MemRefType,
    fly_type,
)
from flydsl.errors import ArgumentError, TraceError
from flydsl.expr.names import unknown_name
from flydsl.expr.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    numeric_class,
)
from flydsl.expr.vector_value import ReductionOp, Vector, empty_like, full, full_like, ones_like, zeros_like
from flydsl.layout import ComposedLayout, Layout, Swizzle, Tile

__all__ = [
    "AddressSpace",
    "BFloat16",
    "Boolean",
    "ComposedLayout",
    "Constexpr",
    "CopyAtom",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E4M3FNUZ",
    "Float8E5M2",
    "Float8E5M2FNUZ",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Index",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "IntTuple",
    "Layout",
    "LayoutValue",
    "MmaAtom",
    "Numeric",
    "Pointer",
    "ReductionOp",
    "Stream",
    "Swizzle",
    "T",
    "Tensor",
    "ThrCopy",
    "ThrMma",
    "Tile",
    "TiledCopy",
    "TiledMma",
    "Types",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "Vector",
    "empty_like",
    "full",
    "full_like",
    "ones_like",
    "zeros_like",
]  # fmt: skip

_T = TypeVar("_T")
# Inside the classes below, `type` is the fly type of a value.
Scalar = type[Numeric]


if TYPE_CHECKING:
    # To a type checker the parameter is what it is in the body: a plain int.
    Constexpr: TypeAlias = Annotated[_T, "known when compiling"]
else:

    class Constexpr(Generic[_T]):
        """A parameter known when compiling: `n: fx.Constexpr[int]`. Each value compiles its own kernel."""


class Stream:
    """The stream that a launcher's kernels run on.

    value: None for the device's current stream, a `torch.cuda.Stream`, or a raw stream handle. On the simulator a
    launch is complete when the call returns, and the stream has no meaning.
    """

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value.value if isinstance(value, Stream) else value

    def __repr__(self) -> str:
        return f"Stream({self.value})"


class FlyValue:
    """A traced value of a type of the fly dialect."""

    value: ir.Value

    @property
    def type(self) -> Any:
        """The fly type, with what is known about the value when compiling."""
        return fly_type(self.value.type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type})"


class IntTuple(FlyValue):
    """A traced tuple of integers, some of them runtime values. Index it, or unpack it, for its modes."""

    type: IntTupleType

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    def __getitem__(self, mode: int) -> Any:
        from flydsl.expr import primitive

        return primitive.get(self, mode)

    def unpack(self) -> tuple[Any, ...]:
        """The modes: ints where they are known when compiling, else values."""
        return tuple(self)

    def __len__(self) -> int:
        return int(algebra.rank(self.type.value))

    def __iter__(self) -> Iterator[Any]:
        return (self[mode] for mode in range(len(self)))


class LayoutValue(FlyValue):
    """A traced layout, or composed layout, with runtime values in it. A static one is a plain `Layout`.

    `layout(i, j)`, `layout((i, j))` or `layout(n)` is the index at a coordinate.
    """

    type: LayoutType | ComposedLayoutType

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def shape(self) -> Any:
        from flydsl.expr import primitive

        return primitive.get_shape(self)

    @property
    def stride(self) -> Any:
        from flydsl.expr import primitive

        return primitive.get_stride(self)

    def __getitem__(self, mode: Any) -> Any:
        """One mode of the layout; of a coordinate such as `layout[None, 3]` the layout that is left."""
        from flydsl.expr import primitive

        return primitive.slice(self, mode) if isinstance(mode, tuple) else primitive.get(self, mode)

    def __call__(self, *coordinate: Any) -> Any:
        from flydsl.expr import primitive

        return primitive.crd2idx(coordinate[0] if len(coordinate) == 1 else coordinate, self)


class Tensor(FlyValue):
    """A tensor: memory seen through a layout.

    `t[coord]` with integers reads an element and `t[coord] = v` writes one; with None in a mode (`t[None, bid]`) it
    is the tensor that remains when the other modes are fixed.
    """

    type: MemRefType

    def __init__(self, value: ir.Value | Tensor) -> None:
        self.value = value.value if isinstance(value, Tensor) else value

    @property
    def dtype(self) -> Scalar:
        """The scalar type of the elements."""
        return numeric_class(self.type.element)

    element_type = dtype

    @property
    def layout(self) -> Any:
        """The layout: static ones as a plain Layout, others as a traced value."""
        from flydsl.expr import primitive

        return primitive.get_layout(self)

    @property
    def shape(self) -> Any:
        from flydsl.expr import primitive

        return primitive.get_shape(self.layout)

    @property
    def stride(self) -> Any:
        from flydsl.expr import primitive

        return primitive.get_stride(self.layout)

    @property
    def iterator(self) -> Pointer:
        """The pointer to the first element."""
        from flydsl.expr import primitive

        return primitive.get_iter(self)

    @property
    def memspace(self) -> str:
        """The address space: `global`, `shared`, `register` or a buffer's."""
        return self.type.space

    def load(self) -> Vector:
        """All elements of a register tensor as a vector."""
        from flydsl.expr import primitive

        return primitive.memref_load_vec(self)

    load_vec = load

    def store(self, vector: Any) -> None:
        """Write a vector to a register tensor."""
        from flydsl.expr import primitive

        primitive.memref_store_vec(vector, self)

    store_vec = store

    def fill(self, value: Any) -> None:
        """Set every element of a register tensor to one number."""
        from flydsl.expr.operands import located

        self.store(Vector.filled([located(register_elements, self.type)], value, self.dtype))

    def __getitem__(self, coordinate: Any) -> Any:
        from flydsl.expr import primitive

        self._refuse_slices(coordinate)
        if primitive.has_none(coordinate):
            return primitive.slice(self, coordinate)
        return primitive.memref_load(self, coordinate)

    def _refuse_slices(self, coordinate: Any) -> None:
        parts = coordinate if isinstance(coordinate, tuple | list) else (coordinate,)
        if any(isinstance(part, slice) for part in parts):
            raise ArgumentError(
                f"a range in the index of a tensor, {self!r}",
                at=user_location(),
                hint="None keeps a whole mode, as in t[None, j]; for a tile of one: "
                "fx.zipped_divide(t, fx.make_tile(4))[None, i], or fx.Vector.load",
            )

    def __iter__(self) -> NoReturn:
        raise TraceError(
            f"iteration over a tensor, {self!r}",
            at=user_location(),
            hint="loop over an index: `for i in range(n)`, or range_constexpr for an unrolled loop",
        )

    def __setitem__(self, coordinate: Any, value: Any) -> None:
        from flydsl.expr import primitive

        self._refuse_slices(coordinate)
        if primitive.has_none(coordinate):
            raise TraceError(
                f"assignment to the slice {coordinate!r} of a tensor",
                at=user_location(),
                hint="copy tensors with fx.copy_atom_call",
            )
        primitive.memref_store(value, self, coordinate)


class _VectorTypes:
    """MLIR's VectorType, which can be made outside of a kernel too."""

    @staticmethod
    def get(shape: Sequence[int], element: ir.Type) -> ir.Type:
        """The vector type with these extents."""
        with context(), ir.Location.unknown():
            return ir.VectorType.get(list(shape), element)


class Types:
    """MLIR types by their short names: `T.f32`, `T.bf16`, `T.i32`, `T.index`.

    Vectors are `T.f16x8` or `T.vec(8, T.f16)`. `T.VectorType` is MLIR's class: `T.VectorType.get([64], T.f32)`.
    """

    VectorType = _VectorTypes

    def vec(self, count: int, element: Any) -> ir.Type:
        """A vector type. element: an MLIR type or a scalar type."""
        kind = element.ir_type if isinstance(element, type) and issubclass(element, Numeric) else element
        if not isinstance(kind, ir.Type) or not isinstance(count, int) or count < 1:
            raise ArgumentError(f"T.vec({count!r}, {element!r})", at=user_location(), hint="such as T.vec(4, T.f32)")
        return _VectorTypes.get([count], kind)

    def __getattr__(self, name: str) -> ir.Type:
        vector = re.fullmatch(r"(\w+)x(\d+)", name)
        try:
            kind = element_type(vector[1] if vector else name)
        except ArgumentError as error:
            raise AttributeError(f"T.{name}: {error.message}") from None
        return self.vec(int(vector[2]), kind) if vector else kind


T = Types()

# Classes that need the ones above.
from flydsl.expr.atoms import CopyAtom, MmaAtom, ThrCopy, ThrMma, TiledCopy, TiledMma  # noqa: E402
from flydsl.expr.pointer import AddressSpace, Pointer  # noqa: E402

__getattr__ = unknown_name(__name__, globals())
