"""Fields of a few bits in consecutive dwords, which may lie across two of them."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.simulator.isa.builder import Builder, Value


def field_of(b: Builder, dwords: Sequence[Value], index: int, bits: int) -> Value:
    """The `index`-th field of `bits` bits, as an i32."""
    first, shift = divmod(index * bits, 32)
    if shift + bits > 32:
        value = b.trunc(b.lshr(b.join(dwords[first : first + 2]), b.const("i64", shift)), "i32")
    else:
        value = b.lshr(dwords[first], b.const("i32", shift))
    return b.and_(value, b.const("i32", (1 << bits) - 1))


def packed_fields(b: Builder, codes: Sequence[Value], bits: int) -> tuple[Value, ...]:
    """The dwords whose consecutive fields of `bits` bits are the codes (i32)."""
    dwords = [b.const("i32", 0)] * (len(codes) * bits // 32)
    for i, code in enumerate(codes):
        first, shift = divmod(i * bits, 32)
        dwords[first] = b.or_(dwords[first], b.shl(code, b.const("i32", shift)))
        if shift + bits > 32:
            dwords[first + 1] = b.or_(dwords[first + 1], b.lshr(code, b.const("i32", 32 - shift)))
    return tuple(dwords)
