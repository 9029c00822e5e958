"""SMEM: loads into scalar registers."""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.table import define


def _load(dwords: int) -> Any:
    def evaluate(b: Builder, base: Value, offset: Value, modifiers: Any) -> tuple[Value, ...]:
        """Load from base and offset, whose two lowest bits are ignored."""
        offset = b.add(offset, b.const("i64", modifiers.integer("offset")))
        aligned = b.and_(b.add(base, offset), b.const("i64", ~3))
        return b.load("global", aligned, dwords)

    return evaluate


def _buffer_load(dwords: int) -> Any:
    def evaluate(b: Builder, resource: tuple[Value, ...], offset: Value, modifiers: Any) -> tuple[Value, ...]:
        """Load through the base and num_records of a buffer resource; out of range reads 0."""
        offset = b.and_(b.add(offset, b.const("i32", modifiers.integer("offset"))), b.const("i32", ~3))
        upper = b.and_(resource[1], b.const("i32", 0xFFFF))
        base = b.or_(b.zext(resource[0], "i64"), b.shl(b.zext(upper, "i64"), b.const("i64", 32)))
        result: list[Value] = []
        for i in range(dwords):
            at = b.add(offset, b.const("i32", 4 * i))
            in_range = b.icmp("ult", at, resource[2])
            result += b.load("global", b.add(base, b.zext(at, "i64")), 1, where=in_range)
        return tuple(result)

    return evaluate


for _suffix, _dwords in (("", 1), ("x2", 2), ("x4", 4), ("x8", 8), ("x16", 16)):
    define(f"s_load_dword{_suffix}", f"i32x{_dwords} = i64 offset modifiers", _load(_dwords))
    define(f"s_buffer_load_dword{_suffix}", f"i32x{_dwords} = i32x4 i32 modifiers", _buffer_load(_dwords))
