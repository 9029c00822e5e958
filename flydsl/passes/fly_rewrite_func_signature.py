"""fly-rewrite-func-signature: tensors, layouts and int tuples become plain values at the edges of functions and loops.

A tensor parameter becomes its pointer and, where its layout has dynamic leaves, one packed struct with them:

    func.func @f(%a: !fly.memref<f32, global, ?:1>) {
      %l = fly.get_layout(%a) : (!fly.memref<f32, global, ?:1>) -> !fly.layout<?:1>
      return
    }

becomes

    func.func @f(%p: !fly.ptr<f32, global>, %leaves: !llvm.struct<packed (struct<packed (i32)>, struct<packed ()>)>) {
      %n = llvm.extractvalue %leaves[0, 0] : !llvm.struct<packed (struct<packed (i32)>, struct<packed ()>)>
      %shape = fly.make_int_tuple(%n) : (i32) -> !fly.int_tuple<?>
      %stride = fly.make_int_tuple() : () -> !fly.int_tuple<1>
      %made = fly.make_layout(%shape, %stride) : (!fly.int_tuple<?>, !fly.int_tuple<1>) -> !fly.layout<?:1>
      %a = fly.make_view(%p, %made) : (!fly.ptr<f32, global>, !fly.layout<?:1>) -> !fly.memref<f32, global, ?:1>
      %l = fly.get_layout(%a) : (!fly.memref<f32, global, ?:1>) -> !fly.layout<?:1>
      return
    }

The body rebuilds the tensor from them, and every launch and call passes them. Operands and results of `scf`
operations are replaced in the same way. A value that its type describes fully, such as a tile or a matrix instruction,
is not passed at all; an atom that carries values, such as scales, passes these in a struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.arch import Arch
from flydsl.atoms import BUFFER
from flydsl.dialect import launch_func
from flydsl.dialect.leaves import dynamic_leaves, is_static
from flydsl.dialect.location import source_location
from flydsl.dialect.types import (
    CoordSwizzleType,
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    SwizzleType,
    TiledMmaType,
    TileType,
    fly_type,
)
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError
from flydsl.passes.rewriting import (
    constant,
    create,
    create_fly,
    declarations,
    entry_block,
    functions,
    terminator,
    update_function_type,
    values_of,
)

name = "fly-rewrite-func-signature"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Rewrite every function and launch of a module."""
    parts: dict[ir.Value, list[ir.Value]] = {}
    for function in functions(module):
        _rewrite_function(function, parts)
    for declaration in declarations(module):
        _rewrite_declaration(declaration)
    found = operations(module)
    control_flow, launches, calls = (
        [op for op in found if op.name in names] for names in (_CONTROL_FLOW, (launch_func.NAME,), ("func.call",))
    )
    for op in control_flow:
        _rewrite_control_flow(op, parts)
    for op in launches:
        _rewrite_launch(op, parts)
    for op in calls:
        _rewrite_call(op, parts)


def packed_type(kind: FlyType) -> ir.Type | None:
    """The struct of a type's dynamic leaves, or None if it has none."""
    text = _packed_text(kind)
    return _parse_type(f"!llvm.{text}") if text else None


def _packed_text(kind: FlyType) -> str:
    if isinstance(kind, _SAID_IN_FULL):
        return ""
    if isinstance(kind, CopyAtomType | MmaAtomType):
        names = _passed_names(kind)
        return f"struct<({', '.join(['i32'] * len(names))})>" if names else ""
    if isinstance(kind, IntTupleType):
        return _leaves_text(kind.value)
    layout = _layout(kind)
    if is_static(layout):
        return ""
    shape, stride = (_leaves_text(part) or "struct<packed ()>" for part in (layout.extents, layout.strides))
    return f"struct<packed ({shape}, {stride})>"


def _leaves_text(value: Any) -> str:
    widths = [f"i{leaf.width}" for leaf in dynamic_leaves(value)]
    return f"struct<packed ({', '.join(widths)})>" if widths else ""


def _passed_names(kind: CopyAtomType | MmaAtomType) -> list[str]:
    """The names of an atom's values that may be known at run time only."""
    return [name for name in kind.op.value_names if name not in kind.op.immediates]


