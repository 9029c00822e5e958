"""Accesses of register memory stay inside it.

In LLVM an access beyond an alloca is undefined: it may reach another element or tensor, or LLVM may conclude that it
never happens. So an offset that is only known at run time is taken as unsigned, and clamped to the last place where the
access fits:

    %r = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}}       R = fx.memref_alloca(fx.make_layout(4, 1), ...)
    %i = arith.minui %n, 3                                        R[n], which is R[3] for n = 4 and for n = -1

Where LLVM knows the range of the index, as in `R[i & 3]` or in a loop over 4 elements, it removes the minimum. A static
offset that is outside is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlir import ir

from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.inference import single_leaf
from flydsl.dialect.leaves import erase_values
from flydsl.dialect.location import source_location
from flydsl.dialect.memory_inference import allocated_elements
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import IntTupleType, PointerType, fly_type
from flydsl.errors import CompileError
from flydsl.layout import Dynamic
from flydsl.passes.rewriting import constant, create, create_fly, defining_op, fly_name, operand_of, terminator
from flydsl.passes.ssa_leaf import SsaLeaf, materialize
from flydsl.passes.to_rocdl.storage import storage_type

# The operand of an access that is its address.
_ADDRESS = {"ptr.load": 0, "ptr.store": 1}


def clamp(ops: Iterable[ir.Operation]) -> None:
    """Clamp the offset of each access of register memory among some operations.

    Raises CompileError for a static offset that is outside, and for a pointer that branches or loops choose and whose
    distance from the end is not known.
    """
    for op in ops:
        operand = _ADDRESS.get(fly_name(op))
        if operand is not None and fly_type(op.operands[operand].type).space == "register":
            with ir.InsertionPoint(op), op.location:
                _clamp_access(op, operand)


def _clamp_access(op: ir.Operation, operand: int) -> None:
    pointer = op.operands[operand]
    root, steps = _path(pointer)
    available = _bytes_behind(root)
    if available is None:
        return
    room = available - _stored_bytes(op.operands[0].type if fly_name(op) == "ptr.store" else op.result.type)
    offset = sum(step.elements * step.bytes for step in steps)
    if room < 0 or (isinstance(offset, int) and not 0 <= offset <= room):
        raise _outside(op, offset, available)
    if not isinstance(offset, int):
        op.operands[operand] = _clamped(root, steps, room, fly_type(pointer.type))


@dataclass(frozen=True)
class _Step:
    """A pointer's offset from another one: elements of `bytes` bytes."""

    elements: int | SsaLeaf
    bytes: int


def _path(pointer: ir.Value) -> tuple[ir.Value, list[_Step]]:
    """The value that a pointer is computed from, and the steps to it."""
    steps = list[_Step]()
    while (op := defining_op(pointer)) is not None and fly_name(op) in ("add_offset", "recast_iter"):
        pointer = op.operands[0]
        if fly_name(op) == "add_offset":
            steps.append(_Step(_offset(op), _element_bytes(fly_type(pointer.type))))
    return pointer, steps


def _offset(op: ir.Operation) -> int | SsaLeaf:
    """The offset of an add_offset, in elements."""
    known = single_leaf(fly_type(op.operands[1].type).value)
    if isinstance(known, int):
        return known
    value = operand_of(op.operands[1], "make_int_tuple")
    return SsaLeaf(value, known.width, known.divisibility, op.location)


