"""Leaves of layouts that carry SSA values: the layout algebra computes on them while a pass lowers it to arithmetic.

The same algebra also runs on ints, and on `Dynamic` leaves of which nothing but the type is known.
"""

from __future__ import annotations

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.layout import Dynamic
from flydsl.passes.rewriting import constant, create

# The algebra's operations on dynamic leaves. Extents, strides and coordinates are not negative, but their types are
# signed: signed operations keep what LLVM knows about the sign.
_ARITH = {
    "add": "arith.addi",
    "sub": "arith.subi",
    "mul": "arith.muli",
    "div": "arith.divsi",
    "ceil_div": "arith.ceildivsi",
    "mod": "arith.remsi",
    "and": "arith.andi",
    "xor": "arith.xori",
    "shl": "arith.shli",
    "shr": "arith.shrsi",
}


class SsaLeaf(Dynamic):
    """A dynamic leaf with its SSA value; arithmetic on it emits one arith operation.

    Operations go to the current insertion point, at the location of the operation that is being lowered.
    """

    __slots__ = ("location", "value")

    value: ir.Value
    location: ir.Location

    def __init__(self, value: ir.Value, width: int, divisibility: int, location: ir.Location) -> None:
        super().__init__(width, divisibility)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "location", location)

    def _combine(self, op: str, lhs: int | Dynamic, rhs: int | Dynamic, width: int, divisibility: int) -> SsaLeaf:
        at = ir.Location.current
        operands = [materialize(leaf, width, at) for leaf in (lhs, rhs)]
        value = create(_ARITH[op], operands, [operands[0].type], at).result
        return SsaLeaf(value, width, divisibility, at)


def materialize(leaf: int | Dynamic, width: int, at: ir.Location) -> ir.Value:
    """A leaf as an SSA value of `width` bits: ints become constants, narrower values are sign-extended."""
    if isinstance(leaf, int):
        return constant(leaf, width, at)
    assert isinstance(leaf, SsaLeaf)
    if leaf.width == width:
        return leaf.value
    name = "arith.extsi" if leaf.width < width else "arith.trunci"
    return create(name, [leaf.value], [element_type(f"i{width}")], at).result
