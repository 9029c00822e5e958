"""The effect of an atomic on the memory word, by the name that global, flat, buffer and LDS instructions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import curried, minimum
from flydsl.simulator.isa.extremes import extreme_number


@dataclass(frozen=True)
class Atomic:
    """new = update(old, *operands), all of type_, which has the width of the memory word."""

    update: Callable[..., Value]
    type_: str
    operand_count: int = 1

    @property
    def bits(self) -> int:
        return int(self.type_[1:])

    @property
    def data_word(self) -> str:
        return f"i32x{self.operand_count * self.bits // 32}"

    def perform(
        self, b: Builder, space: str, address: Value, data: tuple[Value, ...], where: Value | None = None
    ) -> Any:
        """Returns the old value as a tuple of dwords."""
        step = self.bits // 32
        operands = [b.bitcast(b.join(data[i : i + step]), self.type_) for i in range(0, len(data), step)]
        update = self.update
        old = b.atomic(space, address, lambda *values: update(b, *values), operands, where)
        return b.split(b.bitcast(old, f"i{self.bits}"))


def _compare_swap(b: Builder, old: Value, new: Value, expected: Value) -> Value:
    """The data registers hold the new value, then the expected one."""
    return b.select(b.icmp("eq", old, expected), new, old)


def _compare_swap_float(b: Builder, old: Value, new: Value, expected: Value) -> Value:
    return b.select(b.fcmp("oeq", old, expected), new, old)


@curried
def _increment(type_: str, b: Builder, old: Value, limit: Value) -> Value:
    """old >= limit ? 0 : old + 1."""
    return b.select(b.icmp("uge", old, limit), b.const(type_, 0), b.add(old, b.const(type_, 1)))


@curried
def _decrement(type_: str, b: Builder, old: Value, limit: Value) -> Value:
    """old == 0 or old > limit ? limit : old - 1."""
    wraps = b.or_(b.icmp("eq", old, b.const(type_, 0)), b.icmp("ugt", old, limit))
    return b.select(wraps, limit, b.sub(old, b.const(type_, 1)))


@curried
def _float_extreme(predicate: str, b: Builder, old: Value, x: Value) -> Value:
    return b.select(b.or_(b.fcmp(predicate, x, old), b.fcmp("uno", old, old)), x, old)


def _add_of_cdna5(b: Builder, old: Value, x: Value) -> Value:
    """The sum on gfx1250: of two NaNs the operand's, made quiet, and the negative one where infinities cancel.

    (ROCm/rocjitsu-test-corpus, cts/test_cases/gfx1250/memory_isa/memory_atomic_test.cpp.)
    """
    total = b.fadd(x, old)
    was_number = b.and_(b.fcmp("ord", x, old), b.fcmp("uno", total, total))
    return b.select(was_number, b.fneg(total), total)


@curried
def _packed_add(type_: str, b: Builder, old: Value, x: Value) -> Value:
    """Two 16-bit floats in one dword."""

    def add_half(b: Builder, x: Value, y: Value) -> Value:
        return b.zext(from_float(b, b.fadd(to_float(b, x, type_), to_float(b, y, type_)), type_), "i32")

    sixteen = b.const("i32", 16)
    low = add_half(b, b.trunc(old, "i16"), b.trunc(x, "i16"))
    high = add_half(b, b.trunc(b.lshr(old, sixteen), "i16"), b.trunc(b.lshr(x, sixteen), "i16"))
    return b.or_(low, b.shl(high, sixteen))


def to_float(b: Builder, bits: Value, type_: str) -> Value:
    """16 bits as a float to compute with: f16 itself, or bf16 as f32."""
    if type_ == "f16":
        return b.bitcast(bits, "f16")
    return b.bitcast(b.shl(b.zext(bits, "i32"), b.const("i32", 16)), "f32")


def widened(b: Builder, half: Value, type_: str) -> Value:
    """A 16-bit float as f32: of f16 the float, of bf16 its bits."""
    return b.fpext(half, "f32") if type_ == "f16" else to_float(b, half, type_)


def from_float(b: Builder, x: Value, type_: str) -> Value:
    """Back to 16 bits, rounded to nearest even."""
    return b.bitcast(x, "i16") if type_ == "f16" else round_to_bf16(b, x)


def round_to_bf16(b: Builder, x: Value) -> Value:
    """The upper 16 bits of an f32 rounded to nearest even; a NaN keeps its upper bits and becomes quiet."""
    bits = b.bitcast(x, "i32")
    lowest_kept = b.and_(b.lshr(bits, b.const("i32", 16)), b.const("i32", 1))
    rounded = b.add(bits, b.add(lowest_kept, b.const("i32", 0x7FFF)))
    quiet = b.or_(bits, b.const("i32", 0x0040_0000))
    chosen = b.select(b.fcmp("uno", x, x), quiet, rounded)
    return b.trunc(b.lshr(chosen, b.const("i32", 16)), "i16")


_INTEGER: dict[str, Any] = {
    "swap": lambda b, old, x: x,
    "add": lambda b, old, x: b.add(old, x),
    "sub": lambda b, old, x: b.sub(old, x),
    "and": lambda b, old, x: b.and_(old, x),
    "or": lambda b, old, x: b.or_(old, x),
    "xor": lambda b, old, x: b.xor(old, x),
    "smin": minimum("slt"),
    "smax": minimum("sgt"),
    "umin": minimum("ult"),
    "umax": minimum("ugt"),
}

ATOMICS: dict[str, Atomic] = {}
for _type, _suffix in (("i32", ""), ("i64", "_x2")):
    for _name, _update in _INTEGER.items():
        ATOMICS[_name + _suffix] = Atomic(_update, _type)
    ATOMICS["inc" + _suffix] = Atomic(_increment(_type), _type)
    ATOMICS["dec" + _suffix] = Atomic(_decrement(_type), _type)
    ATOMICS["cmpswap" + _suffix] = Atomic(_compare_swap, _type, operand_count=2)
# Before gfx942 the f32 adder of global memory knew no denormals (LLVM, FeatureMemoryAtomicFAddF32DenormalSupport).
for _type in ("f32", "f64"):
    ATOMICS[f"add_{_type}"] = Atomic(lambda b, old, x: b.fadd(old, x), _type)
ATOMICS["min_f64"] = Atomic(_float_extreme("olt"), "f64")
ATOMICS["max_f64"] = Atomic(_float_extreme("ogt"), "f64")
ATOMICS["pk_add_f16"] = Atomic(_packed_add("f16"), "i32")
ATOMICS["pk_add_bf16"] = Atomic(_packed_add("bf16"), "i32")


NEW_ON_RDNA = {
    "cond_sub_u32": Atomic(lambda b, old, x: b.select(b.icmp("uge", old, x), b.sub(old, x), old), "i32"),
    "sub_clamp_u32": Atomic(lambda b, old, x: b.select(b.icmp("uge", old, x), b.sub(old, x), b.const("i32", 0)), "i32"),
    "min_num_f32": Atomic(extreme_number("f32", maximum=False), "f32"),
    "max_num_f32": Atomic(extreme_number("f32", maximum=True), "f32"),
}
NEW_ON_RDNA3 = {
    "cmpswap_f32": Atomic(_compare_swap_float, "f32", operand_count=2),
    "min_f32": Atomic(_float_extreme("olt"), "f32"),
    "max_f32": Atomic(_float_extreme("ogt"), "f32"),
}
"""Atomics that RDNA 4 does not have, or has with other rules for NaNs."""
_ADD_OF_CDNA5 = {f"add_{type_}": Atomic(_add_of_cdna5, type_) for type_ in ("f32", "f64")}
ATOMICS_OF_CDNA5 = ATOMICS | NEW_ON_RDNA | _ADD_OF_CDNA5
ATOMICS_OF_RDNA = {name: atomic for name, atomic in ATOMICS.items() if not name.endswith("_f64")} | NEW_ON_RDNA
"""The atomics of RDNA 4, of integers, f32, and pairs of f16 and bf16."""