@cache
def _parse_type(text: str) -> ir.Type:
    from flydsl.dialect.context import context

    return ir.Type.parse(text, context())


def _split_type(mlir_type: ir.Type) -> FlyType | None:
    """The fly type of a value that is passed in parts; pointers and all other types pass as they are."""
    kind = fly_type(mlir_type)
    return kind if isinstance(kind, (MemRefType, LayoutType, IntTupleType, *_ATOMS, *_SAID_IN_FULL)) else None


_SAID_IN_FULL = (TileType, SwizzleType, CoordSwizzleType, TiledMmaType)
_ATOMS = (CopyAtomType, MmaAtomType)


def _layout(kind: FlyType) -> algebra.Layout:
    assert isinstance(kind, MemRefType | LayoutType)
    if isinstance(kind.layout, algebra.ComposedLayout):
        raise CompileError(f"{kind} as a kernel's argument is unsupported", hint="compose the layout inside the kernel")
    return kind.layout


# --- functions -------------------------------------------------------------------------------------------------------


def _rewrite_function(function: ir.Operation, parts: dict[ir.Value, list[ir.Value]]) -> None:
    block = entry_block(function)
    old = list(block.arguments)
    if not any(_split_type(argument.type) for argument in old):
        return
    with ir.InsertionPoint.at_block_begin(block):
        for argument in old:
            kind = _split_type(argument.type)
            new = [block.add_argument(t, argument.location) for t in _plain_types(kind, argument.type)]
            value = _rebuild(kind, new, argument.location) if kind else new[0]
            argument.replace_all_uses_with(value)
            parts[value] = new
    _rewrite_argument_attributes(function, [argument.type for argument in old])
    for _ in old:
        block.erase_argument(0)
    update_function_type(function)


def _rewrite_declaration(function: ir.Operation) -> None:
    old = ir.TypeAttr(function.attributes["function_type"]).value
    if not isinstance(old, ir.FunctionType):  # which MLIR's verifier tells
        return
    inputs = [plain for kind in old.inputs for plain in _plain_types(_split_type(kind), kind)]
    _rewrite_argument_attributes(function, old.inputs)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))


def _rewrite_argument_attributes(function: ir.Operation, inputs: Sequence[ir.Type]) -> None:
    """An argument's attributes, such as `llvm.noalias`, stay with its first part; MLIR wants one set per argument."""
    if "arg_attrs" not in function.attributes:
        return
    none, kept = ir.DictAttr.get({}), []
    for given, kind in zip(ir.ArrayAttr(function.attributes["arg_attrs"]), inputs, strict=True):
        parts = _plain_types(_split_type(kind), kind)
        kept += [given if i == 0 else none for i in range(len(parts))]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def _plain_types(kind: FlyType | None, mlir_type: ir.Type) -> list[ir.Type]:
    if kind is None:
        return [mlir_type]
    pointer = [kind.pointer.ir] if isinstance(kind, MemRefType) else []
    packed = packed_type(kind)
    return [*pointer, packed] if packed else pointer


def _rebuild(kind: FlyType, values: list[ir.Value], at: ir.Location) -> ir.Value:
    """The tensor, layout or int tuple from its plain values."""
    packed = values[-1] if packed_type(kind) else None
    if isinstance(kind, _SAID_IN_FULL) or (isinstance(kind, IntTupleType) and packed is None):
        return _from_type(kind, at)
    if isinstance(kind, CopyAtomType | MmaAtomType):
        return _rebuild_atom(kind, packed, at)
    if isinstance(kind, IntTupleType):
        return _rebuild_tuple(kind, packed, [], at)
    layout = _rebuild_layout(_layout(kind), packed, at)
    return create_fly("make_view", [values[0], layout], at).result if isinstance(kind, MemRefType) else layout


def _from_type(kind: FlyType, at: ir.Location) -> ir.Value:
    """The value that a type describes fully."""
    if isinstance(kind, CopyAtomType):
        attributes = {"valBits": kind.value_bits}
        return create_fly("make_copy_atom", [], at, results=[kind], attributes=attributes).result
    if isinstance(kind, MmaAtomType):
        return create_fly("make_mma_atom", [], at, results=[kind]).result
    if not isinstance(kind, TiledMmaType):
        return create_fly("static", [], at, results=[kind]).result
    parts: list[FlyType] = [kind.atom, LayoutType(kind.mma.atom_layout)]
    if kind.mma.permutation is not None:
        parts.append(TileType(kind.mma.permutation))
    return create_fly("make_tiled_mma", [_from_type(part, at) for part in parts], at).result


