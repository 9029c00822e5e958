"""The meaning of the fly dialect: the layout algebra on leaves that are arrays of lanes, tensors, copies, products.

What an operation means is what its lowering makes of it (`flydsl.passes.fly_layout_lowering`); both call the same
functions of `flydsl.layout` and `flydsl.dialect.atom_inference`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mlir import ir

from flydsl import layout as algebra
from flydsl.atoms import BUFFER
from flydsl.atoms.copy import Lowering
from flydsl.dialect.atom_inference import (
    call_of,
    gemm_extents,
    gemm_modes,
    mma_partitioned,
    mma_value_type,
    on_plain_layout,
    partitioned,
)
from flydsl.dialect.elements import element_type, memory_bits, value_name
from flydsl.dialect.gemm_traversal import DEFAULT_ORDER, traversal
from flydsl.dialect.inference import algebra_value, compared_parts, mode_arguments, single_leaf
from flydsl.dialect.leaves import dynamic_leaves, erase_values, is_static, with_leaves
from flydsl.dialect.memory_inference import allocated_elements, require_whole_words, vector_pieces
from flydsl.dialect.ops import OPS_BY_MLIR_NAME, attributes_of
from flydsl.dialect.stated import as_stated
from flydsl.dialect.types import AnyLayout, MemRefType, TiledMmaType, fly_type
from flydsl.interpreter.elements import Array
from flydsl.interpreter.execution import MEANINGS, Execution, Meaning
from flydsl.interpreter.leaves import LaneLeaf, numbers_of
from flydsl.interpreter.meanings import copies, products
from flydsl.interpreter.meanings.access import load, pointer_at, store
from flydsl.interpreter.meanings.choosing import chosen_layout, chosen_tuple
from flydsl.interpreter.memory import Pointer, RegisterSpace, ResourceSpace


@dataclass(frozen=True)
class LaneTensor:
    """A tensor of each lane: elements begin `offset` elements after `pointer`."""

    kind: MemRefType
    pointer: Pointer
    offset: Any
    layout: AnyLayout

    def select(self, mask: Array, other: LaneTensor) -> LaneTensor:
        """This tensor where a mask holds, else another one of the same memory and type."""
        offset = chosen_tuple(mask, self.offset, other.offset)
        layout = chosen_layout(mask, self.layout, other.layout)
        return replace(self, pointer=self.pointer.select(mask, other.pointer), offset=offset, layout=layout)

    def at(self, index: Any) -> Pointer:
        """The pointer to the element of an index."""
        return self.pointer.moved(in_bytes(self.offset + index, self.kind.element))

    def part(self, layout: AnyLayout, coordinate: Any) -> LaneTensor:
        """The part of the tensor, seen with a layout, that a coordinate leaves open."""
        part, offset = _part_and_offset(layout, coordinate)
        return replace(self, offset=self.offset + offset, layout=part)


def _part_and_offset(layout: AnyLayout, coordinate: Any) -> tuple[Any, Any]:
    if is_static(layout) and is_static(coordinate):
        return _known_part_and_offset(layout, coordinate)
    return algebra.slice_and_offset(coordinate, layout)


@functools.lru_cache(maxsize=4096)
def _known_part_and_offset(layout: AnyLayout, coordinate: Any) -> tuple[Any, Any]:
    """The same of what a kernel asks for again and again."""
    return algebra.slice_and_offset(coordinate, layout)


def in_bytes(offset: Any, element: str) -> Array:
    """An offset in elements as bytes of each lane. Raises LayoutError if elements there may begin within a word."""
    require_whole_words(element, offset)
    return numbers_of(offset).astype(np.int64) * memory_bits(element) // 8


def _means_fly(*names: str) -> Any:
    def decorate(function: Meaning) -> Meaning:
        for mlir_name, spec in OPS_BY_MLIR_NAME.items():
            if spec.name in names:
                MEANINGS[mlir_name] = function
        return function

    return decorate


# --- the algebra -----------------------------------------------------------------------------------------------------


def _layout_of(value: Any) -> Any:
    return value.layout if isinstance(value, LaneTensor) else value


def _algebra(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    """Run the algebra's function on operands whose leaves are arrays of lanes."""
    source, function = operands[0], OPS_BY_MLIR_NAME[op.name].algebra
    assert function is not None
    result = function(*map(_layout_of, operands), *mode_arguments(attributes_of(op)))
    kind = fly_type(op.result.type)
    result = as_stated(result, algebra_value(kind))
    return replace(source, kind=kind, layout=result) if isinstance(kind, MemRefType) else result