def _clamped(root: ir.Value, steps: list[_Step], room: int, kind: PointerType) -> ir.Value:
    """The pointer at the end of the steps, some of them known only at run time, but at most `room` bytes away."""
    at = ir.Location.current
    unit = min([_element_bytes(kind), *(step.bytes for step in steps)])
    offset = sum(step.elements * (step.bytes // unit) for step in steps)
    assert isinstance(offset, Dynamic)
    value = materialize(offset, offset.width, at)
    last = constant((room - room % kind.known_alignment) // unit, offset.width, at)
    index = create("arith.minui", [value, last], [value.type], at).result
    if offset.width != 32:
        index = create("arith.trunci", [index], [element_type("i32")], at).result
    operand = create_fly("make_int_tuple", [index], at, results=[IntTupleType(erase_values(Dynamic()))]).result
    start = _recast(root, kind if _element_bytes(kind) == unit else PointerType(f"i{8 * unit}", "register"))
    return _recast(create_fly("add_offset", [start, operand], at).result, kind)


def _recast(pointer: ir.Value, kind: PointerType) -> ir.Value:
    if fly_type(pointer.type) == kind:
        return pointer
    return create_fly("recast_iter", [pointer], ir.Location.current, results=[kind]).result


def _element_bytes(kind: PointerType) -> int:
    return _stored_bytes(element_type(kind.element))


def _stored_bytes(kind: ir.Type) -> int:
    """The bytes of an element or vector in register memory, where no two elements share a byte."""
    stored = storage_type(kind)
    if isinstance(stored, ir.VectorType):
        return element_bits(str(stored.element_type)) // 8 * int(stored.shape[0])
    return element_bits(str(stored)) // 8


def _outside(op: ir.Operation, offset: int | Dynamic, available: int) -> CompileError:
    place = f" from byte {offset}" if isinstance(offset, int) else ""
    moved = op.operands[0].type if fly_name(op) == "ptr.store" else op.result.type
    return CompileError(
        f"an access of {moved}{place} of a register tensor of {available} bytes",
        at=source_location(op.location),
        hint="a register tensor has as many elements as its layout says; make it larger",
    )


# --- pointers that branches and loops choose -------------------------------------------------------------------------


def _bytes_behind(root: ir.Value) -> int | None:
    """A lower bound of the bytes from a pointer to the end of its memory; None for a function's argument.

    Raises CompileError if it depends on a runtime value, as where a loop moves the pointer along.
    """
    nearest, pending, seen = list[int](), [root], set[ir.Value]()
    while pending:
        pointer = pending.pop()
        if pointer in seen:
            continue
        seen.add(pointer)
        maker = defining_op(pointer)
        if maker is not None and fly_name(maker) == "make_ptr":
            nearest.append(allocated_elements(attributes_of(maker)) * _element_bytes(fly_type(pointer.type)))
            continue
        sources = list(_sources(pointer))
        if not sources:
            return None
        for source in sources:
            start, steps = _path(source)
            if any(step.elements != 0 for step in steps):
                raise _moved(source)
            pending.append(start)
    return min(nearest)


def _moved(pointer: ir.Value) -> CompileError:
    maker = defining_op(pointer)
    return CompileError(
        "a part of a register tensor that a branch or loop chooses is unsupported",
        at=None if maker is None else source_location(maker.location),
        hint="choose a whole tensor and index that, or choose the index",
    )


def _sources(value: ir.Value) -> Iterator[ir.Value]:
    """The values that a value may be, if structured control flow or a select makes it."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        yield from _passed_to(owner.owner.operation, owner, value.arg_number)
    else:
        yield from _chosen_by(owner.operation, value.result_number)


def _passed_to(op: ir.Operation, block: ir.Block, number: int) -> Iterator[ir.Value]:
    """The values that an argument of a loop's block may have."""
    if op.name == "scf.for":
        yield from _chosen_by(op, number - 1)  # the first argument is the index
    elif op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        if block == before:
            yield op.operands[number]
            yield terminator(after).operands[number]
        else:
            yield terminator(before).operands[1 + number]  # the first operand is the condition


def _chosen_by(op: ir.Operation, number: int) -> Iterator[ir.Value]:
    """The values that the result of a select, a branch or a loop may have."""
    if op.name == "arith.select":
        yield from op.operands[1:]
    elif op.name == "scf.if":
        yield from (terminator(region.blocks[0]).operands[number] for region in op.regions)
    elif op.name == "scf.for":
        yield op.operands[3 + number]  # after the bounds and the step
        yield terminator(op.regions[0].blocks[0]).operands[number]
    elif op.name == "scf.while":
        yield terminator(op.regions[0].blocks[0]).operands[1 + number]
