"""The calls of a kernel body: layout algebra, tensors and copy atoms.

A function of the layout algebra is the same function inside and outside a kernel. With static operands it computes
at once and gives a plain `Layout`, tuple or int; with a traced tensor or a runtime value among its operands it emits
one fly operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import CopyOp, UniversalCopy
from flydsl.dialect.elements import element_bits
from flydsl.dialect.location import user_location
from flydsl.dialect.ops import infer, register_elements
from flydsl.dialect.types import (
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    TileType,
    fly_type,
    is_static,
)
from flydsl.errors import ArgumentError, FlyError, LayoutError
from flydsl.expr.emit import emit_fly
from flydsl.expr.numeric import ArithValue, Index, Int32, Int64, Numeric, as_numeric, wrap_scalar
from flydsl.expr.typing import CopyAtom, FlyValue, IntTuple, Layout, LayoutValue, Tensor, Tile
from flydsl.expr.vector import Vector

# --- operands and results --------------------------------------------------------------------------------------------


def _is_runtime(value: Any) -> bool:
    """Whether a value, or a leaf of a nested tuple, exists at run time only."""
    if isinstance(value, tuple | list):
        return any(map(_is_runtime, value))
    return isinstance(value, FlyValue | ir.Value) or (isinstance(value, Numeric) and not value.is_static)


def _static(value: Any) -> Any:
    """A static operand as the algebra takes it: nested tuples of ints, None for the wildcard."""
    if isinstance(value, tuple | list):
        return tuple(map(_static, value))
    return int(value) if isinstance(value, Numeric) else value


def _leaf(value: Any) -> tuple[Any, list[ir.Value]]:
    """A leaf of an int tuple as its symbolic type, and the runtime value behind it."""
    if value is None or isinstance(value, int):
        return value, []
    number = as_numeric(value)
    if not isinstance(number, Numeric) or number.is_float:
        raise ArgumentError(f"{value!r} in a shape, stride or coordinate: an integer belongs there", at=user_location())
    if number.is_static:
        return int(number), []
    wide = Int64 if number.dtype is Index or number.dtype.width > 32 else Int32
    return algebra.Dynamic(wide.width), [wide(number).ir_value()]


def _int_tuple(value: Any) -> tuple[Any, list[ir.Value]]:
    if isinstance(value, IntTuple):
        raise ArgumentError("a traced IntTuple inside a tuple: index it for its modes", at=user_location())
    if not isinstance(value, tuple | list):
        return _leaf(value)
    parts = [_int_tuple(item) for item in value]
    return tuple(symbol for symbol, _ in parts), [leaf for _, leaves in parts for leaf in leaves]


def as_operand(value: Any) -> ir.Value:
    """Any operand of a fly operation as an `ir.Value`; static ones become `fly.static`."""
    if isinstance(value, FlyValue):
        return value.value
    if isinstance(value, ir.Value) and fly_type(value.type) is not None:
        return value
    if isinstance(value, Layout):
        return emit_fly("static", results=[LayoutType(value)]).result
    if isinstance(value, Tile):
        return emit_fly("static", results=[TileType(value)]).result
    if isinstance(value, CopyAtom):
        return emit_fly("make_copy_atom", results=[value.type], attributes={"valBits": value.type.value_bits}).result
    symbols, leaves = _int_tuple(value)
    return emit_fly("make_int_tuple", leaves, results=[IntTupleType(algebra.make_int_tuple(symbols))]).result


def wrap(value: ir.Value) -> Any:
    """A result of a fly operation as the DSL shows it; a single runtime integer is a number."""
    kind = fly_type(value.type)
    if isinstance(kind, MemRefType):
        return Tensor(value)
    if isinstance(kind, LayoutType):
        return LayoutValue(value)
    if isinstance(kind, IntTupleType):
        return IntTuple(value) if isinstance(kind.value, tuple) else wrap_scalar(emit_fly("get_scalar", [value]).result)
    raise ArgumentError(f"a value of type {value.type} has no form in the DSL", at=user_location())


def _static_result(result: FlyType) -> Any:
    """The plain Python value of a result type that leaves nothing to run time, else None."""
    if isinstance(result, LayoutType) and is_static(result.layout):
        return result.layout
    if isinstance(result, IntTupleType) and is_static(result.value):
        return result.value
    return None


def _call_algebra(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    values = [as_operand(operand) for operand in operands]
    at = user_location()
    try:
        (result,) = infer(name, values, attributes)
    except FlyError as error:
        raise error.located(at) from None
    static = _static_result(result)
    return (
        static if static is not None else wrap(emit_fly(name, values, results=[result], attributes=attributes).result)
    )


# --- the layout algebra ----------------------------------------------------------------------------------------------


def _algebra(name: str, operands: int) -> Callable[..., Any]:
    """The DSL's form of `flydsl.layout.<name>`, whose first `operands` arguments may be traced."""
    function = getattr(algebra, name)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if any(map(_is_runtime, arguments[:operands])):
            attributes = _mode_attributes(arguments[operands:])
            return _call_algebra(name, arguments[:operands], attributes)
        try:
            return function(*map(_static, arguments))
        except LayoutError as error:
            raise error.located(user_location()) from None

    return call


