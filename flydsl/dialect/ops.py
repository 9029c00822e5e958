"""The operations of the fly dialect: one table.

Operations of the layout algebra are one line each: the function of `flydsl.layout` that gives their meaning. Inference
calls it on the operand *types* (layouts with `?` leaves); `fly-layout-lowering` calls the same function on the same
layouts with SSA values in those leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect import atom_inference, inference, memory_inference
from flydsl.dialect.definition import define_operations
from flydsl.dialect.elements import element_type
from flydsl.dialect.inference import Attributes, Check, Infer, infer_algebra
from flydsl.dialect.location import mlir_location
from flydsl.dialect.types import (
    ComposedLayoutType,
    CoordSwizzleType,
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    PointerType,
    SwizzleType,
    TiledCopyType,
    TiledMmaType,
    TileType,
    fly_type,
)
from flydsl.errors import FlyError, LayoutError, SourceLocation, how_to_make
from flydsl.errors.places import user_location

_HOW_MADE = {
    "int_tuple": "an integer, or a tuple of them",
    "layout": how_to_make.LAYOUT,
    "layout or composed_layout": how_to_make.LAYOUT,
    "ptr": how_to_make.POINTER,
    "memref": how_to_make.TENSOR,
    "copy_atom": how_to_make.COPY_ATOM,
    "mma_atom": how_to_make.MMA_ATOM,
    "tiled_copy": how_to_make.TILED_COPY,
    "tile": "fx.make_tile(32, 8) makes one",
}

# What an operand may be; None for any type.
Kind = type[FlyType] | tuple[type[FlyType], ...] | None


class Effect(Enum):
    """The memory effect of an operation. WRITE: writing memory is its purpose, whether it has a result or not."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    ALLOCATE = "allocate"


@dataclass(frozen=True)
class OpSpec:
    """One operation.

    name: as printed, such as `memref.load_vec`.
    takes: the kind of each operand.
    infer: result types from operand types; None where the creator states them (`fly.static : !fly.layout<4:1>`).
    gives: the kinds of stated results, and check: what else must hold of them.
    arities: the numbers of operands, where that is not just the number of `takes`.
    algebra: for an operation of the layout algebra, the function that gives its meaning.
    results: the numbers of results, where those are of several types; they are part of its name in MLIR.
    effect: what it does to memory. on_host: whether a launcher may do it although it has an effect.
    """

    name: str
    takes: tuple[Kind, ...] = ()
    infer: Infer | None = None
    gives: tuple[Kind, ...] | None = None
    check: Check | None = None
    arities: tuple[int, ...] = ()
    algebra: Callable[..., Any] | None = None
    results: tuple[int, ...] = ()
    effect: Effect = Effect.NONE
    on_host: bool = False

    def __post_init__(self) -> None:
        if not self.arities:
            object.__setattr__(self, "arities", (len(self.takes),))

    def mlir_name(self, arity: int, results: int = 1) -> str:
        """The name inside MLIR. IRDL does not allow dots, or variadic operands or results of different types.

        `memref.load_vec` is `memref_load_vec`; `make_int_tuple` on two operands is `make_int_tuple_2`.
        """
        if self.results:
            if results not in self.results:
                raise LayoutError(f"fly.{self.name} has up to {max(self.results)} results, not {results}")
            return f"{self.name.replace('.', '_')}_{results}"
        if arity not in self.arities:
            raise LayoutError(
                f"fly.{self.name} takes {' or '.join(map(str, self.arities))} operands, not {arity}",
                hint="pass each operand once, and no other",
            )
        name = self.name.replace(".", "_")
        return name if len(self.arities) == 1 else f"{name}_{arity}"


_LAYOUT, _TUPLE, _POINTER, _TENSOR = LayoutType, IntTupleType, PointerType, MemRefType
_ATOM, _MMA = CopyAtomType, MmaAtomType
_ANY_LAYOUT = (LayoutType, ComposedLayoutType)
_SWIZZLES = (SwizzleType, CoordSwizzleType)
_ALGEBRAIC = (*_ANY_LAYOUT, MemRefType, IntTupleType, TileType, *_SWIZZLES)


def _algebra_op(name: str, arity: int, keeps_tensor: bool = False) -> OpSpec:
    function = getattr(algebra, name)
    arities = (arity - 1, arity) if name in _LAST_IS_OPTIONAL else ()
    infer = infer_algebra(function, keeps_tensor)
    return OpSpec(name, (_ALGEBRAIC,) * arity, infer, arities=arities, algebra=function)


def _one_of(result: Callable[[Any], Any]) -> Infer:
    return lambda types, attributes: [result(types[0])]


_MAX_LEAVES = 32

