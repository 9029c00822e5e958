"""fly-promote-regmem-to-vectorssa: register tensors become values.

A register tensor whose every access lies at a static offset is split where accesses begin and end, and each piece is
one vector value that the stores update. Loops carry the pieces that they change, and branches yield them:

    func.func @f(%v: vector<4xf32>, %n: index) -> vector<4xf32> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %acc = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, register>
      fly.ptr.store(%v, %acc) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
      scf.for %i = %zero to %n step %one {
        %x = fly.ptr.load(%acc) : (!fly.ptr<f32, register>) -> vector<4xf32>
        %y = arith.addf %x, %v : vector<4xf32>
        fly.ptr.store(%y, %acc) : (vector<4xf32>, !fly.ptr<f32, register>) -> ()
      }
      %w = fly.ptr.load(%acc) : (!fly.ptr<f32, register>) -> vector<4xf32>
      return %w : vector<4xf32>
    }

becomes

    func.func @f(%v: vector<4xf32>, %n: index) -> vector<4xf32> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %w = scf.for %i = %zero to %n step %one iter_args(%piece = %v) -> (vector<4xf32>) {
        %y = arith.addf %piece, %v : vector<4xf32>
        scf.yield %y : vector<4xf32>
      }
      return %w : vector<4xf32>
    }

A load of elements that nothing can have written yet is an error; in the language of FlyDSL 0.2.2 it gives zeros and a
warning. A piece that only some paths write starts as zeros:
from an undefined value LLVM could conclude that the other paths are never taken.

Others stay memory: convert-fly-to-rocdl makes them private allocas, which LLVM promotes where it can.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mlir import ir

from flydsl import env
from flydsl.arch import Arch
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import source_location
from flydsl.dialect.memory_inference import allocated_elements
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import fly_type
from flydsl.dialect.variables import ELEMENTS, variable_attributes
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError
from flydsl.passes.rewriting import create, create_fly, entry_block, erase_dead, fly_name, functions, terminator, zeros

name = "fly-promote-regmem-to-vectorssa"

# Structured control flow that values can pass through.
_CARRIES = ("scf.for", "scf.if", "scf.while")


def apply(module: ir.Operation, arch: Arch) -> None:
    """Promote every register tensor of a module that can be."""
    for function in functions(module):
        # An operation's hash changes with its operands, so it is a key only until the first change.
        pieces_of: dict[ir.Operation, tuple[int, list[_Piece]]] = {}
        for op in operations(function):
            if _is_register_tensor(op):
                accesses = _accesses(op, function)
                pieces_of.update(_divided(op, accesses))
                if not accesses:
                    _check_stored(op)
        if pieces_of:
            plan = _plan(entry_block(function), pieces_of)
            unwritten: list[ir.Operation] = []
            _check_written(plan, set(), set(), unwritten)
            _warn_of_zeros(unwritten)
            _promote(plan, {})
    erase_dead(module)


@dataclass(frozen=True)
class _Access:
    """A load or store of `count` elements, `offset` elements from the start."""

    op: ir.Operation
    offset: int
    count: int


@dataclass(frozen=True, eq=False)
class _Piece:
    """Elements `offset` to `offset + size` of a register tensor, which no access divides.

    variable: its name where names are kept (`flydsl.expr.control_flow.variables`), else empty. home: the operation in
    whose region the register tensor is made. whole: the number of elements that it has.
    """

    variable: str
    home: ir.Operation
    element: str
    offset: int
    size: int
    whole: int

    @property
    def type(self) -> ir.Type:
        return ir.VectorType.get([self.size], element_type(self.element))


# The value that each piece has at a point of the program; a piece that was not written yet has none.
_State = dict[_Piece, ir.Value]


def _is_register_tensor(op: ir.Operation) -> bool:
    return fly_name(op) == "make_ptr" and fly_type(op.result.type).space == "register"


def _accesses(op: ir.Operation, function: ir.Operation) -> list[_Access]:
    """Every access of a register tensor; none if this pass cannot follow one of them."""
    found: list[_Access] = []
    size: int | None = None
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
                size = size or allocated_elements(attributes_of(op))
                _check_bounds(found[-1], size)
            else:
                return []
    return found


def _reachable(op: ir.Operation, function: ir.Operation) -> bool:
    """True if only structured control flow is between the function and an operation."""
    parent = op.parent.operation
    while parent != function:
        if parent.name not in _CARRIES:
            return False
        parent = parent.parent.operation
    return True


def _check_bounds(access: _Access, size: int) -> None:
    if access.offset < 0 or access.offset + access.count > size:
        raise CompileError(
            f"elements {access.offset} to {access.offset + access.count - 1} lie outside a register tensor of {size}",
            at=source_location(access.op.location),
            hint="make the register tensor larger, or the index smaller",
        )


def _is_address(user: ir.Operation, use: ir.OpOperand) -> bool:
    """True if the operation accesses the pointer, and does not store it as a value."""
    return bool(use.operand_number == len(user.operands) - 1)


def _static_offset(op: ir.Operation) -> int | None:
    value = fly_type(op.operands[1].type).value
    return value if isinstance(value, int) else None


def _value(op: ir.Operation) -> ir.Value:
    return op.operands[0] if fly_name(op) == "ptr.store" else op.result


def _count(op: ir.Operation) -> int:
    kind = _value(op).type
    return int(kind.shape[0]) if isinstance(kind, ir.VectorType) else 1


def _divided(op: ir.Operation, accesses: list[_Access]) -> Iterator[tuple[ir.Operation, tuple[int, list[_Piece]]]]:
    """Each access with its offset and the pieces of the register tensor that it covers."""
    element = fly_type(op.result.type).element
    cuts = sorted({cut for access in accesses for cut in (access.offset, access.offset + access.count)})
    variable = op.location.name_str if op.location.is_a_name() else ""
    home, whole = op.parent.operation, allocated_elements(attributes_of(op))
    pieces = [_Piece(variable, home, element, start, end - start, whole) for start, end in pairwise(cuts)]
    for access in accesses:
        end = access.offset + access.count
        yield access.op, (access.offset, [piece for piece in pieces if access.offset <= piece.offset < end])


@dataclass(frozen=True)
class _Step:
    """The work at one operation: an access to some pieces, or control flow with steps inside.

    stored: the pieces that the step, or a step inside it, stores, except pieces of tensors that are made inside it.
    """

    op: ir.Operation
    stored: tuple[_Piece, ...]
    offset: int = 0
    pieces: tuple[_Piece, ...] = ()
    inside: tuple[list[_Step], ...] | None = None


def _plan(block: ir.Block, pieces_of: dict[ir.Operation, tuple[int, list[_Piece]]]) -> list[_Step]:
    """The steps of a block, before anything changes."""
    steps = []
    for view in block.operations:
        op = view.operation
        if op in pieces_of:
            offset, pieces = pieces_of[op]
            steps.append(_Step(op, tuple(pieces) if fly_name(op) == "ptr.store" else (), offset, tuple(pieces)))
        elif op.name in _CARRIES:
            inside = tuple(_plan(inner, pieces_of) for region in op.regions for inner in region.blocks)
            stored = (piece for plan in inside for step in plan for piece in step.stored)
            changed = dict.fromkeys(piece for piece in stored if piece.home != op)
            if any(inside):
                steps.append(_Step(op, tuple(changed), inside=inside))
    return steps


def _check_written(steps: list[_Step], written: set[_Piece], ever: set[_Piece], unwritten: list[ir.Operation]) -> None:
    """Raise CompileError for a load of elements that nothing can have written; in the language of FlyDSL 0.2.2,
    `unwritten` lists it instead. Both sets grow by what the steps store.

    written: pieces that a path to here may have stored; in the body of a loop, to its first round. ever: those that an
    earlier round of an enclosing loop may have stored, too. An operation that runs in some rounds only need not run in
    the first one.
    """
    for step in steps:
        if step.inside is None and not step.stored and written.isdisjoint(step.pieces):
            if not env.is_language_0_2_2():
                raise _never_written(step.op)
            unwritten.append(step.op)
        first = set(ever)
        for plan in step.inside or ():
            if step.op.name == "scf.if":
                _check_written(plan, set(ever), set(ever), unwritten)
            else:  # of a while loop, first the condition and then the body
                _check_written(plan, first, ever | set(step.stored), unwritten)
        written.update(step.stored)
        ever.update(step.stored)


def _check_stored(op: ir.Operation) -> None:
    """Raise CompileError for a register tensor that stays in memory and is loaded, if nothing stores to it."""
    pending, load = [op.result], None
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if fly_name(user) == "add_offset":
                pending.append(user.result)
            elif fly_name(user) != "ptr.load":
                return
            else:
                load = user
    if load is not None:
        raise _never_written(load)


def _never_written(load: ir.Operation) -> CompileError:
    return CompileError(
        "a register tensor is read here before anything wrote these elements of it",
        at=source_location(load.location),
        hint="give it a start, such as tensor.fill(0)",
    )


def _warn_of_zeros(loads: Sequence[ir.Operation]) -> None:
    """Warn at each line of loads that give zeros: FlyDSL 0.2.2 takes such programs, its third example among them."""
    places = (source_location(load.location) for load in loads)
    for file, line in dict.fromkeys((at.file, at.line) if at else ("<kernel>", 1) for at in places):
        message = (
            "a register tensor is read here before anything wrote these elements of it: they are zeros; compiled by "
            "FlyDSL 0.2.2 they are undefined; give it a start, such as tensor.fill(0)"
        )
        warnings.warn_explicit(message, UserWarning, file, line)


def _promote(steps: list[_Step], state: _State) -> None:
    """Carry out the steps of a block. `state` becomes the state at its end."""
    for step in steps:
        if step.inside is None:
            _promote_access(step, state)
        else:
            _promote_inside(step, step.inside, state)


def _promote_access(step: _Step, state: _State) -> None:
    op, at = step.op, step.op.location
    with ir.InsertionPoint(op):
        if step.stored:
            for piece in step.pieces:
                state[piece] = _part(op.operands[0], piece.offset - step.offset, piece, at)
            _tell(step.pieces[0], step.offset, op.operands[0], at)
        else:
            values = [_now(piece, state, at) for piece in step.pieces]
            op.result.replace_all_uses_with(_joined(values, op.result.type, at))
    op.erase()


def _promote_inside(step: _Step, inside: tuple[list[_Step], ...], state: _State) -> None:
    """Promote in a loop or branch, which then carries or yields the pieces that it stores."""
    carried = list(step.stored)
    op = _widened(step.op, carried, state) if carried else step.op
    blocks = [next(iter(region.blocks)) for region in op.regions if len(region.blocks)]
    plans = [*inside, *([[]] * (len(blocks) - len(inside)))]  # an else that was added has no steps
    inner = dict(state)
    for plan, block in zip(plans, blocks, strict=True):
        if op.name == "scf.if":
            inner = dict(state)
        else:  # of a while loop, first the condition and then the body
            inner.update(zip(carried, _last_of(block.arguments, len(carried)), strict=True))
            with ir.InsertionPoint.at_block_begin(block):
                _tell_all(carried, inner, op.location)
        _promote(plan, inner)
        _pass_on(block, [_now(piece, inner, op.location, before=terminator(block)) for piece in carried])
    state.update(zip(carried, _last_of(op.results, len(carried)), strict=True))
    with ir.InsertionPoint.after(op):
        _tell_all(carried, state, op.location)


def _tell_all(pieces: Sequence[_Piece], state: _State, at: ir.Location) -> None:
    for piece in pieces:
        _tell(piece, piece.offset, state[piece], at)


def _tell(piece: _Piece, offset: int, value: ir.Value, at: ir.Location) -> None:
    """Say for a debugger that the elements from `offset` on of the register tensor of a piece have a value."""
    if piece.variable and piece.element in ELEMENTS:
        attributes = variable_attributes(piece.variable, piece.element, offset, piece.whole)
        create_fly("variable", [value], at, attributes=attributes)


def _widened(op: ir.Operation, carried: list[_Piece], state: _State) -> ir.Operation:
    """A loop or branch with further results for the carried pieces, and for a loop with further operands."""
    at, branches = op.location, op.name == "scf.if"
    with ir.InsertionPoint(op):
        started = [] if branches else [_now(piece, state, at) for piece in carried]
        types = [*(result.type for result in op.results), *(piece.type for piece in carried)]
        attributes = {key: op.attributes[key] for key in op.attributes}
        operands = [*op.operands, *started]
        new = ir.Operation.create(op.name, types, operands, attributes, regions=len(op.regions), loc=at)
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        for block in list(old_region.blocks):
            block.append_to(new_region)
        if not len(new_region.blocks):  # an scf.if without else
            with ir.InsertionPoint(ir.Block.create_at_start(new_region, [])):
                ir.Operation.create("scf.yield", loc=at)
        if not branches:
            for piece in carried:
                next(iter(new_region.blocks)).add_argument(piece.type, at)
    for old, result in zip(op.results, list(new.results)[: len(op.results)], strict=True):
        old.replace_all_uses_with(result)
    op.erase()
    return new


def _last_of(values: Iterable[ir.Value], count: int) -> list[ir.Value]:
    found = list(values)
    return found[len(found) - count :]


def _pass_on(block: ir.Block, values: list[ir.Value]) -> None:
    """Add further values to the operands of the block's terminator."""
    if not values:
        return
    old = terminator(block)
    attributes = {key: old.attributes[key] for key in old.attributes}
    with ir.InsertionPoint(old):
        ir.Operation.create(old.name, [], [*old.operands, *values], attributes, loc=old.location)
    old.erase()


def _now(piece: _Piece, state: _State, at: ir.Location, before: ir.Operation | None = None) -> ir.Value:
    """The current value of a piece; zeros if nothing wrote it."""
    if piece in state:
        return state[piece]
    with ir.InsertionPoint(before) if before is not None else ir.InsertionPoint.current:
        return zeros(piece.type, at)


def _part(value: ir.Value, offset: int, piece: _Piece, at: ir.Location) -> ir.Value:
    """The part of a stored value that belongs to a piece."""
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
    # Not poison, which would be the better word: of LLVM's poison, into which a later pass turns it, upstream's
    # canonicalizer takes the elements, and ends the process. Every element is written.
    whole, offset = zeros(kind, at), 0
    for value in values:
        attributes = {"offsets": _i64_array([offset]), "strides": _i64_array([1])}
        whole = create("vector.insert_strided_slice", [value, whole], [kind], at, attributes).result
        offset += value.type.shape[0]
    return whole


def _i64_array(values: list[int]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(element_type("i64"), value) for value in values])
