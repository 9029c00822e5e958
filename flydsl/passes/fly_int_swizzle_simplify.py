"""fly-int-swizzle-simplify: constants move out of swizzles, so that many addresses share one.

A swizzle is `x ^ ((x & mask) >> shift)`. It reads and changes only bits below the end of the mask, so a constant above
them can be added afterwards:

    func.func @f(%base: i32) -> i32 {
      %added = arith.constant 2048 : i32
      %mask = arith.constant 448 : i32
      %shift = arith.constant 3 : i32
      %x = arith.addi %base, %added : i32
      %bits = arith.andi %x, %mask : i32
      %low = arith.shrsi %bits, %shift : i32
      %s = arith.xori %x, %low : i32
      return %s : i32
    }

becomes

    func.func @f(%base: i32) -> i32 {
      %added = arith.constant 2048 : i32
      %mask = arith.constant 448 : i32
      %shift = arith.constant 3 : i32
      %bits = arith.andi %base, %mask : i32
      %low = arith.shrsi %bits, %shift : i32
      %y = arith.xori %base, %low : i32
      %s = arith.addi %y, %added : i32
      return %s : i32
    }

Shared memory instructions take such a constant as their offset, and the remaining swizzles are equal, so that one is
computed for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.elements import element_bits
from flydsl.dialect.walk import operations
from flydsl.passes.rewriting import constant, constant_of, create, defining_op

name = "fly-int-swizzle-simplify"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Simplify every swizzle of a module."""
    shared: dict[tuple[ir.Block, ir.Value, int, _Shape], ir.Value] = {}
    for op in operations(module):
        swizzle = _swizzle(op)
        if swizzle is not None:
            _move_constant(op, swizzle, shared)


@dataclass(frozen=True)
class _Shape:
    """The mask and shift of a swizzle."""

    mask: int
    shift: int
    downward: bool


@dataclass(frozen=True)
class _Swizzle:
    shape: _Shape
    index: ir.Value


def _swizzle(op: ir.Operation) -> _Swizzle | None:
    """The swizzle that an operation completes, or None."""
    if op.name != "arith.xori":
        return None
    for index, moved in (op.operands, reversed(list(op.operands))):
        shift = defining_op(moved)
        if shift is None or shift.name not in ("arith.shrsi", "arith.shli"):
            continue
        masked, amount = defining_op(shift.operands[0]), constant_of(shift.operands[1])
        if masked is None or masked.name != "arith.andi" or amount is None:
            continue
        mask = constant_of(masked.operands[1])
        if masked.operands[0] == index and mask is not None and mask > 0:
            return _Swizzle(_Shape(mask, amount, shift.name == "arith.shrsi"), index)
    return None


def _move_constant(
    op: ir.Operation, swizzle: _Swizzle, shared: dict[tuple[ir.Block, ir.Value, int, _Shape], ir.Value]
) -> None:
    base, added = _split(swizzle.index)
    shape = swizzle.shape
    reach = shape.mask if shape.downward else shape.mask << shape.shift
    below = added % (1 << reach.bit_length())
    if added == below and added == 0:
        return
    at, bits = op.location, element_bits(str(op.result.type))
    with ir.InsertionPoint(op):
        key = (op.block, base, below, shape)
        if key not in shared:
            shared[key] = _swizzled(_plus(base, below, at), shape, bits, at)
        op.result.replace_all_uses_with(_plus(shared[key], added - below, at))
    op.erase()


def _swizzled(index: ir.Value, shape: _Shape, bits: int, at: ir.Location) -> ir.Value:
    masked = create("arith.andi", [index, constant(shape.mask, bits, at)], [index.type], at).result
    shift = "arith.shrsi" if shape.downward else "arith.shli"
    moved = create(shift, [masked, constant(shape.shift, bits, at)], [index.type], at).result
    return create("arith.xori", [index, moved], [index.type], at).result


def _plus(value: ir.Value, number: int, at: ir.Location) -> ir.Value:
    if number == 0:
        return value
    bits = element_bits(str(value.type))
    return create("arith.addi", [value, constant(number, bits, at)], [value.type], at).result


def _split(value: ir.Value) -> tuple[ir.Value, int]:
    """The two parts of a sum: the part known at run time only, and the constants added to it."""
    op, added = defining_op(value), 0
    while op is not None and op.name == "arith.addi":
        for here, there in ((0, 1), (1, 0)):
            number = constant_of(op.operands[there])
            if number is not None:
                value, added = op.operands[here], added + number
                break
        else:
            break
        op = defining_op(value)
    return value, added
