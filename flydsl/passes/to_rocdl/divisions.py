"""Integer division and remainder by any number: x // 0 is x and x % 0 is 0, and the smallest number // -1 is itself.

Upstream, a division by zero, and of the smallest number by -1, is undefined: LLVM may conclude that the code around it
never runs, and the host's processor stops the process. In both cases the divisor is replaced by 1. Known divisors and
the launch's sizes need no guard. On the device neither do the extents by which layouts divide: an index into a tensor
without elements is wrong in any case.

Quotients of 128 bits are rounded down or up here: upstream makes their -1 of 64 ones.
"""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import scalar_of
from flydsl.dialect.walk import operations
from flydsl.passes.rewriting import create, functions, splat_of
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue

_SIGNED = ("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi")
_UNSIGNED = ("arith.divui", "arith.remui", "arith.ceildivui")
_NEVER_ZERO = ("gpu.block_dim", "gpu.grid_dim")
_CASTS = ("arith.index_cast", "arith.extsi", "arith.extui")
_EQUAL = 0
_ROUNDED = ("arith.floordivsi", "arith.ceildivsi")
_WIDEST_BITS = 64


def expand_kernels(module: ir.Operation) -> None:
    """Guard the user's divisions in kernels; called before layouts are lowered, which creates others."""
    for function in functions(module):
        if function.name == "gpu.func":
            expand(function)


def expand_launchers(module: ir.Operation) -> None:
    """Guard every division in functions that run on the host."""
    for function in functions(module):
        if function.name != "gpu.func":
            expand(function)


def expand(function: ir.Operation) -> None:
    """Guard the divisor of every division of a function."""
    for op in list(operations(function)):
        if op.name not in _SIGNED + _UNSIGNED:
            continue
        with ir.InsertionPoint(op):
            _guard(op)
            if op.name in _ROUNDED and _width(op.result.type) > _WIDEST_BITS:
                op.result.replace_all_uses_with(_rounded(op))
                op.erase()


def _guard(op: ir.Operation) -> None:
    divisor = op.operands[1]
    known = splat_of(divisor)
    if known not in (None, 0, -1) or _is_launch_size(divisor):
        return
    one = _number(divisor.type, 1, op.location)
    divisor = create("arith.maxui", [divisor, one], [divisor.type], op.location).result
    if op.name in _SIGNED:
        overflows = _overflows(op)
        divisor = create("arith.select", [overflows, one, divisor], [divisor.type], op.location).result
    op.operands[1] = divisor


def _rounded(op: ir.Operation) -> ir.Value:
    """The quotient of two signed integers, rounded down or up: one beside that towards zero, if something is left."""
    dividend, divisor = (ElementwiseValue(value, op.location) for value in op.operands)
    quotient = dividend.op("arith.divsi", divisor)
    rest = dividend - quotient * divisor
    is_negative = (dividend ^ divisor) < 0
    if op.name == "arith.floordivsi":
        return (rest.differs(0) & is_negative).choose(quotient - 1, quotient).value
    return (rest.differs(0) & (is_negative ^ is_negative.constant(1))).choose(quotient + 1, quotient).value


def _overflows(op: ir.Operation) -> ir.Value:
    """A truth value: true for a division of the smallest number by -1."""
    dividend, divisor = op.operands
    smallest = _number(dividend.type, -(1 << (_width(dividend.type) - 1)), op.location)
    sides = [(dividend, smallest), (divisor, _number(divisor.type, -1, op.location))]
    equal = [_compare(a, b, op.location) for a, b in sides]
    return create("arith.andi", equal, [equal[0].type], op.location).result


def _compare(a: ir.Value, b: ir.Value, location: ir.Location) -> ir.Value:
    truth: ir.Type = ir.IntegerType.get_signless(1)
    if isinstance(a.type, ir.VectorType):
        truth = ir.VectorType.get(a.type.shape, truth)
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _EQUAL)
    return create("arith.cmpi", [a, b], [truth], location, {"predicate": predicate}).result


def _number(kind: ir.Type, number: int, location: ir.Location) -> ir.Value:
    """A constant of a type, in every element of a vector."""
    element = scalar_of(kind)
    value = ir.Attribute.parse(f"{number} : {element}")  # also of 128 bits
    if isinstance(kind, ir.VectorType):
        value = ir.DenseElementsAttr.get_splat(kind, value)
    return create("arith.constant", [], [kind], location, {"value": value}).result


def _width(kind: ir.Type) -> int:
    element = scalar_of(kind)
    return element.width if isinstance(element, ir.IntegerType) else 64  # an index has 64 bits here


def _is_launch_size(value: ir.Value) -> bool:
    """True if a value is the size of a block or grid, possibly in another type."""
    owner = value.owner
    while isinstance(owner, ir.Operation | ir.OpView) and owner.name in _CASTS:
        owner = owner.operands[0].owner
    return isinstance(owner, ir.Operation | ir.OpView) and owner.name in _NEVER_ZERO