def _mode_attributes(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Static trailing arguments: a list of modes, or single integers."""
    if not arguments:
        return {}
    if len(arguments) == 1 and isinstance(arguments[0], tuple | list):
        return {"modes": list(arguments[0])}
    return {"args": [int(argument) for argument in arguments]}


logical_divide = _algebra("logical_divide", 2)
zipped_divide = _algebra("zipped_divide", 2)
tiled_divide = _algebra("tiled_divide", 2)
flat_divide = _algebra("flat_divide", 2)
logical_product = _algebra("logical_product", 2)
zipped_product = _algebra("zipped_product", 2)
tiled_product = _algebra("tiled_product", 2)
flat_product = _algebra("flat_product", 2)
raked_product = _algebra("raked_product", 2)
blocked_product = _algebra("blocked_product", 2)
composition = _algebra("composition", 2)
complement = _algebra("complement", 2)
coalesce = _algebra("coalesce", 2)
right_inverse = _algebra("right_inverse", 1)
left_inverse = _algebra("left_inverse", 1)
append = _algebra("append", 2)
prepend = _algebra("prepend", 2)
select = _algebra("select", 1)
take = _algebra("take", 1)
group = _algebra("group", 1)
size = _algebra("size", 1)
cosize = _algebra("cosize", 1)
get = _algebra("get", 1)
get_shape = _algebra("get_shape", 1)
get_stride = _algebra("get_stride", 1)
slice = _algebra("slice", 2)
crd2idx = _algebra("crd2idx", 2)
idx2crd = _algebra("idx2crd", 2)


def rank(value: Any) -> int:
    """Number of top-level modes of a tuple, layout or tensor."""
    return algebra.rank(_symbolic(value))


def depth(value: Any) -> int:
    """Depth of nesting: 0 for an integer, 1 for a flat tuple."""
    return algebra.depth(_symbolic(value))


def _symbolic(value: Any) -> Any:
    kind = value.type if isinstance(value, FlyValue) else None
    if isinstance(kind, LayoutType | MemRefType):
        return kind.layout
    return kind.value if isinstance(kind, IntTupleType) else _static(value)


def has_none(coordinate: Any) -> bool:
    """Whether None (the wildcard) stands anywhere in a coordinate."""
    if isinstance(coordinate, tuple | list):
        return any(map(has_none, coordinate))
    return coordinate is None


def _make_tuple(*modes: Any) -> Any:
    value = modes[0] if len(modes) == 1 else modes
    if _is_runtime(value):
        return IntTuple(as_operand(value))
    return algebra.make_int_tuple(_static(value))


def make_int_tuple(*modes: Any) -> Any:
    """A tuple of integers, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_shape(*modes: Any) -> Any:
    """A shape, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_stride(*modes: Any) -> Any:
    """A stride, from one nested tuple or one argument per mode."""
    return _make_tuple(*modes)


def make_coord(*modes: Any) -> Any:
    """A coordinate; None keeps a mode."""
    return _make_tuple(*modes)


def make_layout(shape: Any, stride: Any = None) -> Any:
    """A layout from shape and stride (by default compact, leftmost mode fastest).

    >>> make_layout((4, 8), (8, 1))
    (4,8):(8,1)
    """
    if not _is_runtime(shape) and not _is_runtime(stride):
        try:
            return algebra.make_layout(_static(shape), None if stride is None else _static(stride))
        except LayoutError as error:
            raise error.located(user_location()) from None
    if stride is None:
        raise ArgumentError("make_layout of a runtime shape needs its stride", at=user_location())
    return LayoutValue(emit_fly("make_layout", [as_operand(shape), as_operand(stride)]).result)


def make_tile(*modes: Any) -> Tile:
    """A tile: one size or layout per mode, None to leave a mode whole."""
    return algebra.make_tile(*map(_static, modes))


def get_scalar(value: Any) -> Any:
    """A tuple of a single integer as a number."""
    if isinstance(value, int | Numeric):
        return value
    return wrap_scalar(emit_fly("get_scalar", [as_operand(value)]).result)


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
    return Tensor(emit_fly("make_view", [pointer, as_operand(layout)]).result)


def add_offset(pointer: ir.Value, offset: Any) -> ir.Value:
    """`pointer` moved by `offset` elements."""
    return emit_fly("add_offset", [pointer, as_operand(offset)]).result


def memref_alloca(layout: Any, dtype: type[Numeric]) -> Tensor:
    """A tensor in registers. layout: static; dtype: the element type."""
    result = emit_fly("memref.alloca", [as_operand(layout)], attributes={"element": dtype.mlir_name}).result
    register_elements(fly_type(result.type))
    return Tensor(result)


def _check_coordinate(what: str, tensor: Tensor, coordinate: Any) -> None:
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
    memref = _require_tensor("memref_store_vec", tensor).type
    value = vector.ir_value() if isinstance(vector, ArithValue) else vector
    expected = ir.VectorType.get([register_elements(memref)], tensor.dtype.ir_type)
    if not isinstance(value, ir.Value) or value.type != expected:
        got = value.type if isinstance(value, ir.Value) else repr(value)
        raise ArgumentError(f"memref_store_vec of {got} to {memref}, which takes {expected}", at=user_location())
    emit_fly("memref.store_vec", [value, tensor.value])


# --- copy atoms ------------------------------------------------------------------------------------------------------


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
        raise ArgumentError(f"make_copy_atom takes a copy instruction, not {op!r}", at=user_location())
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


# --- compile time ----------------------------------------------------------------------------------------------------


def range_constexpr(*arguments: int) -> range:
    """A range that is unrolled: the loop body is traced once per value. Its bounds are known when compiling."""
    return range(*(argument.__index__() for argument in arguments))


def const_expr(value: Any) -> Any:
    """Mark a value as known when compiling; raises TraceError for a runtime value."""
    if _is_runtime(value):
        from flydsl.errors import TraceError

        raise TraceError(
            "const_expr of a runtime value",
            at=user_location(),
            hint="pass it as fx.Constexpr to know it when compiling",
        )
    return value


def static(value: Any) -> Any:
    """A layout, tile or tuple as a constant operand of the program; it is used as it is."""
    return value
