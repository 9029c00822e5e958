"""The operations of the fly dialect: one table, with how each infers its result types.

Operations of the layout algebra are one line each: the function of `flydsl.layout` that gives their meaning. Inference
calls it on the operand *types* (layouts with `?` leaves); `fly-layout-lowering` calls the same function on the same
layouts with SSA values in those leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import mlir_location, user_location
from flydsl.dialect.types import (
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    TileType,
    fly_type,
)
from flydsl.errors import FlyError, LayoutError, SourceLocation

Attributes = Mapping[str, Any]
# Operand types (fly types where they are fly's, MLIR types otherwise) and attributes to result types.
Infer = Callable[[Sequence[Any], Attributes], list[Any]]


@dataclass(frozen=True)
class OpSpec:
    """One operation.

    name: as printed, such as `memref.load_vec`.
    arities: the numbers of operands that it takes.
    infer: result types from operand types; None where the creator states them (`fly.static : !fly.layout<4:1>`).
    algebra: for an operation of the layout algebra, the function that gives its meaning.
    """

    name: str
    arities: tuple[int, ...]
    infer: Infer | None = None
    algebra: Callable[..., Any] | None = None

    def mlir_name(self, arity: int) -> str:
        """The name inside MLIR, where IRDL allows no dots, and no variadic operands of different types.

        `memref.load_vec` is `memref_load_vec`; `make_int_tuple` on two operands is `make_int_tuple_2`.
        """
        name = self.name.replace(".", "_")
        return name if len(self.arities) == 1 else f"{name}_{arity}"


def mode_arguments(attributes: Attributes) -> list[Any]:
    """The static arguments of an algebra operation (modes, bit widths), in the order of its Python signature."""
    arguments: list[Any] = []
    if "modes" in attributes:
        arguments.append(list(attributes["modes"]))
    if "args" in attributes:
        arguments.extend(attributes["args"])
    return arguments


def algebra_value(fly: Any) -> Any:
    """What the algebra computes with for an operand of this type."""
    if isinstance(fly, LayoutType | MemRefType):
        return fly.layout
    if isinstance(fly, IntTupleType):
        return fly.value
    if isinstance(fly, TileType):
        return fly.tile
    raise LayoutError(f"{fly} is not an operand of the layout algebra", hint="it takes layouts, tiles and int tuples")


def algebra_type(value: Any, like: Any = None) -> FlyType:
    """The type of an algebra result; a layout derived from a tensor's is a tensor in the same memory."""
    if isinstance(value, algebra.Layout):
        return like.with_layout(value) if isinstance(like, MemRefType) else LayoutType(value)
    if isinstance(value, algebra.Tile):
        return TileType(value)
    return IntTupleType(value)


def _algebra_op(name: str, arity: int, keeps_tensor: bool = False) -> OpSpec:
    function = getattr(algebra, name)

    def infer(types: Sequence[Any], attributes: Attributes) -> list[Any]:
        result = function(*map(algebra_value, types), *mode_arguments(attributes))
        return [algebra_type(result, types[0] if keeps_tensor else None)]

    return OpSpec(name, (arity,), infer, function)