# name -> number of layout, tile and tuple operands; modes and widths are attributes.
ON_TENSORS_TOO = {
    "logical_divide": 2, "zipped_divide": 2, "tiled_divide": 2, "flat_divide": 2, "composition": 2, "coalesce": 2,
    "select": 1, "take": 1, "group": 1,
}  # fmt: skip
_ON_LAYOUTS_AND_TUPLES = {
    "complement": 2, "right_inverse": 1, "left_inverse": 1, "logical_product": 2, "zipped_product": 2,
    "tiled_product": 2, "flat_product": 2, "raked_product": 2, "blocked_product": 2, "append": 2, "prepend": 2,
    "coshape": 1, "coprofile": 1,
    "size": 1, "cosize": 1, "get": 1, "get_shape": 1, "get_stride": 1, "crd2idx": 2, "idx2crd": 2, "get_flat_coord": 2,
    "get_1d_coord": 2, "dice": 2, "recast_layout": 1, "int_tuple_add": 2, "int_tuple_sub": 2, "int_tuple_mul": 2,
    "int_tuple_div": 2, "int_tuple_mod": 2, "int_tuple_product": 1, "int_tuple_product_each": 1,
    "int_tuple_product_like": 2, "ceil_div": 2, "shape_div": 2, "get_leaves": 1, "make_layout_like": 1,
    "make_fragment_layout_like": 1, "make_ordered_layout": 2, "make_identity_layout": 1, "tile_to_shape": 3,
    "make_composed_layout": 3, "apply_swizzle": 2, "composed_get_inner": 1, "composed_get_offset": 1,
    "composed_get_outer": 1,
}  # fmt: skip
_LAST_IS_OPTIONAL = {"coalesce", "complement", "tile_to_shape"}

_ALGEBRA = [
    *(_algebra_op(name, arity, keeps_tensor=True) for name, arity in ON_TENSORS_TOO.items()),
    *(_algebra_op(name, arity) for name, arity in _ON_LAYOUTS_AND_TUPLES.items()),
]

_STRUCTURE = [
    OpSpec("static", gives=((*_ANY_LAYOUT, TileType, IntTupleType, *_SWIZZLES),), check=inference.check_static),
    OpSpec("make_int_tuple", gives=(_TUPLE,), check=inference.check_int_tuple, arities=tuple(range(_MAX_LEAVES + 1))),
    OpSpec("make_layout", (_TUPLE, _TUPLE), inference.infer_make_layout, arities=(1, 2)),
    OpSpec("make_view", (_POINTER, _ANY_LAYOUT), memory_inference.infer_make_view),
    OpSpec("get_iter", (_TENSOR,), _one_of(lambda memref: memref.pointer)),
    OpSpec("get_layout", (_TENSOR,), _one_of(lambda memref: inference.algebra_type(memref.layout))),
    OpSpec("get_scalar", (_TUPLE,), inference.infer_get_scalar),
    OpSpec("get_leaves.scalars", (_TUPLE,), inference.infer_leaves, results=tuple(range(_MAX_LEAVES + 1))),
    OpSpec("make_tile", (), inference.infer_make_tile, arities=tuple(range(_MAX_LEAVES + 1))),
    OpSpec("assume", (_TUPLE, _TUPLE), inference.infer_assume),
    OpSpec("elem_less", (_TUPLE, _TUPLE), inference.infer_elem_less),
    OpSpec("equal", (_TUPLE, _TUPLE), inference.infer_comparison),
    OpSpec("decomposition", (_TENSOR,), memory_inference.infer_decomposition),
    OpSpec("slice", ((*_ANY_LAYOUT, MemRefType, IntTupleType), _TUPLE), inference.infer_slice, algebra=algebra.slice),
]

_MEMORY = [
    OpSpec(
        "make_ptr",
        gives=(_POINTER,),
        check=memory_inference.check_make_ptr,
        arities=(0, 1, 2, 3, 4),
        effect=Effect.ALLOCATE,
        on_host=True,
    ),
    OpSpec("add_offset", (_POINTER, _TUPLE), memory_inference.infer_add_offset),
    OpSpec("recast_iter", (_POINTER,), gives=(_POINTER,), check=memory_inference.check_recast_iter),
    OpSpec("inttoptr", (None,), gives=(_POINTER,), check=memory_inference.check_inttoptr),
    OpSpec("ptrtoint", (_POINTER,), memory_inference.infer_ptrtoint),
    OpSpec("get_dyn_shared", (), lambda types, attributes: [memory_inference.DYNAMIC_SHARED]),
    OpSpec("memref.alloca", (_LAYOUT,), gives=(_TENSOR,), check=memory_inference.check_alloca, effect=Effect.ALLOCATE),
    OpSpec("memref.load", (_TENSOR, _TUPLE), memory_inference.infer_load, effect=Effect.READ),
    OpSpec("memref.store", (None, _TENSOR, _TUPLE), memory_inference.infer_store, effect=Effect.WRITE),
    OpSpec("memref.load_vec", (_TENSOR,), memory_inference.infer_load_vec, effect=Effect.READ),
    OpSpec("memref.store_vec", (None, _TENSOR), memory_inference.infer_store_vec, effect=Effect.WRITE),
    OpSpec("ptr.load", (_POINTER,), gives=(None,), check=memory_inference.check_ptr_load, effect=Effect.READ),
    OpSpec("ptr.store", (None, _POINTER), memory_inference.infer_ptr_store, effect=Effect.WRITE),
    OpSpec("print", (), inference.infer_print, arities=tuple(range(_MAX_LEAVES + 1)), effect=Effect.WRITE),
    OpSpec("variable", (None,), lambda types, attributes: [], effect=Effect.WRITE, on_host=True),
]

