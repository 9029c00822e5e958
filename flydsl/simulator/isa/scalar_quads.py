"""SOP1 on groups of bits of a scalar register: whole quads, quad masks, replicated bits."""

from __future__ import annotations

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.scalar import with_scc
from flydsl.simulator.isa.table import define

_EVERY_FOURTH = 0x1111_1111_1111_1111


def _nonzero_quads(b: Builder, x: Value, type_: str) -> Value:
    """The lowest bit of every group of four, set if any bit of the group is one."""
    x = b.or_(x, b.lshr(x, b.const(type_, 1)))
    return b.and_(b.or_(x, b.lshr(x, b.const(type_, 2))), b.const(type_, _EVERY_FOURTH >> (64 - int(type_[1:]))))


def _gather(b: Builder, x: Value, steps: tuple[tuple[int, int], ...], type_: str) -> Value:
    """Move bits together: each step ors x with itself shifted down, and keeps a mask."""
    for distance, mask in steps:
        x = b.and_(b.or_(x, b.lshr(x, b.const(type_, distance))), b.const(type_, mask))
    return x


_QUADS_TO_BITS = (
    (3, 0x0303_0303_0303_0303),
    (6, 0x000F_000F_000F_000F),
    (12, 0x0000_00FF_0000_00FF),
    (24, 0x0000_0000_0000_FFFF),
)

for _type in ("i32", "i64"):
    define(
        f"s_wqm_b{_type[1:]}",
        f"{_type} scc = {_type}",
        with_scc(lambda b, x, t=_type: b.mul(_nonzero_quads(b, x, t), b.const(t, 15)), _type),
    )


@curried
def _quad_mask(type_: str, b: Builder, x: Value) -> Value:
    quads = b.zext(_nonzero_quads(b, x, type_), "i64")
    return b.trunc(_gather(b, quads, _QUADS_TO_BITS, "i64"), type_)


define("s_quadmask_b32", "i32 scc = i32", with_scc(_quad_mask("i32"), "i32"))
define("s_quadmask_b64", "i64 scc = i64", with_scc(_quad_mask("i64"), "i64"))


def _replicate_bits(b: Builder, x: Value) -> Value:
    """Every bit twice: the bits are spread to even places, then doubled."""
    x = b.zext(x, "i64")
    for distance, mask in (
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ):
        x = b.and_(b.or_(x, b.shl(x, b.const("i64", distance))), b.const("i64", mask))
    return b.mul(x, b.const("i64", 3))


define("s_bitreplicate_b64_b32", "i64 = i32", _replicate_bits)
