"""SMEM: loads into scalar registers.

Through the resource of a buffer, base and offset are each cut off to a multiple of what is loaded, of a dword at most,
and num_records counts records if there is a stride (ISA, "Scalar memory operations"; of gfx1250 also the tests of AMD's
emulator, s_buffer_memory_test: its units of the stride and its other modes count for nothing here).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried
from flydsl.simulator.isa.table import define


def _scaled(b: Builder, offset: Value, modifiers: Any, bytes_: int) -> Value:
    """An offset from a register, which with scale_offset (gfx1250) counts elements of the load."""
    return b.mul(offset, b.const("i64", bytes_)) if modifiers.flag("scale_offset") else offset


@curried
def _load(dwords: int, b: Builder, base: Value, offset: Value, modifiers: Any) -> tuple[Value, ...]:
    """Load from base and offset, whose two lowest bits are ignored."""
    offset = _scaled(b, offset, modifiers, 4 * dwords)
    offset = b.add(offset, b.const("i64", modifiers.integer("offset")))
    aligned = b.and_(b.add(base, offset), b.const("i64", ~3))
    return b.load("global", aligned, dwords)


Resource = Callable[[Builder, tuple[Value, ...]], tuple[Value, Value]]
"""Base and number of bytes of a resource, as i64."""


def _bytes_of(b: Builder, records: Value, stride: Value) -> Value:
    """The bytes of so many records, or of single bytes if the stride, an i32, is 0."""
    stride = b.zext(b.and_(stride, b.const("i32", 0x3FFF)), "i64")
    return b.mul(records, b.select(b.icmp("ne", stride, b.const("i64", 0)), stride, b.const("i64", 1)))


def _resource(b: Builder, resource: tuple[Value, ...]) -> tuple[Value, Value]:
    upper = b.and_(resource[1], b.const("i32", 0xFFFF))
    records, stride = b.zext(resource[2], "i64"), b.lshr(resource[1], b.const("i32", 16))
    return b.join((resource[0], upper)), _bytes_of(b, records, stride)


def records_of_cdna5(b: Builder, low: Value, high: Value) -> Value:
    """The 45 bits of num_records; 7 of them are above the base."""
    upper = b.and_(high, b.const("i64", (1 << 38) - 1))
    return b.or_(b.lshr(low, b.const("i64", 57)), b.shl(upper, b.const("i64", 7)))


def _resource_of_cdna5(b: Builder, resource: tuple[Value, ...]) -> tuple[Value, Value]:
    low, high = b.join(resource[:2]), b.join(resource[2:])
    stride = b.lshr(resource[3], b.const("i32", 12))
    return b.and_(low, b.const("i64", (1 << 57) - 1)), _bytes_of(b, records_of_cdna5(b, low, high), stride)


@curried
def _buffer_load(
    dwords: int, decode: Resource, b: Builder, resource: tuple[Value, ...], offset: Value, modifiers: Any
) -> tuple[Value, ...]:
    """Load through the base and num_records of a buffer resource; out of range reads 0."""
    offset = b.and_(b.add(offset, b.const("i32", modifiers.integer("offset"))), b.const("i32", ~3))
    base, size = decode(b, resource)
    base = b.and_(base, b.const("i64", ~3))
    result: list[Value] = []
    for i in range(dwords):
        at = b.add(offset, b.const("i32", 4 * i))
        in_range = b.icmp("ult", b.zext(at, "i64"), size)
        result += b.load("global", b.add(base, b.zext(at, "i64")), 1, where=in_range)
    return tuple(result)


for _suffix, _dwords in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4), ("x8", 8), ("x16", 16)):
    _set = "rdna" if _dwords == 3 else ""
    define(f"s_load_dword{_suffix}", f"i32x{_dwords} = i64 offset modifiers", _load(_dwords), of=_set)
    _through = f"i32x{_dwords} = i32x4 i32 modifiers"
    define(f"s_buffer_load_dword{_suffix}", _through, _buffer_load(_dwords, _resource), of=_set)
    define(f"s_buffer_load_dword{_suffix}", _through, _buffer_load(_dwords, _resource_of_cdna5), of="cdna5")


def _part(b: Builder, dword: Value, address: Value, bits: int, *, signed: bool) -> Value:
    """The number of `bits` bits at an address within its dword; the address is a multiple of the number's size."""
    byte = b.and_(address, b.const("i32", 3 & ~(bits // 8 - 1)))
    value = b.trunc(b.lshr(dword, b.mul(byte, b.const("i32", 8))), f"i{bits}")
    return (b.sext if signed else b.zext)(value, "i32")


@curried
def _small_load(bits: int, b: Builder, base: Value, offset: Value, modifiers: Any, *, signed: bool) -> Value:
    offset = _scaled(b, offset, modifiers, bits // 8)
    address = b.add(base, b.add(offset, b.const("i64", modifiers.integer("offset"))))
    (dword,) = b.load("global", b.and_(address, b.const("i64", ~3)), 1)
    return _part(b, dword, b.trunc(address, "i32"), bits, signed=signed)


@curried
def _small_buffer_load(
    bits: int, decode: Resource, b: Builder, resource: tuple[Value, ...], offset: Value, modifiers: Any, *, signed: bool
) -> Value:
    cut_off = -(bits // 8)
    offset = b.and_(b.add(offset, b.const("i32", modifiers.integer("offset"))), b.const("i32", cut_off))
    base, size = decode(b, resource)
    address = b.add(b.and_(base, b.const("i64", cut_off)), b.zext(offset, "i64"))
    in_range = b.icmp("ult", b.zext(offset, "i64"), size)
    (dword,) = b.load("global", b.and_(address, b.const("i64", ~3)), 1, where=in_range)
    return _part(b, dword, b.trunc(address, "i32"), bits, signed=signed)


for _name, _bits, _signed in (("ubyte", 8, False), ("sbyte", 8, True), ("ushort", 16, False), ("sshort", 16, True)):
    define(f"s_load_{_name}", "i32 = i64 offset modifiers", _small_load(_bits, signed=_signed), of="rdna")
    for _set, _decode in (("rdna", _resource), ("cdna5", _resource_of_cdna5)):
        _evaluate = _small_buffer_load(_bits, _decode, signed=_signed)
        define(f"s_buffer_load_{_name}", "i32 = i32x4 i32 modifiers", _evaluate, of=_set)
