"""Small computations that several families share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value


def curried(semantics: Callable[..., Any]) -> Callable[..., Any]:
    """Semantics of several instructions: called with what tells them apart, it leaves the builder and the operands."""
    return partial(partial, semantics)


def nothing(b: Builder, *operands: Any) -> None:
    """An instruction that changes no state here: caches and timing are not simulated."""


def identity(b: Builder, x: Value) -> Value:
    return x


def masked_amount(b: Builder, amount: Value, type_: str) -> Value:
    """A shift amount in the type of the shifted value, modulo its width: the machine looks at no other bits."""
    width = int(type_[1:])
    source = {16: "i16", 32: "i32", 64: "i32"}[width]
    masked = b.and_(amount, b.const(source, width - 1))
    return b.zext(masked, type_) if source != type_ else masked


@curried
def shift(operation: str, type_: str, b: Builder, x: Value, y: Value, *, reversed_: bool = False) -> Value:
    """shl, lshr or ashr with the amount masked; `reversed_` takes the amount first, as v_lshlrev does."""
    value, amount = (y, x) if reversed_ else (x, y)
    return getattr(b, operation)(value, masked_amount(b, amount, type_))


def minimum(predicate: str) -> Any:
    """The operand that the integer comparison selects: "slt" makes a signed minimum, "ugt" an unsigned maximum."""
    return lambda b, x, y: b.select(b.icmp(predicate, x, y), x, y)


def nonzero(b: Builder, x: Value, type_: str) -> Value:
    return b.icmp("ne", x, b.const(type_, 0))


def field(b: Builder, x: Value, position: int, bits: int) -> Value:
    """The `position`-th unsigned field of a dword that is divided into fields of `bits` bits."""
    return b.and_(b.lshr(x, b.const("i32", position * bits)), b.const("i32", (1 << bits) - 1))


def insert_half(b: Builder, old: Value, half: Value, *, high: bool) -> Value:
    """`old` with its low or high 16 bits replaced by those of `half`."""
    half = b.and_(half, b.const("i32", 0xFFFF))
    if high:
        return b.or_(b.and_(old, b.const("i32", 0xFFFF)), b.shl(half, b.const("i32", 16)))
    return b.or_(b.and_(old, b.const("i32", 0xFFFF0000)), half)


def flush_denormals(b: Builder, x: Value, smallest_normal: float) -> Value:
    """An f32 below `smallest_normal` in magnitude becomes a zero of its sign, whatever the wave's mode."""
    small = b.fcmp("olt", b.fabs(x), b.const("f32", smallest_normal))
    return b.select(small, b.bitcast(b.and_(b.bitcast(x, "i32"), b.const("i32", 0x80000000)), "f32"), x)


def u24(b: Builder, x: Value) -> Value:
    return b.and_(x, b.const("i32", 0xFFFFFF))


def i24(b: Builder, x: Value) -> Value:
    eight = b.const("i32", 8)
    return b.ashr(b.shl(x, eight), eight)


def mul_wide(b: Builder, x: Value, y: Value, extend: str) -> Value:
    """The 64-bit product of two i32; `extend` is "sext" or "zext"."""
    widen = getattr(b, extend)
    return b.mul(widen(x, "i64"), widen(y, "i64"))


def high_half(b: Builder, x: Value) -> Value:
    return b.trunc(b.lshr(x, b.const("i64", 32)), "i32")


def saturating(b: Builder, operation: str, x: Value, y: Value, type_: str, *, signed: bool) -> Value:
    """x + y or x - y (operation "add" or "sub"), saturated to the type's range: integer clamp."""
    extend = b.sext if signed else b.zext
    return saturated(b, getattr(b, operation)(extend(x, "i64"), extend(y, "i64")), type_, signed=signed)


def saturated(b: Builder, wide: Value, type_: str, *, signed: bool) -> Value:
    """A (signed) i64 clamped to the range of a narrower type."""
    bits = int(type_[1:])
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    low_value, high_value = b.const("i64", low), b.const("i64", high)
    clamped = b.select(b.icmp("slt", wide, low_value), low_value, wide)
    clamped = b.select(b.icmp("sgt", clamped, high_value), high_value, clamped)
    return b.trunc(clamped, type_)