_ATOMS = [
    OpSpec("make_copy_atom", gives=(_ATOM,), check=atom_inference.check_make_copy_atom),
    OpSpec("atom.set_value", ((_ATOM, _MMA), None), atom_inference.infer_atom_set_value),
    OpSpec(
        "copy_atom_call",
        (_ATOM, _TENSOR, _TENSOR, _TENSOR),
        atom_inference.infer_copy_atom_call,
        arities=(3, 4),
        effect=Effect.WRITE,
    ),
    OpSpec("make_tiled_copy", (_ATOM, _LAYOUT, TileType), atom_inference.infer_make_tiled_copy),
    OpSpec(
        "tiled_copy.partition_src",
        (TiledCopyType, _TENSOR, _TUPLE),
        partial(atom_inference.infer_partition, reads=True),
    ),
    OpSpec(
        "tiled_copy.partition_dst",
        (TiledCopyType, _TENSOR, _TUPLE),
        partial(atom_inference.infer_partition, reads=False),
    ),
    OpSpec(
        "make_fragment_like",
        ((MemRefType, LayoutType),),
        atom_inference.infer_make_fragment_like,
        effect=Effect.ALLOCATE,
    ),
    OpSpec("copy", (_ATOM, _TENSOR, _TENSOR, _TENSOR), atom_inference.infer_copy, arities=(3, 4), effect=Effect.WRITE),
    OpSpec("copy_atom_call_ssa", check=atom_inference.check_copy_atom_call_ssa, arities=(2, 3), effect=Effect.WRITE),
    OpSpec("tiled_copy.retile", (TiledCopyType, _TENSOR), atom_inference.infer_retile),
    OpSpec("make_mma_atom", gives=(_MMA,), check=atom_inference.check_make_mma_atom),
    OpSpec("make_tiled_mma", (_MMA, _LAYOUT, TileType), atom_inference.infer_make_tiled_mma, arities=(2, 3)),
    OpSpec("get_mma_atom", (TiledMmaType,), _one_of(lambda tiled: tiled.atom)),
    OpSpec("tiled_mma.partition_shape", (TiledMmaType, _TUPLE), atom_inference.infer_mma_partition_shape),
    OpSpec("tiled_mma.partition", (TiledMmaType, _TENSOR, _TUPLE), atom_inference.infer_mma_partition),
    OpSpec(
        "mma.make_fragment", (TiledMmaType, _TENSOR), atom_inference.infer_mma_make_fragment, effect=Effect.ALLOCATE
    ),
    OpSpec("gemm", ((_MMA, TiledMmaType), *(_TENSOR,) * 4), atom_inference.infer_gemm, effect=Effect.WRITE),
    OpSpec("mma_atom_call", (_MMA, *(_TENSOR,) * 4), atom_inference.infer_mma_atom_call, effect=Effect.WRITE),
    OpSpec("mma_atom_call_ssa", (_MMA, None, None, None), atom_inference.infer_mma_atom_call_ssa),
]

OPS: dict[str, OpSpec] = {spec.name: spec for spec in (*_STRUCTURE, *_ALGEBRA, *_MEMORY, *_ATOMS)}
OPS_BY_MLIR_NAME: dict[str, OpSpec] = {
    f"fly.{spec.mlir_name(arity, count)}": spec
    for spec in OPS.values()
    for arity in spec.arities
    for count in spec.results or (1,)
}

# Operations that are not fly's and need a thread or the device's memory: compiled for the host, they end the process.
_ON_DEVICE_ONLY = re.compile(r"gpu\.(?!launch_func|printf)|rocdl\.|llvm\.(?!ptrtoint|inttoptr)|memref\.")


