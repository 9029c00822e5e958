"""fly-layout-lowering: layout algebra becomes integer arithmetic.

The functions of `flydsl.layout` run once more, now on layouts whose dynamic leaves carry SSA values, and leave arith
operations behind:

    func.func @f(%m: i32, %n: i32) -> i32 {
      %shape = fly.make_int_tuple(%m, %n) : (i32, i32) -> !fly.int_tuple<(?,?)>
      %size = fly.size(%shape) : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
      %s = fly.get_scalar(%size) : (!fly.int_tuple<?>) -> i32
      return %s : i32
    }

becomes

    func.func @f(%m: i32, %n: i32) -> i32 {
      %s = arith.muli %m, %n : i32
      return %s : i32
    }

A tensor is a pointer, an offset from it and a layout until something reads or writes it. Only pointers remain, and
views with static layouts at copies:

    %5 = fly.make_int_tuple(%4) : (i32) -> !fly.int_tuple<?>
    %6 = fly.add_offset(%ptr, %5) : (!fly.ptr<f32, global>, !fly.int_tuple<?>) -> !fly.ptr<f32, global>
    %7 = fly.make_view(%6, %layout) : ... -> !fly.memref<f32, global, 1:0>
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.arch import Arch
from flydsl.dialect.atom_inference import (
    call_of,
    gemm_extents,
    gemm_modes,
    mma_partitioned,
    on_plain_layout,
    partitioned,
)
from flydsl.dialect.elements import element_type, is_packed
from flydsl.dialect.gemm_traversal import DEFAULT_ORDER, traversal
from flydsl.dialect.inference import algebra_type, algebra_value, compared_parts, mode_arguments, single_leaf
from flydsl.dialect.leaves import dynamic_leaves, erase_values, is_static, with_leaves
from flydsl.dialect.location import source_location
from flydsl.dialect.memory_inference import register_elements, vector_pieces
from flydsl.dialect.ops import OPS, attributes_of
from flydsl.dialect.stated import as_stated
from flydsl.dialect.types import (
    AnyLayout,
    ComposedLayoutType,
    CoordSwizzleType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    PointerType,
    SwizzleType,
    TiledMmaType,
    TileType,
    fly_type,
)
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError
from flydsl.passes.packed_elements import as_words, copy_of_words, pointer_to_words, word_count, word_offset
from flydsl.passes.rewriting import (
    constant,
    create,
    create_fly,
    defining_op,
    erase_dead,
    fly_name,
    functions,
    replace,
    zeros,
)
from flydsl.passes.ssa_leaf import SsaLeaf, materialize
from flydsl.passes.to_rocdl import divisions, index_casts

name = "fly-layout-lowering"

_ALGEBRA_TYPES = (IntTupleType, LayoutType, ComposedLayoutType, SwizzleType, CoordSwizzleType, TileType)


def apply(module: ir.Operation, arch: Arch) -> None:
    """Lower every function of a module."""
    divisions.expand_kernels(module)
    for function in functions(module):
        lowering = _Lowering()
        for op in operations(function):
            if op.name in index_casts.EXTENSIONS:
                index_casts.split(op)
            else:
                lowering.visit(op)
    erase_dead(module)


@dataclass(frozen=True)
class _Tensor:
    """A tensor as its parts: elements begin `offset` elements after `pointer`."""

    kind: MemRefType
    pointer: ir.Value
    offset: Any
    layout: AnyLayout


class _Lowering:
    """The lowering of one function. It maps each fly value to its meaning."""

    def __init__(self) -> None:
        # ir.Value -> Layout, int tuple or Tile with SSA leaves, or _Tensor.
        self.meaning: dict[ir.Value, Any] = {}

    def visit(self, op: ir.Operation) -> None:
        """Lower one operation; operations of other dialects stay."""
        operation = fly_name(op)
        if not operation:
            return
        with ir.InsertionPoint(op), op.location:
            if OPS[operation].algebra is not None:
                self._algebra(op, operation)
            elif operation in _LOWERINGS:
                _LOWERINGS[operation](self, op)

    def of(self, value: ir.Value) -> Any:
        """The meaning of a fly value. A static type states it in full."""
        found = self.meaning.get(value)
        if found is None:
            kind = fly_type(value.type)
            if not isinstance(kind, _ALGEBRA_TYPES) or not is_static(algebra_value(kind)):
                raise CompileError(
                    f"the origin of a value of type {kind} is not known",
                    at=source_location(ir.Location.current),
                    hint="block arguments and results of other dialects' operations are not lowered",
                )
            found = self.meaning[value] = algebra_value(kind)
        return found

    def layout_of(self, value: ir.Value) -> Any:
        found = self.of(value)
        return found.layout if isinstance(found, _Tensor) else found

    def _algebra(self, op: ir.Operation, operation: str) -> None:
        """Run the algebra's function on operands with SSA leaves."""
        source = self.of(op.operands[0])
        if operation == "slice":
            self.meaning[op.result] = self._slice(source, self.of(op.operands[1]))
            self._give_back(op)
            return
        function = OPS[operation].algebra
        assert function is not None
        operands = [self.layout_of(value) for value in op.operands]
        result = function(*operands, *mode_arguments(attributes_of(op)))
        kind = fly_type(op.result.type)
        result = as_stated(result, algebra_value(kind))
        if isinstance(kind, MemRefType):
            result = _Tensor(kind, source.pointer, source.offset, result)
        self.meaning[op.result] = result
        self._give_back(op)

    def _slice(self, source: Any, coordinate: Any) -> Any:
        if not isinstance(source, _Tensor):
            return algebra.slice(source, coordinate)
        layout, offset = algebra.slice_and_offset(coordinate, source.layout)
        return _Tensor(source.kind, source.pointer, source.offset + offset, layout)

    # --- values for others --------------------------------------------------------------------------------------------

    def _give_back(self, op: ir.Operation) -> None:
        """Build the result again if an operation that stays uses it, such as a function's return."""
        users = [use for use in op.result.uses if not _is_lowered(fly_name(use.owner.operation))]
        if users:
            value = self._built(self.meaning[op.result], fly_type(op.result.type))
            for use in users:
                use.owner.operation.operands[use.operand_number] = value

    def _built(self, value: Any, kind: FlyType) -> ir.Value:
        """The operations that make a value of a type from its parts."""
        at = ir.Location.current
        if isinstance(value, _Tensor):
            layout = self._built(value.layout, algebra_type(algebra_value(kind)))
            return create_fly("make_view", [self._address(value, 0), layout], at).result
        if isinstance(kind, IntTupleType):
            pairs = _leaves_of_dynamic(value, kind.value)
            leaves = [materialize(leaf, symbol.width, at) for leaf, symbol in pairs]
            return create_fly("make_int_tuple", leaves, at, results=[kind]).result
        if isinstance(kind, LayoutType):
            tuples = ((value.extents, kind.layout.extents), (value.strides, kind.layout.strides))
            operands = [self._built(part, IntTupleType(stated)) for part, stated in tuples]
            return create_fly("make_layout", operands, at, results=[kind]).result
        if isinstance(kind, ComposedLayoutType):
            parts = zip(algebra.composed_parts(value), algebra.composed_parts(kind.layout), strict=True)
            operands = [self._built(part, algebra_type(stated)) for part, stated in parts]
            return create_fly("make_composed_layout", operands, at, results=[kind]).result
        return create_fly("static", [], at, results=[kind]).result

    # --- structure ---------------------------------------------------------------------------------------------------

    def make_int_tuple(self, op: ir.Operation) -> None:
        kind = fly_type(op.result.type)
        symbols = dynamic_leaves(kind.value)
        leaves = [
            SsaLeaf(value, symbol.width, symbol.divisibility, op.location)
            for symbol, value in zip(symbols, op.operands, strict=True)
        ]
        self.meaning[op.result] = with_leaves(kind.value, leaves)

    def make_layout(self, op: ir.Operation) -> None:
        self.meaning[op.result] = algebra.make_layout(*map(self.of, op.operands))

    def make_view(self, op: ir.Operation) -> None:
        pointer, layout = op.operands
        self.meaning[op.result] = _Tensor(fly_type(op.result.type), pointer, 0, self.of(layout))

    def get_layout(self, op: ir.Operation) -> None:
        self.meaning[op.result] = self.of(op.operands[0]).layout
        self._give_back(op)

    def get_iter(self, op: ir.Operation) -> None:
        tensor = self.of(op.operands[0])
        address = self._address(tensor, 0)
        if address.type != op.result.type:  # more is known about its alignment
            address = create_fly("recast_iter", [address], op.location, results=[fly_type(op.result.type)]).result
        op.result.replace_all_uses_with(address)

    def get_scalar(self, op: ir.Operation) -> None:
        leaf = single_leaf(self.of(op.operands[0]))
        width = leaf.width if isinstance(leaf, SsaLeaf) else 32
        op.result.replace_all_uses_with(materialize(leaf, width, op.location))
        op.erase()

    def get_leaves(self, op: ir.Operation) -> None:
        """Lower get_leaves with a result for each leaf, or for each that is not known at compile time."""
        only_dynamic = len(op.results) < len(algebra.flatten((fly_type(op.operands[0].type).value,)))
        leaves = algebra.flatten((self.of(op.operands[0]),))
        given = [leaf for leaf in leaves if isinstance(leaf, SsaLeaf) or not only_dynamic]
        for result, leaf in zip(op.results, given, strict=True):
            width = leaf.width if isinstance(leaf, SsaLeaf) else 32
            result.replace_all_uses_with(materialize(leaf, width, op.location))
        op.erase()

    def assume(self, op: ir.Operation) -> None:
        """Take the value of the second operand, with the divisibility that the result's type states."""
        leaves = [leaf for leaf in algebra.flatten((self.of(op.operands[1]),)) if isinstance(leaf, SsaLeaf)]
        kind = fly_type(op.result.type)
        promised = [
            SsaLeaf(leaf.value, symbol.width, symbol.divisibility, op.location)
            for leaf, symbol in zip(leaves, dynamic_leaves(kind.value), strict=True)
        ]
        self.meaning[op.result] = with_leaves(kind.value, promised)
        self._give_back(op)

    def print(self, op: ir.Operation) -> None:
        """Create a gpu.printf, with the numbers of int tuples in place of the tuples."""
        text, operands = attributes_of(op)["format"].split("{}"), list[ir.Value]()
        format_ = text[0]
        for value, rest in zip(op.operands, text[1:], strict=True):
            shown, values = self._printed(value)
            format_ += shown + rest
            operands += values
        create("gpu.printf", operands, [], op.location, {"format": ir.StringAttr.get(f"{format_}\n")})
        op.erase()

    def _printed(self, value: ir.Value) -> tuple[str, list[ir.Value]]:
        """The placeholders for a value in C's printf, and the values that they take."""
        kind = fly_type(value.type)
        if kind is None:
            float_ = isinstance(value.type, ir.FloatType)
            wide = not float_ and value.type in (element_type("i64"), element_type("index"))
            return "%f" if float_ else "%ld" if wide else "%d", [value]
        if not isinstance(kind, IntTupleType):
            raise CompileError(
                f"a value of type {kind} cannot be printed",
                at=source_location(ir.Location.current),
                hint="print int tuples, such as the shape of a layout, or numbers",
            )
        leaves = [leaf for leaf in algebra.flatten((self.of(value),)) if isinstance(leaf, SsaLeaf)]
        shown = re.sub(r"\?(\{[^}]*\})?", "%d", algebra.to_text(erase_values(self.of(value))))
        return shown, [materialize(leaf, leaf.width, ir.Location.current) for leaf in leaves]

    def compare(self, op: ir.Operation) -> None:
        """Lower elem_less and equal: known leaves are compared here, the others by arith.cmpi."""
        is_less = fly_name(op) == "elem_less"
        holds, unknown = True, list[ir.Value]()
        for left, right in compared_parts(*map(self.of, op.operands)):
            widths = [leaf.width for leaf in (left, right) if isinstance(leaf, SsaLeaf)]
            if not widths:
                holds = holds and bool(left < right if is_less else left == right)
                continue
            values = [materialize(leaf, max(widths), op.location) for leaf in (left, right)]
            predicate = ir.IntegerAttr.get(element_type("i64"), _SIGNED_LESS if is_less else _EQUAL)
            i1 = element_type("i1")
            unknown.append(create("arith.cmpi", values, [i1], op.location, {"predicate": predicate}).result)
        result = functools.reduce(_both, unknown) if holds and unknown else constant(-int(holds), 1, op.location)
        op.result.replace_all_uses_with(result)
        op.erase()

    def decomposition(self, op: ir.Operation) -> None:
        tensor = self.of(op.operands[0])
        plain = tensor.layout
        while isinstance(plain, algebra.ComposedLayout):
            plain = algebra.composed_get_outer(plain)
        offset = algebra.crd2idx(0, tensor.layout)
        self.meaning[op.result] = _Tensor(fly_type(op.result.type), tensor.pointer, tensor.offset + offset, plain)
        self._give_back(op)

    # --- memory ------------------------------------------------------------------------------------------------------

    def memref_alloca(self, op: ir.Operation) -> None:
        kind = fly_type(op.result.type)
        held, count = kind.pointer, _known(algebra.cosize(kind.layout))
        if is_packed(kind.element):
            held, count = PointerType("i32", "register"), word_count(kind.element, count)
        attributes = {"dictAttrs": ir.DictAttr.get({"allocSize": ir.IntegerAttr.get(element_type("i64"), count)})}
        pointer = create_fly("make_ptr", [], op.location, results=[held], attributes=attributes).result
        self.meaning[op.result] = _Tensor(kind, pointer, 0, kind.layout)

    def memref_load(self, op: ir.Operation) -> None:
        address = self._element_address(*op.operands)
        value = create_fly("ptr.load", [address], op.location, results=[op.result.type]).result
        op.result.replace_all_uses_with(value)
        op.erase()

    def memref_store(self, op: ir.Operation) -> None:
        value, tensor, coordinate = op.operands
        create_fly("ptr.store", [value, self._element_address(tensor, coordinate)], op.location)
        op.erase()

    def memref_load_vec(self, op: ir.Operation) -> None:
        """Load each contiguous piece, and put the pieces together."""
        parts, kind = self._registers(op.operands[0]), op.result.type
        width, places = vector_pieces(parts.layout)
        pieces = [self._load_piece(parts, place, width, kind) for place in places]
        whole = pieces[0] if len(pieces) == 1 else zeros(kind, op.location)
        for number, piece in enumerate(pieces if len(pieces) > 1 else []):
            at = {"offsets": _numbers(number * width), "strides": _numbers(1)}
            whole = create("vector.insert_strided_slice", [piece, whole], [kind], op.location, at).result
        op.result.replace_all_uses_with(whole)
        op.erase()

    def _load_piece(self, parts: _Tensor, place: int, width: int, kind: ir.VectorType) -> ir.Value:
        at, piece = ir.Location.current, ir.VectorType.get([width], kind.element_type)
        address = self._address(parts, place)
        if not is_packed(parts.kind.element):
            return create_fly("ptr.load", [address], at, results=[piece]).result
        words = ir.VectorType.get([word_count(parts.kind.element, width)], element_type("i32"))
        loaded = create_fly("ptr.load", [address], at, results=[words]).result
        return create("vector.bitcast", [loaded], [piece], at).result

    def memref_store_vec(self, op: ir.Operation) -> None:
        value, tensor = op.operands
        parts = self._registers(tensor)
        width, places = vector_pieces(parts.layout)
        kind = ir.VectorType.get([width], value.type.element_type)
        for number, place in enumerate(places):
            piece = value
            if len(places) > 1:
                at = {"offsets": _numbers(number * width), "sizes": _numbers(width), "strides": _numbers(1)}
                piece = create("vector.extract_strided_slice", [value], [kind], op.location, at).result
            held = as_words(piece, op.location) if is_packed(parts.kind.element) else piece
            create_fly("ptr.store", [held, self._address(parts, place)], op.location)
        op.erase()

    def partition(self, op: ir.Operation) -> None:
        copy, tensor, thread = op.operands
        parts = self.of(tensor)
        reads = fly_name(op).endswith("src")
        layout, offset = partitioned(fly_type(copy.type).copy, self.of(thread), parts.layout, reads)
        self.meaning[op.result] = _Tensor(parts.kind, parts.pointer, parts.offset + offset, layout)

    def retile(self, op: ir.Operation) -> None:
        copy, fragment = op.operands
        parts = self.of(fragment)
        layout = on_plain_layout(fly_type(copy.type).copy.retile, parts.layout)
        self.meaning[op.result] = _Tensor(parts.kind, parts.pointer, parts.offset, layout)

    def mma_partition(self, op: ir.Operation) -> None:
        mma, tensor, thread = op.operands
        parts = self.of(tensor)
        operand = attributes_of(op)["operand"]
        layout, offset = mma_partitioned(fly_type(mma.type).mma, operand, self.of(thread), parts.layout)
        self.meaning[op.result] = _Tensor(parts.kind, parts.pointer, parts.offset + offset, layout)

    def gemm(self, op: ir.Operation) -> None:
        """Create one mma_atom_call for each instruction, in the order of the attribute."""
        mma, *fragments = op.operands
        atom = self._atom_of(mma, op) if isinstance(fly_type(mma.type), TiledMmaType) else mma
        tensors = [self.of(fragment) for fragment in fragments]
        extents = gemm_extents([tensor.kind.with_layout(tensor.layout) for tensor in tensors])
        views: dict[Any, ir.Value] = {}

        def view(i: int, mode_1: int, mode_2: int) -> ir.Value:
            key = (fragments[i], mode_1, mode_2)
            if key not in views:
                views[key] = self._call_view(tensors[i], gemm_modes(tensors[i].layout), (None, mode_1, mode_2))
            return views[key]

        started: set[tuple[int, int]] = set()  # places of D that hold a partial sum, which the next call adds to
        for m, n, k in traversal(extents, attributes_of(op).get("order", DEFAULT_ORDER)):
            addend = view(0 if (m, n) in started else 3, m, n)
            create_fly("mma_atom_call", [atom, view(0, m, n), view(1, m, k), view(2, n, k), addend], op.location)
            started.add((m, n))
        op.erase()

    def get_mma_atom(self, op: ir.Operation) -> None:
        replace(op, [self._atom_of(op.operands[0], op)])

    @staticmethod
    def _atom_of(tiled: ir.Value, op: ir.Operation) -> ir.Value:
        """The atom of a tiled MMA, with the values that were set on it."""
        maker = defining_op(tiled)
        if maker is not None and fly_name(maker) == "make_tiled_mma":
            return maker.operands[0]
        return create_fly("make_mma_atom", [], op.location, results=[fly_type(tiled.type).atom]).result

    def copy(self, op: ir.Operation) -> None:
        """Create one copy_atom_call for each call that the tensors take, inside an scf.if if it has a predicate."""
        atom, source, target, *predicates = op.operands
        tensors = [self.of(source), self.of(target)]
        kind = fly_type(atom.type)
        calls = [call_of(kind, tensor.layout) for tensor in tensors]
        atom = copy_of_words(atom)
        count = _known(algebra.size(algebra.get(erase_values(calls[0]), 1)))
        for i in range(count):
            with self._guard(predicates, i, count):
                views = [self._call_view(tensor, call, (None, i)) for tensor, call in zip(tensors, calls, strict=True)]
                create_fly("copy_atom_call", [atom, *views], op.location)
        op.erase()

    def copy_atom_call(self, op: ir.Operation) -> None:
        """Lower a copy call: each tensor becomes a view of the elements that one call moves."""
        atom, source, target, *predicates = op.operands
        atom = copy_of_words(atom)
        with self._guard(predicates, 0, 1):
            create_fly("copy_atom_call", [atom, self._view(self.of(source)), self._view(self.of(target))], op.location)
        op.erase()

    def mma_atom_call(self, op: ir.Operation) -> None:
        atom, *tensors = op.operands
        create_fly("mma_atom_call", [atom, *(self._view(self.of(tensor)) for tensor in tensors)], op.location)
        op.erase()

    @contextmanager
    def _guard(self, predicates: list[ir.Value], i: int, count: int) -> Iterator[None]:
        """Put the operations created in the block under the predicate of call `i` of `count`, if any."""
        if not predicates:
            yield
            return
        at = ir.Location.current
        memref = self.of(predicates[0])
        size = _known(algebra.size(memref.layout))
        address = self._address(memref, algebra.crd2idx(i * size // count, memref.layout))
        condition = create_fly("ptr.load", [address], at, results=[element_type("i1")]).result
        branch = ir.Operation.create("scf.if", [], [condition], regions=2, loc=at)
        with ir.InsertionPoint(ir.Block.create_at_start(branch.regions[0], [])):
            yield
            ir.Operation.create("scf.yield", loc=at)

    def _call_view(self, tensor: _Tensor, layout: AnyLayout, coordinate: tuple[int | None, ...]) -> ir.Value:
        """The view of the elements that one call moves. layout: of the tensor, by calls."""
        part, offset = algebra.slice_and_offset(coordinate, layout)
        return self._view(_Tensor(tensor.kind, tensor.pointer, tensor.offset + offset, part))

    def _element_address(self, tensor: ir.Value, coordinate: ir.Value) -> ir.Value:
        parts = self.of(tensor)
        return self._address(parts, algebra.crd2idx(self.of(coordinate), parts.layout))

    def _registers(self, tensor: ir.Value) -> _Tensor:
        """The parts of a tensor whose layout is known at compile time."""
        parts = self.of(tensor)
        register_elements(parts.kind.with_layout(erase_values(parts.layout)))
        return parts

    def _address(self, tensor: _Tensor, index: Any) -> ir.Value:
        """The pointer to an element: `fly.add_offset` on the tensor's pointer, or the pointer itself for offset 0.

        Of elements below a byte it is one to the words that they begin.
        """
        offset, pointer = tensor.offset + index, tensor.pointer
        if is_packed(tensor.kind.element):
            offset, pointer = word_offset(tensor.kind, offset), pointer_to_words(pointer)
        if isinstance(offset, int) and offset == 0:
            return pointer
        at = ir.Location.current
        leaves = [] if isinstance(offset, int) else [materialize(offset, offset.width, at)]
        symbol = IntTupleType(erase_values(offset))
        operand = create_fly("make_int_tuple", leaves, at, results=[symbol]).result
        return create_fly("add_offset", [pointer, operand], at).result

    def _view(self, tensor: _Tensor) -> ir.Value:
        at = ir.Location.current
        size = _known(algebra.size(tensor.layout))
        if is_packed(tensor.kind.element):
            size = word_count(tensor.kind.element, size)
        static = create_fly("static", [], at, results=[_one_call(size)]).result
        first = algebra.crd2idx(0, tensor.layout)  # of a swizzled tensor it is not 0
        return create_fly("make_view", [self._address(tensor, first), static], at).result


def _numbers(*numbers: int) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(element_type("i64"), number) for number in numbers])