def _rebuild_atom(kind: CopyAtomType | MmaAtomType, packed: ir.Value | None, at: ir.Location) -> ir.Value:
    """The atom, with the values that its calls take besides tensors."""
    atom = _from_type(kind, at)
    for i, field in enumerate(_passed_names(kind)):
        attribute = {"position": ir.DenseI64ArrayAttr.get([i])}
        value = create("llvm.extractvalue", [packed], [_parse_type("i32")], at, attribute).result
        atom = create_fly("atom.set_value", [atom, value], at, attributes={"field": field}).result
    return atom


def _rebuild_layout(layout: algebra.Layout, packed: ir.Value | None, at: ir.Location) -> ir.Value:
    if packed is None:
        return create_fly("static", [], at, results=[LayoutType(layout)]).result
    shape = _rebuild_tuple(IntTupleType(layout.extents), packed, [0], at)
    stride = _rebuild_tuple(IntTupleType(layout.strides), packed, [1], at)
    return create_fly("make_layout", [shape, stride], at, results=[LayoutType(layout)]).result


def _rebuild_tuple(kind: IntTupleType, packed: ir.Value | None, position: list[int], at: ir.Location) -> ir.Value:
    leaves = []
    for i, leaf in enumerate(dynamic_leaves(kind.value)):
        attribute = {"position": ir.DenseI64ArrayAttr.get([*position, i])}
        leaves.append(create("llvm.extractvalue", [packed], [_parse_type(f"i{leaf.width}")], at, attribute).result)
    return create_fly("make_int_tuple", leaves, at, results=[kind]).result


# --- loops and branches ----------------------------------------------------------------------------------------------

_CONTROL_FLOW = ("scf.for", "scf.if", "scf.while")


def _rewrite_control_flow(op: ir.Operation, parts: dict[ir.Value, list[ir.Value]]) -> None:
    """Rebuild an `scf` operation with plain operands, arguments and results, and the same regions."""
    edges = [
        *op.operands,
        *op.results,
        *(a for region in op.regions for block in region.blocks for a in block.arguments),
    ]
    if not any(_split_type(value.type) for value in edges):
        return
    _require_no_buffers(op, edges)
    at = op.location
    with ir.InsertionPoint(op):
        operands = [part for value in op.operands for part in _plain_values(value, parts, at)]
        types = [t for result in op.results for t in _plain_types(_split_type(result.type), result.type)]
        attributes = {attribute: op.attributes[attribute] for attribute in op.attributes}
        new = ir.Operation.create(op.name, types, operands, attributes, regions=len(op.regions), loc=at)
        remaining = iter(new.results)
        for result in op.results:
            result.replace_all_uses_with(_joined(result, remaining, parts, at))
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        for block in list(old_region.blocks):
            block.append_to(new_region)
    op.erase()
    for region in new.regions:
        for block in region.blocks:
            _rewrite_block(block, parts)


def _rewrite_block(block: ir.Block, parts: dict[ir.Value, list[ir.Value]]) -> None:
    old = list(block.arguments)
    with ir.InsertionPoint.at_block_begin(block):
        for argument in old:
            kinds = _plain_types(_split_type(argument.type), argument.type)
            new = iter([block.add_argument(kind, argument.location) for kind in kinds])
            argument.replace_all_uses_with(_joined(argument, new, parts, argument.location))
    for _ in old:
        block.erase_argument(0)
    end = terminator(block)
    with ir.InsertionPoint(end):
        operands = [part for value in end.operands for part in _plain_values(value, parts, end.location)]
        create(end.name, operands, [], end.location)
    end.erase()


def _joined(
    value: ir.Value, plain: Iterator[ir.Value], parts: dict[ir.Value, list[ir.Value]], at: ir.Location
) -> ir.Value:
    """The replacement of a value, made from its plain parts."""
    kind = _split_type(value.type)
    if kind is None:
        return next(plain)
    taken = [next(plain) for _ in _plain_types(kind, value.type)]
    made = _rebuild(kind, taken, at)
    parts[made] = taken
    return made