def _infer_slice(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    source, coordinate = types
    return [algebra_type(algebra.slice(algebra_value(source), algebra_value(coordinate)), source)]


def _infer_make_layout(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    shape, stride = types
    return [LayoutType(algebra.make_layout(shape.value, stride.value))]


def _infer_make_view(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    pointer, layout = types
    return [MemRefType(pointer.element, pointer.space, layout.layout)]


def _infer_get_scalar(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    leaf = types[0].value
    if isinstance(leaf, tuple):
        raise LayoutError(f"get_scalar of {types[0]}: only a single integer is a scalar", hint="take a mode with get")
    return [element_type("i64" if isinstance(leaf, algebra.Dynamic) and leaf.width == 64 else "i32")]


def register_elements(memref: MemRefType) -> int:
    """How many elements a register tensor holds. Raises LayoutError where that is not known when compiling."""
    size = algebra.size(memref.layout)
    if not isinstance(size, int):
        raise LayoutError(
            f"{memref} as a vector: its layout is dynamic", hint="a register vector needs a size known when compiling"
        )
    return size


def _infer_load_vec(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    memref = types[0]
    return [ir.VectorType.get([register_elements(memref)], element_type(memref.element))]


def check_copy(atom: CopyAtomType, source: MemRefType, target: MemRefType) -> None:
    """Raise LayoutError unless one call of the atom moves exactly `source` into `target`."""
    values = atom.op.bits // atom.value_bits
    for role, memref in (("source", source), ("destination", target)):
        where = f"copy_atom_call: {atom} and its {role} {memref}"
        if memref.element_bits != atom.value_bits:
            raise LayoutError(
                f"{where}: the atom copies {atom.value_bits}-bit values, the tensor's are {memref.element}"
            )
        count = algebra.size(memref.layout)
        if count != values:
            raise LayoutError(
                f"{where}: the atom moves {values} values, the tensor has {count}",
                hint=f"partition the tensor so that each thread's piece is {values} values, or take another atom",
            )
        if values > 1 and not _contiguous(memref.layout):
            raise LayoutError(
                f"{where}: an atom of {values} values needs them side by side in memory, the layout is {memref.layout}",
                hint="take the atom of one value, or partition along the mode of stride 1",
            )
    if source.element != target.element:
        raise LayoutError(f"copy_atom_call from {source} to {target}: the element types differ")


def _contiguous(layout: algebra.Layout) -> bool:
    merged = algebra.coalesce(layout)
    return algebra.rank(merged) == 1 and all(stride == 1 for stride in algebra.flatten(merged.stride))


def _infer_copy_atom_call(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    check_copy(types[0], types[1], types[2])
    return []


def _infer_alloca(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    return [MemRefType(attributes["element"], "register", types[0].layout)]


def _no_result(types: Sequence[Any], attributes: Attributes) -> list[Any]:
    return []


def _one_of(result: Callable[[Any], Any]) -> Infer:
    return lambda types, attributes: [result(types[0])]


_MAX_LEAVES = 32

# name -> number of layout, tile and tuple operands; modes and widths are attributes.
_ON_TENSORS_TOO = {
    "logical_divide": 2, "zipped_divide": 2, "tiled_divide": 2, "flat_divide": 2, "composition": 2, "coalesce": 1,
    "select": 1, "take": 1, "group": 1,
}  # fmt: skip
_ON_LAYOUTS_AND_TUPLES = {
    "complement": 2, "right_inverse": 1, "left_inverse": 1, "logical_product": 2, "zipped_product": 2,
    "tiled_product": 2, "flat_product": 2, "raked_product": 2, "blocked_product": 2, "append": 2, "prepend": 2,
    "size": 1, "cosize": 1, "get": 1, "get_shape": 1, "get_stride": 1, "crd2idx": 2, "idx2crd": 2,
}  # fmt: skip

_ALGEBRA = [
    *(_algebra_op(name, arity, keeps_tensor=True) for name, arity in _ON_TENSORS_TOO.items()),
    *(_algebra_op(name, arity) for name, arity in _ON_LAYOUTS_AND_TUPLES.items()),
]

_STRUCTURE = [
    OpSpec("static", (0,)),
    OpSpec("make_int_tuple", tuple(range(_MAX_LEAVES + 1))),
    OpSpec("make_layout", (2,), _infer_make_layout),
    OpSpec("make_view", (2,), _infer_make_view),
    OpSpec("get_iter", (1,), _one_of(lambda memref: memref.pointer)),
    OpSpec("get_layout", (1,), _one_of(lambda memref: LayoutType(memref.layout))),
    OpSpec("get_scalar", (1,), _infer_get_scalar),
    OpSpec("slice", (2,), _infer_slice, algebra.slice),
]

_MEMORY = [
    OpSpec("make_ptr", (0, 1, 2, 3, 4)),
    OpSpec("add_offset", (2,), _one_of(lambda pointer: pointer)),
    OpSpec("memref.alloca", (1,), _infer_alloca),
    OpSpec("memref.load", (2,), _one_of(lambda memref: element_type(memref.element))),
    OpSpec("memref.store", (3,), _no_result),
    OpSpec("memref.load_vec", (1,), _infer_load_vec),
    OpSpec("memref.store_vec", (2,), _no_result),
    OpSpec("ptr.load", (1,)),
    OpSpec("ptr.store", (2,), _no_result),
]

_ATOMS = [
    OpSpec("make_copy_atom", (0,)),
    OpSpec("copy_atom_call", (3,), _infer_copy_atom_call),
    OpSpec("copy_atom_call_ssa", (2, 3)),
]

OPS: dict[str, OpSpec] = {spec.name: spec for spec in (*_STRUCTURE, *_ALGEBRA, *_MEMORY, *_ATOMS)}
OPS_BY_MLIR_NAME: dict[str, OpSpec] = {
    f"fly.{spec.mlir_name(arity)}": spec for spec in OPS.values() for arity in spec.arities
}


def infer(name: str, operands: Sequence[ir.Value], attributes: Attributes | None = None) -> list[Any]:
    """Result types of `fly.name` on these operands. Raises LayoutError where the operands do not fit."""
    spec = OPS[name]
    if spec.infer is None:
        raise FlyError(f"fly.{name} states its result type; it cannot be inferred")
    types = [fly_type(value.type) or value.type for value in operands]
    return spec.infer(types, attributes or {})


def create(
    name: str,
    operands: Sequence[ir.Value] = (),
    *,
    results: Sequence[Any] | None = None,
    attributes: Attributes | None = None,
    at: SourceLocation | ir.Location | None = None,
) -> ir.Operation:
    """Create `fly.name` at the current insertion point.

    results: result types where the operation states them; inferred otherwise.
    attributes: Python ints, strings and lists of ints.
    at: the place in the source; by default the innermost user frame.
    """
    place = user_location() if at is None else at
    location = place if isinstance(place, ir.Location) else mlir_location(place)
    try:
        types = infer(name, operands, attributes) if results is None else results
    except FlyError as error:
        raise error.located(place if isinstance(place, SourceLocation) else None) from None
    return ir.Operation.create(
        f"fly.{_mlir_name(OPS[name], len(operands))}",
        results=[t.ir if isinstance(t, FlyType) else t for t in types],
        operands=list(operands),
        attributes={key: _attribute(value) for key, value in (attributes or {}).items()},
        loc=location,
    )


def _mlir_name(spec: OpSpec, arity: int) -> str:
    if arity not in spec.arities:
        raise LayoutError(f"fly.{spec.name} takes {' or '.join(map(str, spec.arities))} operands, not {arity}")
    return spec.mlir_name(arity)


def _attribute(value: Any) -> ir.Attribute:
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(element_type("i32"), value)
    return ir.DenseI32ArrayAttr.get([int(item) for item in value])


def attributes_of(op: ir.Operation) -> dict[str, Any]:
    """The attributes of an operation as the Python values that `create` takes."""
    return {name: _python(op.attributes[name]) for name in op.attributes}


def _python(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.StringAttr | ir.IntegerAttr):
        return attribute.value
    return list(attribute) if isinstance(attribute, ir.DenseI32ArrayAttr) else attribute