def is_on_device_only(mlir_name: str) -> bool:
    """True if a launcher cannot do an operation, because it has neither a thread nor the device's memory."""
    spec = OPS_BY_MLIR_NAME.get(mlir_name)
    if spec is None:
        return _ON_DEVICE_ONLY.match(mlir_name) is not None
    return spec.effect is not Effect.NONE and not spec.on_host


def printed_name(mlir_name: str) -> str:
    """The name of an operation as printed: `fly.memref.load` for `fly.memref_load`."""
    spec = OPS_BY_MLIR_NAME.get(mlir_name)
    return f"fly.{spec.name}" if spec else mlir_name


def infer(name: str, operands: Sequence[ir.Value], attributes: Attributes | None = None) -> list[Any]:
    """Result types of `fly.name` on these operands. Raises LayoutError where the operands do not fit."""
    return _infer(name, *_types_and_attributes(operands, attributes))


def _inferred(name: str, operands: Sequence[ir.Value], attributes: Attributes | None) -> list[ir.Type]:
    """`infer` in MLIR's types."""
    return _infer_in_mlir(name, *_types_and_attributes(operands, attributes))


def _types_and_attributes(
    operands: Sequence[ir.Value], attributes: Attributes | None
) -> tuple[tuple[ir.Type, ...], tuple[tuple[str, Any], ...]]:
    """The inputs that decide the types of results, as a key."""
    given = tuple([value.type for value in operands])
    return given, tuple([(key, _hashable(value)) for key, value in attributes.items()]) if attributes else ()


@cache
def _infer_in_mlir(name: str, given: tuple[ir.Type, ...], attributes: tuple[tuple[str, Any], ...]) -> list[ir.Type]:
    return _in_mlir(_infer(name, given, attributes))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def _infer(name: str, given: tuple[ir.Type, ...], attributes: tuple[tuple[str, Any], ...]) -> list[Any]:
    """`infer` on types, which say all that it needs: programs repeat the same few again and again."""
    spec = OPS[name]
    if spec.infer is None:
        raise FlyError(f"fly.{name} states its result type; it cannot be inferred")
    types = [fly_type(kind) or kind for kind in given]
    if len(types) not in spec.arities:
        spec.mlir_name(len(types))  # which raises the error
    _check_kinds(name, "operand", types, spec.takes)
    return spec.infer(types, dict(attributes))


def _check_kinds(name: str, role: str, types: Sequence[Any], kinds: Sequence[Kind]) -> None:
    for i, (given, kind) in enumerate(zip(types, kinds, strict=False)):
        if kind is not None and not isinstance(given, kind):
            wanted = " or ".join(k.mnemonic for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise LayoutError(
                f"fly.{name}: {role} {i} is {given}, where a {wanted} belongs",
                hint=_HOW_MADE.get(wanted, f"the operation takes {wanted} there"),
            )


def check(op: ir.Operation) -> list[Any]:
    """The result types that an operation of the table must have. Raises LayoutError where its operands do not fit."""
    spec, attributes = OPS_BY_MLIR_NAME[op.name], attributes_of(op)
    if spec.infer is not None:
        return infer(spec.name, list(op.operands), attributes)
    types, results = ([fly_type(value.type) or value.type for value in values] for values in (op.operands, op.results))
    _check_kinds(spec.name, "operand", types, spec.takes)
    if len(results) != len(spec.gives or results):
        raise LayoutError(f"fly.{spec.name} has {len(spec.gives or ())} results, not {len(results)}")
    _check_kinds(spec.name, "result", results, spec.gives or ())
    assert spec.check is not None
    spec.check(types, results, attributes)
    return results


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
        types = _inferred(name, operands, attributes) if results is None else _in_mlir(results)
    except FlyError as error:
        raise error.located(place if isinstance(place, SourceLocation) else None) from None
    return ir.Operation.create(
        _defined(name, len(operands), len(types)),
        results=types,
        operands=list(operands),
        attributes={key: _attribute(value) for key, value in (attributes or {}).items()},
        loc=location,
    )


def _in_mlir(types: Iterable[Any]) -> list[ir.Type]:
    return [kind.ir if isinstance(kind, FlyType) else kind for kind in types]


@cache
def _defined(name: str, arity: int, results: int) -> str:
    """The name inside MLIR of an operation, which MLIR knows from now on."""
    mlir_name = OPS[name].mlir_name(arity, results)
    define_operations([(mlir_name, arity, results if OPS[name].results else None)])
    return f"fly.{mlir_name}"


def define_all() -> None:
    """Have MLIR know all operations: a text may have any. The caller must hold the context's lock."""
    define_operations(
        (spec.mlir_name(arity, count or 0), arity, count)
        for spec in OPS.values()
        for arity in spec.arities
        for count in spec.results or (None,)
    )


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
