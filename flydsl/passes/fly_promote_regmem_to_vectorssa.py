"""fly-promote-regmem-to-vectorssa: register tensors become values.

A register tensor whose every access lies at a static offset is split where accesses begin and end, and each piece is
one vector value that the stores update. Loops carry the pieces that they change, and branches yield them:

    %acc = fly.make_ptr() {dictAttrs = {allocSize = 16 : i64}} : () -> !fly.ptr<f32, register>
    scf.for ... { %v = fly.ptr.load(%acc) ... fly.ptr.store(%w, %acc) }

    scf.for ... iter_args(%piece = %poison) -> (vector<4xf32>) { ... scf.yield %w }

Others stay memory: convert-fly-to-rocdl makes them private allocas, which LLVM promotes where it can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.elements import element_type
from flydsl.dialect.inference import allocated_elements
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import create, entry_block, erase_dead, fly_name, functions, operations

name = "fly-promote-regmem-to-vectorssa"

# Structured control flow that values can pass through.
_CARRIES = ("scf.for", "scf.if", "scf.while")


def apply(module: ir.Operation, arch: Arch) -> None:
    """Promote every register tensor of a module that can be."""
    for function in functions(module):
        promotion = _Promotion()
        for op in operations(function):
            if _is_register_tensor(op):
                promotion.add(op, function)
        if promotion.pieces_of:
            promotion.run(entry_block(function), {})
    erase_dead(module)


@dataclass(frozen=True)
class _Access:
    """A load or store of `count` elements, `offset` elements from the start."""

    op: ir.Operation
    offset: int
    count: int


@dataclass(frozen=True, eq=False)
class _Piece:
    """Elements `offset` to `offset + size` of a register tensor, which no access divides."""

    element: str
    offset: int
    size: int

    @property
    def type(self) -> ir.Type:
        return ir.VectorType.get([self.size], element_type(self.element))


# The value that each piece has at a point of the program; a piece that nobody wrote yet has none.
_State = dict[_Piece, ir.Value]


def _is_register_tensor(op: ir.Operation) -> bool:
    return fly_name(op) == "make_ptr" and fly_type(op.result.type).space == "register"


def _accesses(op: ir.Operation, function: ir.Operation) -> list[_Access] | None:
    """Every access of a register tensor, or None where one is out of this pass's reach."""
    found: list[_Access] = []
    pending: list[tuple[ir.Value, int]] = [(op.result, 0)]
    while pending:
        pointer, offset = pending.pop()
        for use in pointer.uses:
            user = use.owner.operation
            step = _static_offset(user) if fly_name(user) == "add_offset" else None
            if step is not None:
                pending.append((user.result, offset + step))
            elif fly_name(user) in ("ptr.load", "ptr.store") and _is_address(user, use) and _reachable(user, function):
                found.append(_Access(user, offset, _count(user)))
                _check_bounds(found[-1], allocated_elements(attributes_of(op)))
            else:
                return None
    return found


def _reachable(op: ir.Operation, function: ir.Operation) -> bool:
    """Whether only structured control flow stands between the function and an operation."""
    parent = op.parent.operation
    while parent != function:
        if parent.name not in _CARRIES:
            return False
        parent = parent.parent.operation
    return True


def _check_bounds(access: _Access, size: int) -> None:
    if access.offset < 0 or access.offset + access.count > size:
        raise CompileError(
            f"access to elements {access.offset} to {access.offset + access.count - 1} of a register tensor of {size}",
            at=source_location(access.op.location),
        )


def _is_address(user: ir.Operation, use: ir.OpOperand) -> bool:
    """Whether the pointer is what the operation accesses, not the value that it stores."""
    return bool(use.operand_number == len(user.operands) - 1)


def _static_offset(op: ir.Operation) -> int | None:
    value = fly_type(op.operands[1].type).value
    return value if isinstance(value, int) else None


def _value(op: ir.Operation) -> ir.Value:
    return op.operands[0] if fly_name(op) == "ptr.store" else op.result


def _count(op: ir.Operation) -> int:
    kind = _value(op).type
    return int(kind.shape[0]) if isinstance(kind, ir.VectorType) else 1