for _name, _spec in OPS_BY_MLIR_NAME.items():
    if _spec.algebra is not None:
        MEANINGS[_name] = _algebra


@_means_fly("slice")
def _slice(x: Execution, op: ir.Operation, source: Any, coordinate: Any) -> Any:
    if not isinstance(source, LaneTensor):
        return algebra.slice(source, coordinate)
    return replace(source.part(source.layout, coordinate), kind=fly_type(op.result.type))


@_means_fly("static")
def _static(x: Execution, op: ir.Operation) -> Any:
    return x.of_type(op.result)


@_means_fly("make_int_tuple")
def _make_int_tuple(x: Execution, op: ir.Operation, *leaves: Array) -> Any:
    kind = fly_type(op.result.type)
    return _with_numbers(kind.value, list(leaves))


def _with_numbers(stated: Any, numbers: list[Array]) -> Any:
    symbols = dynamic_leaves(stated)
    pairs = zip(numbers, symbols, strict=True)
    return with_leaves(stated, [LaneLeaf(given, symbol.width, symbol.divisibility) for given, symbol in pairs])


@_means_fly("make_layout")
def _make_layout(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    return algebra.make_layout(*operands)


@_means_fly("make_tile")
def _make_tile(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    return x.of_type(op.result)


@_means_fly("get_layout")
def _get_layout(x: Execution, op: ir.Operation, tensor: LaneTensor) -> Any:
    return tensor.layout


@_means_fly("get_scalar")
def _get_scalar(x: Execution, op: ir.Operation, value: Any) -> Array:
    return _number(single_leaf(value))


def _number(leaf: Any) -> Array:
    return numbers_of(leaf, leaf.width if isinstance(leaf, LaneLeaf) else 32)


@_means_fly("get_leaves.scalars")
def _get_leaves(x: Execution, op: ir.Operation, value: Any) -> Any:
    only_dynamic = len(op.results) < len(algebra.flatten((fly_type(op.operands[0].type).value,)))
    leaves = algebra.flatten((value,))
    numbers = [_number(leaf) for leaf in leaves if isinstance(leaf, LaneLeaf) or not only_dynamic]
    return numbers[0] if len(numbers) == 1 else numbers


@_means_fly("assume")
def _assume(x: Execution, op: ir.Operation, promised: Any, value: Any) -> Any:
    numbers = [leaf.lanes for leaf in algebra.flatten((value,)) if isinstance(leaf, LaneLeaf)]
    return _with_numbers(fly_type(op.result.type).value, numbers)


@_means_fly("elem_less", "equal")
def _compare(x: Execution, op: ir.Operation, left: Any, right: Any) -> Array:
    is_less = OPS_BY_MLIR_NAME[op.name].name == "elem_less"
    holds = np.ones(1, np.bool_)
    for one, other in compared_parts(left, right):
        if not isinstance(one, LaneLeaf) and not isinstance(other, LaneLeaf):
            holds = holds & bool(one < other if is_less else one == other)
            continue
        a, b = numbers_of(one), numbers_of(other)
        holds = holds & (a < b if is_less else a == b)
    return holds


@_means_fly("decomposition")
def _decomposition(x: Execution, op: ir.Operation, tensor: LaneTensor) -> LaneTensor:
    plain = tensor.layout
    while isinstance(plain, algebra.ComposedLayout):
        plain = algebra.composed_get_outer(plain)
    offset = tensor.offset + algebra.crd2idx(0, tensor.layout)
    return LaneTensor(fly_type(op.result.type), tensor.pointer, offset, plain)


# --- pointers and views ----------------------------------------------------------------------------------------------


@_means_fly("make_view")
def _make_view(x: Execution, op: ir.Operation, pointer: Pointer, layout: AnyLayout) -> LaneTensor:
    return LaneTensor(fly_type(op.result.type), pointer, 0, layout)


@_means_fly("get_iter")
def _get_iter(x: Execution, op: ir.Operation, tensor: LaneTensor) -> Pointer:
    return tensor.at(0)


@_means_fly("add_offset")
def _add_offset(x: Execution, op: ir.Operation, pointer: Pointer, offset: Any) -> Pointer:
    return pointer.moved(in_bytes(offset, fly_type(op.operands[0].type).element))


@_means_fly("recast_iter")
def _recast_iter(x: Execution, op: ir.Operation, pointer: Pointer) -> Pointer:
    return pointer


@_means_fly("make_ptr")
def _make_ptr(x: Execution, op: ir.Operation, *operands: Any) -> Pointer:
    kind = fly_type(op.result.type)
    if kind.space == BUFFER:
        base, _, records, _ = operands
        return Pointer(ResourceSpace(base, records.astype(np.int64) & 0xFFFFFFFF), np.zeros(1, np.int64))
    return _registers(x, kind.element, allocated_elements(attributes_of(op)))


def _known(size: Any) -> int:
    assert isinstance(size, int), "inference has refused tensors of unknown size"
    return size


def _registers(x: Execution, element: str, count: int) -> Pointer:
    return Pointer(RegisterSpace(x.lanes, count * memory_bits(element) // 8), np.zeros(1, np.int64))


@_means_fly("inttoptr")
def _inttoptr(x: Execution, op: ir.Operation, address: Array) -> Pointer:
    return pointer_at(x, fly_type(op.result.type).space, address)


@_means_fly("ptrtoint")
def _ptrtoint(x: Execution, op: ir.Operation, pointer: Pointer) -> Array:
    return pointer.address.astype(np.int32 if str(op.result.type) == "i32" else np.int64)


@_means_fly("get_dyn_shared")
def _get_dyn_shared(x: Execution, op: ir.Operation) -> Pointer:
    return Pointer(x.shared, np.array([x.shared.dynamic_start]))


@_means_fly("memref.alloca", "make_fragment_like", "mma.make_fragment")
def _alloca(x: Execution, op: ir.Operation, *operands: Any) -> LaneTensor:
    kind = fly_type(op.result.type)
    return LaneTensor(kind, _registers(x, kind.element, _known(algebra.cosize(kind.layout))), 0, kind.layout)


# --- memory ----------------------------------------------------------------------------------------------------------


@_means_fly("memref.load")
def _memref_load(x: Execution, op: ir.Operation, tensor: LaneTensor, coordinate: Any) -> Array:
    return load(x, tensor.at(algebra.crd2idx(coordinate, tensor.layout)), op.result.type)


@_means_fly("memref.store")
def _memref_store(x: Execution, op: ir.Operation, value: Array, tensor: LaneTensor, coordinate: Any) -> None:
    store(x, value, op.operands[0].type, tensor.at(algebra.crd2idx(coordinate, tensor.layout)))


@_means_fly("memref.load_vec")
def _load_vec(x: Execution, op: ir.Operation, tensor: LaneTensor) -> Array:
    kind = op.result.type
    width, places = vector_pieces(tensor.layout)
    piece = ir.VectorType.get([width], kind.element_type)
    parts = [x.spread(load(x, tensor.at(place), piece)) for place in places]
    return np.concatenate(parts, axis=1).reshape(x.lanes, *kind.shape)


@_means_fly("memref.store_vec")
def _store_vec(x: Execution, op: ir.Operation, value: Array, tensor: LaneTensor) -> None:
    width, places = vector_pieces(tensor.layout)
    piece = ir.VectorType.get([width], op.operands[0].type.element_type)
    flat = value.reshape(len(value), -1)
    for number, place in enumerate(places):
        store(x, flat[:, number * width : (number + 1) * width], piece, tensor.at(place))


@_means_fly("ptr.load")
def _ptr_load(x: Execution, op: ir.Operation, pointer: Pointer) -> Array:
    return load(x, pointer, op.result.type)


@_means_fly("ptr.store")
def _ptr_store(x: Execution, op: ir.Operation, value: Array, pointer: Pointer) -> None:
    store(x, value, op.operands[0].type, pointer)


# --- atoms -----------------------------------------------------------------------------------------------------------


@_means_fly("make_copy_atom", "make_mma_atom")
def _make_atom(x: Execution, op: ir.Operation) -> dict[str, Array]:
    return {}


@_means_fly("atom.set_value")
def _set_value(x: Execution, op: ir.Operation, atom: dict[str, Array], value: Array) -> dict[str, Array]:
    return {**atom, str(attributes_of(op)["field"]): value}


@_means_fly("make_tiled_copy", "make_tiled_mma", "get_mma_atom")
def _of_atom(x: Execution, op: ir.Operation, atom: dict[str, Array], *tiling: Any) -> dict[str, Array]:
    return atom


@_means_fly("tiled_copy.partition_src", "tiled_copy.partition_dst")
def _partition(x: Execution, op: ir.Operation, _: Any, tensor: LaneTensor, thread: Any) -> LaneTensor:
    reads = OPS_BY_MLIR_NAME[op.name].name.endswith("src")
    layout, offset = partitioned(fly_type(op.operands[0].type).copy, thread, tensor.layout, reads)
    return LaneTensor(fly_type(op.result.type), tensor.pointer, tensor.offset + offset, layout)


@_means_fly("tiled_copy.retile")
def _retile(x: Execution, op: ir.Operation, _: Any, tensor: LaneTensor) -> LaneTensor:
    layout = on_plain_layout(fly_type(op.operands[0].type).copy.retile, tensor.layout)
    return replace(tensor, kind=fly_type(op.result.type), layout=layout)


@_means_fly("tiled_mma.partition")
def _mma_partition(x: Execution, op: ir.Operation, _: Any, tensor: LaneTensor, thread: Any) -> LaneTensor:
    operand = attributes_of(op)["operand"]
    layout, offset = mma_partitioned(fly_type(op.operands[0].type).mma, operand, thread, tensor.layout)
    return LaneTensor(fly_type(op.result.type), tensor.pointer, tensor.offset + offset, layout)


@_means_fly("gemm")
def _gemm(x: Execution, op: ir.Operation, atom: dict[str, Array], *tensors: LaneTensor) -> None:
    """One call of the instruction for each part of the fragments, in the order of the attribute."""
    kind = fly_type(op.operands[0].type)
    mma = (kind.atom if isinstance(kind, TiledMmaType) else kind).op
    extents = gemm_extents([tensor.kind.with_layout(erase_values(tensor.layout)) for tensor in tensors])
    started: set[tuple[int, int]] = set()
    for m, n, k in traversal(extents, attributes_of(op).get("order", DEFAULT_ORDER)):
        modes = ((m, n), (m, k), (n, k), (m, n))
        parts = [t.part(gemm_modes(t.layout), (None, *at)) for t, at in zip(tensors, modes, strict=True)]
        addend = parts[0] if (m, n) in started else parts[3]
        _multiply(x, mma, atom, parts[0], parts[1], parts[2], addend)
        started.add((m, n))


@_means_fly("mma_atom_call")
def _mma_call(x: Execution, op: ir.Operation, atom: dict[str, Array], *tensors: LaneTensor) -> None:
    _multiply(x, fly_type(op.operands[0].type).op, atom, *tensors)


def _multiply(x: Execution, mma: Any, atom: dict[str, Array], target: LaneTensor, *operands: LaneTensor) -> None:
    values = [
        load(x, tensor.at(_first(tensor)), mma_value_type(mma, name, tensor.kind.element))
        for name, tensor in zip("abc", operands, strict=True)
    ]
    held = [tensor.kind.element for tensor in operands]
    kinds = [mma_value_type(mma, name, element) for name, element in zip("abc", held, strict=True)]
    result = products.multiply(x, mma, values, kinds, atom)
    store(x, result, mma_value_type(mma, "c"), target.at(_first(target)))


@_means_fly("mma_atom_call_ssa")
def _mma_call_ssa(x: Execution, op: ir.Operation, atom: dict[str, Array], *values: Array) -> Array:
    kinds = [value.type for value in list(op.operands)[1:]]
    return products.multiply(x, fly_type(op.operands[0].type).op, list(values), kinds, atom)


def _first(tensor: LaneTensor) -> Any:
    """The index of a tensor's first element; of a swizzled one it is not 0."""
    return algebra.crd2idx(0, tensor.layout)


@_means_fly("copy")
def _copy(x: Execution, op: ir.Operation, atom: dict[str, Array], *tensors: LaneTensor) -> None:
    source, target, *predicates = tensors
    kind = fly_type(op.operands[0].type)
    calls = [call_of(kind, tensor.layout) for tensor in (source, target)]
    count = _known(algebra.size(algebra.get(erase_values(calls[0]), 1)))
    for i in range(count):
        views = [t.part(call, (None, i)) for t, call in zip((source, target), calls, strict=True)]
        _copy_one(x, kind, atom, views[0], views[1], predicates, i, count)


@_means_fly("copy_atom_call")
def _copy_call(x: Execution, op: ir.Operation, atom: dict[str, Array], *tensors: LaneTensor) -> None:
    source, target, *predicates = tensors
    _copy_one(x, fly_type(op.operands[0].type), atom, source, target, predicates, 0, 1)


def _copy_one(
    x: Execution, kind: Any, atom: dict[str, Array], source: LaneTensor, target: LaneTensor,
    predicates: list[LaneTensor], i: int, count: int,
) -> None:  # fmt: skip
    """One call of a copy, in the lanes whose predicate holds."""
    mask = x.mask
    if predicates:
        size = algebra.size(predicates[0].layout)
        place = predicates[0].at(algebra.crd2idx(i * size // count, predicates[0].layout))
        mask = mask & load(x, place, element_type("i1"))
    with x.only(np.broadcast_to(mask, (x.lanes,))):
        if x.mask.any():
            _move(x, kind, atom, source, target)


def _move(x: Execution, kind: Any, atom: dict[str, Array], source: LaneTensor, target: LaneTensor) -> None:
    op = kind.op
    vector = ir.VectorType.get([op.bits // kind.value_bits], element_type(source.kind.element))
    start, end = source.at(_first(source)), target.at(_first(target))
    moved = in_bytes(LaneLeaf(atom["soffset"], 32), source.kind.element) if "soffset" in atom else 0
    if op.lowering in (Lowering.BUFFER_TO_LDS, Lowering.GLOBAL_TO_LDS):
        both = int(atom["imm_offset"][0]) if "imm_offset" in atom else 0
        copies.to_lds(x, start.moved(moved).moved(both), end.moved(both), op.bits // 8)
        return
    if op.lowering is Lowering.LDS_TRANSPOSE:
        store(x, copies.transposed(x, start, op.threads, vector), vector, end)
        return
    value = load(x, start if source.kind.space == "register" else start.moved(moved), vector)
    if op.lowering in (Lowering.ATOMIC, Lowering.BUFFER_ATOMIC):
        element = element_type(value_name(target.kind.element))
        single = op.bits == op.element_bits
        updated, kind_updated = (value.reshape(-1), element) if single else (value, vector)
        copies.update(x, op.operation, updated, kind_updated, end.moved(moved))
        return
    store(x, value, vector, end if target.kind.space == "register" else end.moved(moved))


@_means_fly("copy_atom_call_ssa")
def _copy_call_ssa(x: Execution, op: ir.Operation, atom: dict[str, Array], *operands: Any) -> Any:
    kind = fly_type(op.operands[0].type)
    if len(op.results):
        return load(x, operands[0].at(0), op.result.type)
    if isinstance(operands[0], LaneTensor):
        _move(x, kind, atom, *operands)
        return None
    store(x, operands[0], op.operands[1].type, operands[1].at(0))
    return None


@_means_fly("print")
def _print(x: Execution, op: ir.Operation, *values: Any) -> None:
    parts = attributes_of(op)["format"].split("{}")
    for lane in np.flatnonzero(x.mask):
        shown = [str(_of_lane(value, int(lane))) for value in values]
        text = parts[0] + "".join(value + rest for value, rest in zip(shown, parts[1:], strict=True))
        x.printed.append((int(lane) + x.first_lane, f"{text}\n"))


def _of_lane(value: Any, lane: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_of_lane(part, lane) for part in value)
    lanes = value.lanes if isinstance(value, LaneLeaf) else value
    return lanes[lane % len(lanes)].item() if isinstance(lanes, np.ndarray) else lanes


@_means_fly("tiled_mma.partition_shape")
def _partition_shape(x: Execution, op: ir.Operation, *operands: Any) -> Any:
    return x.of_type(op.result)
