"""fly-promote-regmem-to-vectorssa: register tensors become vector values.

A register tensor whose every access lies at a static offset, in the block that makes it, is one vector value that the
stores update. Others stay memory here: convert-fly-to-rocdl makes them private allocas, which LLVM promotes where it
can.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.elements import element_type
from flydsl.dialect.inference import allocated_elements
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import blocks, create, erase_dead, fly_name

name = "fly-promote-regmem-to-vectorssa"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Promote every register tensor of a module that can be."""
    for block in blocks(module):
        order = {op.operation: i for i, op in enumerate(block.operations)}
        for op in [op for op in order if _is_register_tensor(op)]:
            accesses = _accesses(op, order)
            if accesses is not None:
                _promote(op, accesses)
    erase_dead(module)


@dataclass(frozen=True)
class _Access:
    """A load or store of `count` elements, `offset` elements from the start."""

    op: ir.Operation
    offset: int
    count: int


def _is_register_tensor(op: ir.Operation) -> bool:
    return fly_name(op) == "make_ptr" and fly_type(op.result.type).space == "register"


def _accesses(op: ir.Operation, order: dict[ir.Operation, int]) -> list[_Access] | None:
    """Every access in program order, or None where one is out of this pass's reach. order: within the block."""
    found: list[_Access] = []
    pending: list[tuple[ir.Value, int]] = [(op.result, 0)]
    while pending:
        pointer, offset = pending.pop()
        for use in pointer.uses:
            user = use.owner.operation
            step = _static_offset(user) if fly_name(user) == "add_offset" else None
            if step is not None:
                pending.append((user.result, offset + step))
            elif fly_name(user) in ("ptr.load", "ptr.store") and user in order and _is_address(user, use):
                found.append(_Access(user, offset, _count(user)))
                _check_bounds(found[-1], allocated_elements(attributes_of(op)))
            else:
                return None
    return sorted(found, key=lambda access: order[access.op])


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


def _promote(op: ir.Operation, accesses: list[_Access]) -> None:
    size = allocated_elements(attributes_of(op))
    vector = ir.VectorType.get([size], element_type(fly_type(op.result.type).element))
    current: ir.Value | None = None
    for access in accesses:
        at = access.op.location
        with ir.InsertionPoint(access.op):
            if current is None and not (fly_name(access.op) == "ptr.store" and access.count == size):
                # Registers that nobody wrote hold anything.
                current = create("ub.poison", [], [vector], at).result
            if fly_name(access.op) == "ptr.store":
                current = _stored(current, access, vector, at)
            else:
                assert current is not None
                access.op.result.replace_all_uses_with(_loaded(current, access, at))
        access.op.erase()


def _stored(current: ir.Value | None, access: _Access, vector: ir.Type, at: ir.Location) -> ir.Value:
    value = access.op.operands[0]
    if value.type == vector:
        return value
    if current is None:
        current = create("ub.poison", [], [vector], at).result
    if not isinstance(value.type, ir.VectorType):
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([access.offset])}
        return create("vector.insert", [value, current], [vector], at, attributes).result
    attributes = {"offsets": _i64_array([access.offset]), "strides": _i64_array([1])}
    return create("vector.insert_strided_slice", [value, current], [vector], at, attributes).result


def _loaded(current: ir.Value, access: _Access, at: ir.Location) -> ir.Value:
    kind = access.op.result.type
    if kind == current.type:
        return current
    if not isinstance(kind, ir.VectorType):
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([access.offset])}
        return create("vector.extract", [current], [kind], at, attributes).result
    attributes = {
        "offsets": _i64_array([access.offset]),
        "sizes": _i64_array([access.count]),
        "strides": _i64_array([1]),
    }
    return create("vector.extract_strided_slice", [current], [kind], at, attributes).result


def _i64_array(values: list[int]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(element_type("i64"), value) for value in values])
