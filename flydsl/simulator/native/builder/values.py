"""Arithmetic of the builder as LLVM IR: integers, conversions, and the part that floats share with them.

What a value's bits are is the same as in `lockstep.values`, operation by operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.simulator.native.builder.ir import Body, LlvmValue, RecordNumber, constant, scalar_type, vector_type
from flydsl.simulator.native.layout import slot_offset

_INTEGER_OF = {"f16": "i16", "f32": "i32", "f64": "i64"}


def bits_of(type_: str) -> int:
    return int(type_[1:])


class NativeValues:
    """The part of `Builder` that only computes. `body` is the handler that grows; lane_count: the lanes of a wave."""

    def __init__(self, lane_count: int) -> None:
        self.body = Body()
        self.lane_count = lane_count

    # --- making values

    def const(self, type_: str, value: int | float | RecordNumber) -> LlvmValue:
        if isinstance(value, RecordNumber):
            return self._field(type_, value)
        return constant(type_, value)

    def _field(self, type_: str, field: RecordNumber) -> LlvmValue:
        text = self.body.load("i64", self.body.pointer("%record", slot_offset(field.slot)))
        for operation, number in field.steps:
            text = self.body.emit(f"{operation} i64 {text}, {number}")
        wide = LlvmValue(text, "i64", 0)
        return wide if type_ == "i64" else self.trunc(wide, type_)

    def broadcast(self, x: LlvmValue) -> LlvmValue:
        """The same number in every lane."""
        if x.lanes:
            return x
        type_ = vector_type(x.type, self.lane_count)
        if x.is_constant:
            return LlvmValue(f"splat ({scalar_type(x.type)} {x.text})", x.type, self.lane_count, True)
        single, mask = self.body.emit(f"insertelement {type_} poison, {x}, i64 0"), vector_type("i32", self.lane_count)
        every = self.body.emit(f"shufflevector {type_} {single}, {type_} poison, {mask} zeroinitializer")
        return LlvmValue(every, x.type, self.lane_count)

    def alike(self, *values: LlvmValue) -> tuple[LlvmValue, ...]:
        """The values, all per lane if any is."""
        if any(v.lanes for v in values):
            return tuple(map(self.broadcast, values))
        return values

    def _binary(self, operation: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        x, y = self.alike(x, y)
        return LlvmValue(self.body.emit(f"{operation} {x}, {y.text}"), x.type, x.lanes)

    def _convert(self, operation: str, x: LlvmValue, type_: str) -> LlvmValue:
        if x.type == type_:
            return x
        target = vector_type(type_, x.lanes) if x.lanes else scalar_type(type_)
        return LlvmValue(self.body.emit(f"{operation} {x} to {target}"), type_, x.lanes)

    def intrinsic(self, name: str, x: LlvmValue, *more: LlvmValue) -> LlvmValue:
        """An LLVM intrinsic from some operands of one type to a result of the same."""
        x, *others = self.alike(x, *more)
        suffix = f"v{x.lanes}{x.type}" if x.lanes else x.type
        return LlvmValue(self.body.call(x.llvm_type, f"llvm.{name}.{suffix}", x, *others), x.type, x.lanes)

    # --- conversions

    def bitcast(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._convert("bitcast", x, type_)

    def trunc(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._convert("trunc", x, type_)

    def zext(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._convert("zext", x, type_)

    def sext(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._convert("sext", x, type_)

    def fptosi(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._saturating("fptosi", x, type_)

    def fptoui(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._saturating("fptoui", x, type_)

    def _saturating(self, operation: str, x: LlvmValue, type_: str) -> LlvmValue:
        """A saturating conversion. An f16 goes through f32: LLVM's own conversions are wrong on some CPUs."""
        x = self._convert("fpext", x, "f32") if x.type == "f16" else x
        result = LlvmValue("", type_, x.lanes).llvm_type
        prefix = f"v{x.lanes}" if x.lanes else ""
        name = f"llvm.{operation}.sat.{prefix}{type_}.{prefix}{x.type}"
        return LlvmValue(self.body.call(result, name, x), type_, x.lanes)

    def join(self, dwords: Sequence[LlvmValue]) -> LlvmValue:
        if len(dwords) == 1:
            return dwords[0]
        low, high = (self.zext(d, "i64") for d in dwords)
        return self.or_(low, self.shl(high, constant("i64", 32)))

    def split(self, x: LlvmValue) -> tuple[LlvmValue, ...]:
        if x.type == "i32":
            return (x,)
        return self.trunc(x, "i32"), self.trunc(self.lshr(x, constant("i64", 32)), "i32")

    # --- integers

    def add(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("add", x, y)

    def sub(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("sub", x, y)

    def mul(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("mul", x, y)

    def and_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("and", x, y)

    def or_(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("or", x, y)

    def xor(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self._binary("xor", x, y)

    def not_(self, x: LlvmValue) -> LlvmValue:
        return self.xor(x, constant(x.type, -1 if x.type != "i1" else 1))

    def shl(self, x: LlvmValue, amount: LlvmValue) -> LlvmValue:
        return self._binary("shl", x, amount)

    def lshr(self, x: LlvmValue, amount: LlvmValue) -> LlvmValue:
        return self._binary("lshr", x, amount)

    def ashr(self, x: LlvmValue, amount: LlvmValue) -> LlvmValue:
        return self._binary("ashr", x, amount)

    def ctpop(self, x: LlvmValue) -> LlvmValue:
        return self.intrinsic("ctpop", x)

    def ctlz(self, x: LlvmValue) -> LlvmValue:
        return self._count_zeros("ctlz", x)

    def cttz(self, x: LlvmValue) -> LlvmValue:
        return self._count_zeros("cttz", x)

    def _count_zeros(self, name: str, x: LlvmValue) -> LlvmValue:
        suffix = f"v{x.lanes}{x.type}" if x.lanes else x.type
        return LlvmValue(self.body.call(x.llvm_type, f"llvm.{name}.{suffix}", x, "i1 false"), x.type, x.lanes)

    def bitreverse(self, x: LlvmValue) -> LlvmValue:
        return self.intrinsic("bitreverse", x)

    def icmp(self, predicate: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        x, y = self.alike(x, y)
        return LlvmValue(self.body.emit(f"icmp {predicate} {x}, {y.text}"), "i1", x.lanes)

    def select(self, condition: LlvmValue, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        condition, x, y = self.alike(condition, x, y)
        return LlvmValue(self.body.emit(f"select {condition}, {x}, {y}"), x.type, x.lanes)

    # --- floats as bits

    def integer_bits(self, x: LlvmValue) -> LlvmValue:
        """A float as the integer of its width."""
        return self.bitcast(x, _INTEGER_OF[x.type])

    def fneg(self, x: LlvmValue) -> LlvmValue:
        bits = self.integer_bits(x)
        return self.bitcast(self.xor(bits, constant(bits.type, 1 << (bits_of(x.type) - 1))), x.type)

    def fabs(self, x: LlvmValue) -> LlvmValue:
        bits = self.integer_bits(x)
        return self.bitcast(self.and_(bits, constant(bits.type, (1 << (bits_of(x.type) - 1)) - 1)), x.type)

    def copysign(self, magnitude: LlvmValue, sign: LlvmValue) -> LlvmValue:
        bits, sign_bit = self.integer_bits(sign), 1 << (bits_of(sign.type) - 1)
        of_sign = self.and_(bits, constant(bits.type, sign_bit))
        return self.bitcast(self.or_(self.integer_bits(self.fabs(magnitude)), of_sign), magnitude.type)

    def float_op(self, operation: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        """A float operation of the host: rounded once, to nearest even, denormals kept."""
        return self._binary(operation, x, y)

    def float_compare(self, predicate: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        x, y = self.alike(x, y)
        return LlvmValue(self.body.emit(f"fcmp {predicate} {x}, {y.text}"), "i1", x.lanes)

    def float_round(self, x: LlvmValue) -> LlvmValue:
        """x rounded to an integral value, ties to even."""
        return self.intrinsic("roundeven", x)

    def is_nan(self, x: LlvmValue) -> Any:
        return self.float_compare("uno", x, x)
