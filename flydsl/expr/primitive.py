"""The calls of a kernel body: layout algebra, tensors and copy atoms, and what is known when compiling."""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl import atoms
from flydsl import layout as algebra
from flydsl.atoms import CopyOp
from flydsl.dialect.elements import element_bits
from flydsl.dialect.location import user_location
from flydsl.dialect.types import CopyAtomType, PointerType, TiledCopyType, fly_type, is_static
from flydsl.errors import ArgumentError, FlyError, TraceError
from flydsl.expr.algebra import *  # noqa: F403 - the layout algebra is part of this namespace
from flydsl.expr.algebra import __all__ as _algebra_names
from flydsl.expr.emit import emit_fly
from flydsl.expr.numeric import ArithValue, Numeric, require_numeric
from flydsl.expr.operands import as_operand, is_runtime, located
from flydsl.expr.typing import CopyAtom, IntTuple, Layout, LayoutValue, T, Tensor, Tile, TiledCopy
from flydsl.expr.vector import Vector

__all__ = [
    "add_offset", "const_expr", "copy", "copy_atom_call", "get_iter", "get_layout", "make_copy_atom",
    "make_fragment_like", "make_tiled_copy", "make_view", "memref_alloca", "memref_load", "memref_load_vec",
    "memref_store", "memref_store_vec", "range_constexpr", "static", "T", "tiled_copy_partition_dst",
    "tiled_copy_partition_src", "UniversalCopy", "UniversalCopy128b", "UniversalCopy16b", "UniversalCopy32b",
    "UniversalCopy64b", "UniversalCopy8b", *_algebra_names,
]  # fmt: skip

# --- tensors ---------------------------------------------------------------------------------------------------------