_EQUAL, _SIGNED_LESS = 0, 2  # predicates of arith.cmpi


def _is_lowered(operation: str) -> bool:
    """True if this pass replaces a fly operation of this name; false for other dialects' operations, of no name."""
    return operation in _LOWERINGS or (operation in OPS and OPS[operation].algebra is not None)


def _both(left: ir.Value, right: ir.Value) -> ir.Value:
    return create("arith.andi", [left, right], [left.type], ir.Location.current).result


def _leaves_of_dynamic(value: Any, stated: Any) -> list[tuple[Any, algebra.Dynamic]]:
    """The leaves of an int tuple that are dynamic in its type, each with the symbol in the type."""
    if isinstance(stated, tuple):
        return [pair for parts in zip(value, stated, strict=True) for pair in _leaves_of_dynamic(*parts)]
    return [(value, stated)] if isinstance(stated, algebra.Dynamic) else []


def _known(size: int | algebra.Dynamic) -> int:
    assert isinstance(size, int), "inference has refused tensors of unknown size"
    return size


@functools.cache
def _one_call(size: int) -> ir.Type:
    """The type of the layout of the values that an atom moves, side by side: few types, in many places."""
    return LayoutType(algebra.make_layout(size, 1)).ir


_LOWERINGS: dict[str, Callable[[_Lowering, ir.Operation], None]] = {
    "make_int_tuple": _Lowering.make_int_tuple,
    "make_layout": _Lowering.make_layout,
    "make_view": _Lowering.make_view,
    "get_layout": _Lowering.get_layout,
    "get_iter": _Lowering.get_iter,
    "get_scalar": _Lowering.get_scalar,
    "get_leaves.scalars": _Lowering.get_leaves,
    "assume": _Lowering.assume,
    "print": _Lowering.print,
    "elem_less": _Lowering.compare,
    "equal": _Lowering.compare,
    "decomposition": _Lowering.decomposition,
    "memref.alloca": _Lowering.memref_alloca,
    "memref.load": _Lowering.memref_load,
    "memref.store": _Lowering.memref_store,
    "memref.load_vec": _Lowering.memref_load_vec,
    "memref.store_vec": _Lowering.memref_store_vec,
    "make_fragment_like": _Lowering.memref_alloca,
    "tiled_copy.partition_src": _Lowering.partition,
    "tiled_copy.partition_dst": _Lowering.partition,
    "tiled_copy.retile": _Lowering.retile,
    "tiled_mma.partition": _Lowering.mma_partition,
    "mma.make_fragment": _Lowering.memref_alloca,
    "get_mma_atom": _Lowering.get_mma_atom,
    "gemm": _Lowering.gemm,
    "mma_atom_call": _Lowering.mma_atom_call,
    "copy": _Lowering.copy,
    "copy_atom_call": _Lowering.copy_atom_call,
}