@dataclass
class _Promotion:
    """The promotion of one function's register tensors.

    pieces_of: each access -> the pieces that it covers, and where it begins.
    stored_in: a control flow operation -> the pieces that something inside of it stores.
    """

    pieces_of: dict[ir.Operation, tuple[int, list[_Piece]]] = field(default_factory=dict)
    stored_in: dict[ir.Operation, dict[_Piece, None]] = field(default_factory=dict)

    def add(self, op: ir.Operation, function: ir.Operation) -> None:
        """Promote a register tensor, if it can be."""
        accesses = _accesses(op, function)
        if not accesses:
            return
        element = fly_type(op.result.type).element
        cuts = sorted({cut for access in accesses for cut in (access.offset, access.offset + access.count)})
        pieces = [_Piece(element, start, end - start) for start, end in zip(cuts, cuts[1:], strict=False)]
        home = op.parent.operation
        for access in accesses:
            end = access.offset + access.count
            covered = [piece for piece in pieces if access.offset <= piece.offset < end]
            self.pieces_of[access.op] = (access.offset, covered)
            if fly_name(access.op) == "ptr.store":
                parent = access.op.parent.operation
                while parent != home:
                    self.stored_in.setdefault(parent, {}).update(dict.fromkeys(covered))
                    parent = parent.parent.operation

    def run(self, block: ir.Block, state: _State) -> None:
        """Replace the accesses of a block; `state` becomes that at its end."""
        for view in list(block.operations):
            op = view.operation
            if op in self.pieces_of:
                self._access(op, state)
            elif op.name in _CARRIES:
                self._control_flow(op, state)

    def _access(self, op: ir.Operation, state: _State) -> None:
        offset, pieces = self.pieces_of[op]
        with ir.InsertionPoint(op):
            if fly_name(op) == "ptr.store":
                for piece in pieces:
                    state[piece] = _part(op.operands[0], piece.offset - offset, piece, op.location)
            else:
                values = [_now(piece, state, op.location) for piece in pieces]
                op.result.replace_all_uses_with(_joined(values, op.result.type, op.location))
        op.erase()

    def _control_flow(self, op: ir.Operation, state: _State) -> None:
        carried = list(self.stored_in.get(op, ()))
        if carried:
            op = self._widened(op, carried, state)
        blocks = [list(region.blocks)[0] for region in op.regions if len(region.blocks)]
        if op.name == "scf.if":
            for block in blocks:
                inner = dict(state)
                self.run(block, inner)
                _pass_on(block, [_now(piece, inner, op.location, before=_last(block)) for piece in carried])
        else:
            inner = dict(state)
            for block in blocks:  # of a while loop, first the condition and then the body
                inner.update(zip(carried, _last_of(block.arguments, len(carried)), strict=True))
                self.run(block, inner)
                _pass_on(block, [inner[piece] for piece in carried])
        state.update(zip(carried, _last_of(op.results, len(carried)), strict=True))

    def _widened(self, op: ir.Operation, carried: list[_Piece], state: _State) -> ir.Operation:
        """The operation again with further results, and operands where it is a loop, for the carried pieces."""
        at = op.location
        with ir.InsertionPoint(op):
            started = [_now(piece, state, at) for piece in carried] if op.name != "scf.if" else []
            operands = [*op.operands, *started]
            types = [*(result.type for result in op.results), *(piece.type for piece in carried)]
            attributes = {key: op.attributes[key] for key in op.attributes}
            new = ir.Operation.create(op.name, types, operands, attributes, regions=len(op.regions), loc=at)
        for old_region, new_region in zip(op.regions, new.regions, strict=True):
            for block in list(old_region.blocks):
                block.append_to(new_region)
            if not len(new_region.blocks):  # an scf.if without else
                with ir.InsertionPoint(ir.Block.create_at_start(new_region, [])):
                    ir.Operation.create("scf.yield", loc=at)
            if op.name != "scf.if":
                for piece in carried:
                    list(new_region.blocks)[0].add_argument(piece.type, at)
        for old, result in zip(op.results, list(new.results)[: len(op.results)], strict=True):
            old.replace_all_uses_with(result)
        op.erase()
        return new


def _last_of(values: Iterable[ir.Value], count: int) -> list[ir.Value]:
    found = list(values)
    return found[len(found) - count :]


def _last(block: ir.Block) -> ir.Operation:
    """The terminator of a block."""
    return list(block.operations)[-1].operation


def _pass_on(block: ir.Block, values: list[ir.Value]) -> None:
    """Let the block's terminator pass on further values."""
    if not values:
        return
    old = _last(block)
    attributes = {key: old.attributes[key] for key in old.attributes}
    with ir.InsertionPoint(old):
        ir.Operation.create(old.name, [], [*old.operands, *values], attributes, loc=old.location)
    old.erase()


def _now(piece: _Piece, state: _State, at: ir.Location, before: ir.Operation | None = None) -> ir.Value:
    """The value of a piece; registers that nobody wrote hold anything."""
    if piece in state:
        return state[piece]
    with ir.InsertionPoint(before) if before is not None else ir.InsertionPoint.current:
        return create("ub.poison", [], [piece.type], at).result


def _part(value: ir.Value, offset: int, piece: _Piece, at: ir.Location) -> ir.Value:
    """What a stored value puts into a piece."""
    if value.type == piece.type:
        return value
    if not isinstance(value.type, ir.VectorType):
        return create("vector.broadcast", [value], [piece.type], at).result
    attributes = {"offsets": _i64_array([offset]), "sizes": _i64_array([piece.size]), "strides": _i64_array([1])}
    return create("vector.extract_strided_slice", [value], [piece.type], at, attributes).result


def _joined(values: list[ir.Value], kind: ir.Type, at: ir.Location) -> ir.Value:
    """A loaded value from the pieces that it covers."""
    if len(values) == 1 and values[0].type == kind:
        return values[0]
    if not isinstance(kind, ir.VectorType):
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([0])}
        return create("vector.extract", [values[0]], [kind], at, attributes).result
    whole, offset = create("ub.poison", [], [kind], at).result, 0
    for value in values:
        attributes = {"offsets": _i64_array([offset]), "strides": _i64_array([1])}
        whole = create("vector.insert_strided_slice", [value, whole], [kind], at, attributes).result
        offset += value.type.shape[0]
    return whole


def _i64_array(values: list[int]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(element_type("i64"), value) for value in values])
