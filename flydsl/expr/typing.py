"""Types for signatures: constants, streams, MLIR types by short names, and the classes of values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

from mlir import ir

from flydsl import env
from flydsl.arch import DEFAULT_ARCH, get_arch
from flydsl.atoms.instruction_sets import CDNA4, GFX12
from flydsl.dialect.context import context
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.errors import ArchError, ArgumentError
from flydsl.errors.places import user_location
from flydsl.expr.atoms.copies import CopyAtom, ThrCopy, TiledCopy
from flydsl.expr.atoms.mma import MmaAtom, ThrMma, TiledMma
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.layouts.algebra import IntTuple, LayoutValue
from flydsl.expr.memory.tensors import AddressSpace, Pointer, Tensor, is_generic_address_space, is_target_address_space
from flydsl.expr.numbers.raw_values import as_dsl_value, as_ir_value
from flydsl.expr.numbers.vector_alias import vector_names
from flydsl.expr.numbers.vector_value import ReductionOp, Vector, empty_like, full, full_like, ones_like, zeros_like
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
)
from flydsl.expr.threads.positions import Tuple3D
from flydsl.expr.tracing.emit import target_name
from flydsl.layout import ComposedLayout, CoordSwizzle, Layout, Swizzle, Tile

__all__ = [
    "AddressSpace", "BFloat16", "Boolean", "ComposedLayout", "Constexpr", "CoordSwizzle", "CopyAtom", "Float",
    "Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3", "Float8E4M3B11FNUZ", "Float8E4M3FN", "Float8E4M3FNUZ",
    "Float8E5M2", "Float8E5M2FNUZ", "Float8E8M0FNU", "Float16", "Float32", "Float64", "Index", "Int4", "Int8", "Int16",
    "Int32", "Int64", "Int128", "IntTuple", "Layout", "LayoutValue", "MmaAtom", "Numeric", "Pointer", "ReductionOp",
    "Stream", "Swizzle", "T", "Tensor", "ThrCopy", "ThrMma", "Tile", "TiledCopy", "TiledMma", "Tuple3D", "Types",
    "Uint8", "Uint16", "Uint32", "Uint64", "Uint128", "Vector", "as_dsl_value", "as_ir_value", "default_f8_type",
    "empty_like", "full", "full_like", "is_generic_address_space", "is_target_address_space", "ones_like", "zeros_like",
]  # fmt: skip

_T = TypeVar("_T")

if TYPE_CHECKING:
    # To a type checker the parameter is what it is in the body: a plain int.
    Constexpr: TypeAlias = Annotated[_T, "known at compile time"]
else:

    class Constexpr(Generic[_T]):
        """A parameter known at compile time: `n: fx.Constexpr[int]`. Each value compiles its own kernel."""


class Stream:
    """The stream that a launcher's kernels run on.

    value: None for the device's current stream, a `torch.cuda.Stream`, or a raw stream handle. On the simulator a
    launch is complete when the call returns, and the stream has no meaning.
    """

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value.value if isinstance(value, Stream) else value

    def __repr__(self) -> str:
        return f"Stream({self.value})"


_callable_types: dict[type, Any] = {}


def _called(kind: ir.Type) -> Any:
    """An MLIR type that may be called: `T.f32` and `T.f32()` are the same."""
    cls = type(kind)
    if cls not in _callable_types:
        _callable_types[cls] = type(cls.__name__, (cls,), {"__call__": lambda self: self})
    return _callable_types[cls](kind)


def default_f8_type(arch: str | None = None) -> type[Numeric]:
    """The fp8 type of an architecture, by default the target: E4M3FNUZ on CDNA 3, E4M3FN after it.

    Raises ArchError for one that has no fp8.
    """
    target = get_arch(arch or target_name() or env.text("ARCH") or env.text("FLYDSL_GPU_ARCH") or DEFAULT_ARCH.name)
    if Float8E4M3FNUZ.mlir_name in target.float8_conversions:
        return Float8E4M3FNUZ
    if target.name in (*CDNA4, *GFX12):
        return Float8E4M3FN
    raise ArchError(f"{target.name} has no fp8", at=user_location(), hint="name the format: fx.Float8E4M3FN")


class _VectorTypes:
    """MLIR's VectorType, which can also be made outside of a kernel."""

    @staticmethod
    def get(shape: Sequence[int], element: ir.Type) -> ir.Type:
        """The vector type with these extents."""
        with context(), ir.Location.unknown():
            return ir.VectorType.get(list(shape), element)


class Types:
    """MLIR types by their short names: `T.f32`, `T.bf16`, `T.i32`, `T.index`; `T.f32()` is the same type.

    `T.f8` is the target's own: see `default_f8_type`. Vectors are `T.f16x8` or `T.vec(8, T.f16)`. `T.VectorType` is
    MLIR's class: `T.VectorType.get([64], T.f32)`.
    """

    VectorType = _VectorTypes

    def vec(self, n: int, elem: Any) -> ir.Type:
        """A vector type of `n` elements. elem: an MLIR type or a scalar type."""
        kind = elem.ir_type if isinstance(elem, type) and issubclass(elem, Numeric) else elem
        if not isinstance(kind, ir.Type) or not isinstance(n, int) or n < 1:
            raise argument_error(f"T.vec({n!r}, {elem!r})", "pass T.vec(4, T.f32), for example")
        return _VectorTypes.get([n], kind)

    def __getattr__(self, name: str) -> ir.Type:
        if name.startswith("__"):
            raise AttributeError(name)
        vector = re.fullmatch(r"(\w+)x(\d+)", name)
        short = vector[1] if vector else name
        try:
            kind = default_f8_type().ir_type if short == "f8" else element_type(_SHORT_NAMES.get(short, short))
        except ArgumentError as error:
            raise AttributeError(f"T.{name}: {error.message}") from None
        return _called(self.vec(int(vector[2]), kind) if vector else kind)


_SHORT_NAMES = {"bool": "i1"}

T = Types()

_ELSEWHERE = {
    "Array": "flydsl.expr.struct", "PointerType": "flydsl.dialect.types",
    "address_space_from_attr": "flydsl.expr.memory.tensors",
}  # fmt: skip
__getattr__ = vector_names(unknown_name(__name__, globals(), _ELSEWHERE))