def _require_no_buffers(op: ir.Operation, edges: Sequence[ir.Value]) -> None:
    """Raise CompileError for a buffer tensor: its offset is added in each instruction, not to its pointer."""
    for value in edges:
        kind = fly_type(value.type)
        if isinstance(kind, MemRefType) and kind.pointer.space == BUFFER:
            raise CompileError(
                f"a buffer tensor that changes between iterations or branches is unsupported, got {kind}",
                at=source_location(op.location),
                hint="compute coordinates in the loop or branch, and slice the tensor where it is used",
            )


# --- launches and calls -----------------------------------------------------------------------------------------------


def _rewrite_launch(op: ir.Operation, parts: dict[ir.Value, list[ir.Value]]) -> None:
    operands = launch_func.kernel_operands(op)
    if any(_split_type(value.type) for value in operands):
        with ir.InsertionPoint(op):
            plain = [part for value in operands for part in _plain_values(value, parts, op.location)]
        launch_func.with_kernel_operands(op, plain)


def _rewrite_call(op: ir.Operation, parts: dict[ir.Value, list[ir.Value]]) -> None:
    """Pass the plain values to another function of the module."""
    if not any(_split_type(value.type) for value in op.operands):
        return
    with ir.InsertionPoint(op):
        plain = [part for value in op.operands for part in _plain_values(value, parts, op.location)]
        attributes = {attribute: op.attributes[attribute] for attribute in op.attributes}
        new = create(op.name, plain, [result.type for result in op.results], op.location, attributes)
    for old_result, result in zip(op.results, new.results, strict=True):
        old_result.replace_all_uses_with(result)
    op.erase()


def _plain_values(value: ir.Value, parts: dict[ir.Value, list[ir.Value]], at: ir.Location) -> list[ir.Value]:
    kind = _split_type(value.type)
    if kind is None:
        return [value]
    known = parts.get(value)
    return known if known is not None else _take_apart(value, kind, at)


def _take_apart(value: ir.Value, kind: FlyType, at: ir.Location) -> list[ir.Value]:
    """The plain values of a tensor that the launcher derived from its arguments."""
    pointer = [create_fly("get_iter", [value], at).result] if isinstance(kind, MemRefType) else []
    packed = packed_type(kind)
    if packed is None:
        return pointer
    if isinstance(kind, CopyAtomType | MmaAtomType):
        given = values_of(value)
        if fixed := set(given) & set(kind.op.immediates):
            raise CompileError(
                f"{', '.join(sorted(fixed))} is part of the instruction and cannot be a kernel's argument",
                hint="set it inside of the kernel",
            )
        values = [given.get(field) or constant(0, 32, at) for field in _passed_names(kind)]
        return [_pack([([i], number) for i, number in enumerate(values)], packed, at)]
    if isinstance(kind, IntTupleType):
        return [_pack([([i], leaf) for i, leaf in enumerate(_leaf_values(value, at))], packed, at)]
    layout = create_fly("get_layout", [value], at).result if isinstance(kind, MemRefType) else value
    leaves = [
        ([part, i], leaf)
        for part, operation in enumerate(("get_shape", "get_stride"))
        for i, leaf in enumerate(_leaf_values(create_fly(operation, [layout], at).result, at))
    ]
    return [*pointer, _pack(leaves, packed, at)]


def _leaf_values(value: ir.Value, at: ir.Location) -> list[ir.Value]:
    kind = fly_type(value.type)
    if isinstance(kind.value, tuple):
        modes = [create_fly("get", [value], at, attributes={"args": [i]}).result for i in range(len(kind.value))]
        return [leaf for mode in modes for leaf in _leaf_values(mode, at)]
    return [create_fly("get_scalar", [value], at).result] if dynamic_leaves(kind.value) else []


def _pack(leaves: list[tuple[list[int], ir.Value]], packed: ir.Type, at: ir.Location) -> ir.Value:
    value = create("llvm.mlir.undef", [], [packed], at).result
    for position, leaf in leaves:
        attribute = {"position": ir.DenseI64ArrayAttr.get(position)}
        value = create("llvm.insertvalue", [value, leaf], [packed], at, attribute).result
    return value