def _require_tensor(what: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise ArgumentError(f"{what} takes a tensor, not {value!r}", at=user_location())


def get_layout(tensor: Any) -> Any:
    """The layout of a tensor."""
    kind = _require_tensor("get_layout", tensor).type
    if is_static(kind.layout):
        return kind.layout
    return LayoutValue(emit_fly("get_layout", [tensor.value]).result)


def get_iter(tensor: Any) -> ir.Value:
    """The pointer to a tensor's first element."""
    return emit_fly("get_iter", [_require_tensor("get_iter", tensor).value]).result


def make_view(pointer: ir.Value, layout: Any) -> Tensor:
    """The memory at `pointer` seen through `layout`."""
    return Tensor(emit_fly("make_view", [_require_pointer("make_view", pointer), as_operand(layout)]).result)


def add_offset(pointer: ir.Value, offset: Any) -> ir.Value:
    """`pointer` moved by `offset` elements."""
    return emit_fly("add_offset", [_require_pointer("add_offset", pointer), as_operand(offset)]).result


def _require_pointer(what: str, value: Any) -> ir.Value:
    if isinstance(value, ir.Value) and isinstance(fly_type(value.type), PointerType):
        return value
    raise ArgumentError(f"{what} takes a pointer, not {value!r}", at=user_location(), hint="fx.get_iter(tensor) is one")


def memref_alloca(layout: Any, dtype: type[Numeric]) -> Tensor:
    """A tensor in registers. layout: static; dtype: the element type."""
    element = require_numeric("memref_alloca", dtype).mlir_name
    return Tensor(emit_fly("memref.alloca", [as_operand(layout)], attributes={"element": element}).result)


def _check_coordinate(what: str, tensor: Tensor, coordinate: Any) -> None:
    if isinstance(coordinate, IntTuple):
        return
    given = len(coordinate) if isinstance(coordinate, tuple | list) else 1
    expected = algebra.rank(tensor.type.layout)
    if given not in (1, expected):
        raise ArgumentError(
            f"{what} with {given} indices of a tensor with {expected} modes, {tensor.type}", at=user_location()
        )


def memref_load(tensor: Any, coordinate: Any) -> Any:
    """The element at a coordinate: one integer per mode, or one index into all of them, leftmost mode fastest."""
    _check_coordinate("a load", _require_tensor("memref_load", tensor), coordinate)
    return tensor.dtype.of(emit_fly("memref.load", [tensor.value, as_operand(_unwrapped(coordinate))]).result)


def memref_store(value: Any, tensor: Any, coordinate: Any) -> None:
    """Write one element; a Python number takes the tensor's type."""
    _check_coordinate("a store", _require_tensor("memref_store", tensor), coordinate)
    element = _as_element(value, tensor)
    emit_fly("memref.store", [element, tensor.value, as_operand(_unwrapped(coordinate))])


def _unwrapped(coordinate: Any) -> Any:
    """A coordinate of one integer without its brackets: it indexes the whole tensor."""
    return coordinate[0] if isinstance(coordinate, tuple | list) and len(coordinate) == 1 else coordinate


def _as_element(value: Any, tensor: Tensor) -> ir.Value:
    if isinstance(value, ArithValue | ir.Value):
        operand = value if isinstance(value, ir.Value) else value.ir_value()
        if operand.type != tensor.dtype.ir_type:
            raise ArgumentError(
                f"a store of {operand.type} to a tensor of {tensor.type.element}",
                at=user_location(),
                hint=f"convert it with .to(fx.{tensor.dtype.__name__})",
            )
        return operand
    return tensor.dtype(value).ir_value()


def memref_load_vec(tensor: Any) -> Vector:
    """All elements of a register tensor, in the order of its memory, as a vector."""
    return Vector(emit_fly("memref.load_vec", [_require_tensor("memref_load_vec", tensor).value]).result, tensor.dtype)


def memref_store_vec(vector: Any, tensor: Any) -> None:
    """Write a vector to a register tensor of the same size and type."""
    memref = _require_tensor("memref_store_vec", tensor)
    value = vector.ir_value() if isinstance(vector, ArithValue) else vector
    if not isinstance(value, ir.Value):
        raise ArgumentError(f"memref_store_vec takes a vector, not {vector!r}", at=user_location())
    emit_fly("memref.store_vec", [value, memref.value])


# --- copy atoms ------------------------------------------------------------------------------------------------------


def UniversalCopy(bits: int) -> CopyOp:
    """A copy of `bits` contiguous bits (8 to 128) by one thread: a plain load, store or register move."""
    return located(atoms.UniversalCopy, bits)


def UniversalCopy8b() -> CopyOp:
    """A copy of 8 bits by one thread."""
    return UniversalCopy(8)


def UniversalCopy16b() -> CopyOp:
    """A copy of 16 bits by one thread."""
    return UniversalCopy(16)


def UniversalCopy32b() -> CopyOp:
    """A copy of 32 bits by one thread."""
    return UniversalCopy(32)


def UniversalCopy64b() -> CopyOp:
    """A copy of 64 bits by one thread."""
    return UniversalCopy(64)


def UniversalCopy128b() -> CopyOp:
    """A copy of 128 bits by one thread."""
    return UniversalCopy(128)


def make_copy_atom(op: CopyOp, element: Any) -> CopyAtom:
    """A copy instruction for elements of a type.

    op: `UniversalCopy32b()`, ...
    element: a scalar type, or the element's width in bits.
    """
    if not isinstance(op, CopyOp):
        hint = "call it: fx.UniversalCopy32b()" if callable(op) else None
        raise ArgumentError(f"make_copy_atom takes a copy instruction, not {op!r}", at=user_location(), hint=hint)
    bits = element if isinstance(element, int) else element_bits(_element_name(element))
    if bits <= 0 or op.bits % bits:
        raise ArgumentError(
            f"{op} moves {op.bits} bits, which is not a whole number of {bits}-bit elements", at=user_location()
        )
    return CopyAtom(CopyAtomType(op, bits))


def _element_name(element: Any) -> str:
    if isinstance(element, type) and issubclass(element, Numeric):
        return element.mlir_name
    if isinstance(element, ir.Type):
        return str(element)
    raise ArgumentError(f"{element!r} is not an element type", at=user_location(), hint="such as fx.Float32")


def copy_atom_call(atom: CopyAtom, source: Any, target: Any) -> None:
    """One execution of a copy instruction by the calling thread.

    source, target: tensors of exactly the atom's bits, side by side in memory. Raises LayoutError where they are not.
    """
    if not isinstance(atom, CopyAtom):
        raise ArgumentError(f"copy_atom_call takes a copy atom first, not {atom!r}", at=user_location())
    operands = [_require_tensor("copy_atom_call", tensor).value for tensor in (source, target)]
    emit_fly("copy_atom_call", [as_operand(atom), *operands])


def make_tiled_copy(atom: CopyAtom, layout_tv: Any, tile: Any) -> TiledCopy:
    """A copy instruction repeated over a tile.

    layout_tv: (thread, value) -> element of the tile, leftmost mode fastest, as `make_layout_tv` gives it.
    tile: the tile's extents, a tuple or a Tile. Both are known when compiling.
    """
    if not isinstance(atom, CopyAtom):
        raise ArgumentError(f"make_tiled_copy takes a copy atom first, not {atom!r}", at=user_location())
    if not isinstance(layout_tv, Layout) or is_runtime(tile):
        raise ArgumentError(
            f"make_tiled_copy of {layout_tv!r} and {tile!r}: layout and tile are known when compiling",
            at=user_location(),
        )
    extents = tile if isinstance(tile, tuple | list) else (tile,)
    modes = tile if isinstance(tile, Tile) else located(algebra.make_tile, *extents)
    return TiledCopy(TiledCopyType(located(atoms.TiledCopy, atom.type.op, atom.type.value_bits, layout_tv, modes)))


def tiled_copy_partition_src(copy: TiledCopy, source: Any, thread: Any) -> Tensor:
    """The part of a tensor that a thread reads."""
    return _partition("partition_src", copy, source, thread)


def tiled_copy_partition_dst(copy: TiledCopy, target: Any, thread: Any) -> Tensor:
    """The part of a tensor that a thread writes."""
    return _partition("partition_dst", copy, target, thread)


def _partition(operation: str, copy: TiledCopy, tensor: Any, thread: Any) -> Tensor:
    if not isinstance(copy, TiledCopy):
        raise ArgumentError(f"{operation} takes a tiled copy first, not {copy!r}", at=user_location())
    value = _require_tensor(operation, tensor).value
    return Tensor(emit_fly(f"tiled_copy.{operation}", [as_operand(copy), value, as_operand(thread)]).result)


def make_fragment_like(tensor: Any) -> Tensor:
    """A register tensor of a tensor's shape and element type; its contents are undefined until written."""
    return Tensor(emit_fly("make_fragment_like", [_require_tensor("make_fragment_like", tensor).value]).result)


def copy(atom: CopyAtom, source: Any, target: Any, pred: Any = None) -> None:
    """Copy a thread's part of a tensor, with as many executions of the instruction as it takes.

    source, target: tensors of one shape, each call's values side by side. Raises LayoutError where they are not.
    """
    if pred is not None:
        raise FlyError("copy with pred= is not there yet", at=user_location())
    if not isinstance(atom, CopyAtom):
        raise ArgumentError(f"copy takes a copy atom first, not {atom!r}", at=user_location())
    operands = [_require_tensor("copy", tensor).value for tensor in (source, target)]
    emit_fly("copy", [as_operand(atom), *operands])


# --- compile time ----------------------------------------------------------------------------------------------------


def range_constexpr(*arguments: Any) -> range:
    """A range that is unrolled: the loop body is traced once per value. Its bounds are known when compiling."""
    try:
        return range(*(argument.__index__() for argument in arguments))
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, FlyError):
            raise error.located(user_location()) from None
        raise ArgumentError(f"range_constexpr{arguments!r}: {error}", at=user_location()) from None


def const_expr(value: Any) -> Any:
    """Mark a value as known when compiling; raises TraceError for a runtime value."""
    if is_runtime(value):
        raise TraceError(
            "const_expr of a runtime value",
            at=user_location(),
            hint="pass it as fx.Constexpr to know it when compiling",
        )
    return value


def static(value: Any) -> Any:
    """A layout, tile or tuple as a constant operand of the program; it is used as it is."""
    return value
