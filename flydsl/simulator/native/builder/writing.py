"""Result writers of native code, by register file, width, and the output modifiers.

The forms are those of the lock-step `writing`, which says more about each.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.table import FIXED
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.handler import HandlerBuilder
from flydsl.simulator.native.builder.ir import LlvmValue, constant
from flydsl.simulator.native.shape import OperandShape, Shape, ShapeModifiers


class Writer:
    """Writes the results of one shape."""

    def __init__(self, builder: HandlerBuilder, shape: Shape, modifiers: ShapeModifiers) -> None:
        self._b, self._shape, self._modifiers = builder, shape, modifiers
        self._ignores_exec = shape.semantics.ignores_exec

    def write(self, values: tuple[Any, ...]) -> None:
        explicit = enumerate(self._shape.results)
        for word, value in zip(self._shape.semantics.results, values, strict=True):
            if word == "scc":
                self._b.write_scc(value)
            elif word in FIXED:
                type_, register = FIXED[word]
                self._scalar(self._b.wave_pointer(4 * register.first), type_, value)
            elif word == "label":
                self._b.branch(value, next(explicit)[1].slot)
            else:
                self._explicit(*next(explicit), word, value)

    def write_packed(self, low: LlvmValue, high: LlvmValue) -> None:
        """Write the two results of packed math: two halves of a register, or two registers."""
        result, word = self._shape.results[0], self._shape.semantics.results[0]
        if result.kind != "register":
            raise NotImplementedError(f"{result.text} as a result")
        if word[0] == "f" and self._modifiers.flag("clamp"):
            low, high = self._clamp(low), self._clamp(high)
        b, pointer = self._b, self._b.register_pointer(result)
        if word in ("f16", "i16"):
            low, high = (b.zext(b.bitcast(v, "i16"), "i32") for v in (low, high))
            b.write_row(pointer, b.or_(low, b.shl(high, constant("i32", 16))))
            return
        b.write_row(pointer, b.bitcast(low, "i32"))
        b.write_row(b.body.pointer(pointer, layout.ROW_BYTES), b.bitcast(high, "i32"))

    def _explicit(self, place: int, result: OperandShape, word: str, value: Any) -> None:
        """place: the number of results before this one."""
        if result.kind == "null":
            return
        if result.kind != "register":
            raise NotImplementedError(f"{result.text} as a result")
        type_, modifiers = word.rstrip("~"), self._modifiers
        if type_[0] == "f" and "x" not in type_:
            value = self._output_modifiers(value)
        if self._shape.encoding == "sdwa" and modifiers.text("dst_sel", "DWORD") != "DWORD" and type_ != "mask":
            self._sdwa(result, value)
        elif type_ in ("f16", "i16") and (word.endswith("~") or "op_sel" in modifiers.values):
            half = modifiers.bits("op_sel", 8)[sum(s is not None for s in self._shape.sources) + place]
            if word.endswith("~") or half == 1:
                self._half(result, value, half)
            else:
                self._plain(result, type_, value)
        else:
            self._plain(result, type_, value)

    def _plain(self, result: OperandShape, type_: str, value: Any) -> None:
        if "x" in type_:
            self._tuple(result, type_.split("x")[0], value)
        elif result.file == "s":
            self._scalar(self._b.register_pointer(result), type_, value)
        else:
            self._vector(result, type_, value)

    def _tuple(self, result: OperandShape, type_: str, values: tuple[LlvmValue, ...]) -> None:
        width = 2 if type_ == "f64" else 1
        if result.count != width * len(values):
            raise NotImplementedError(f"{len(values)} results for {result.count} registers")
        for i, value in enumerate(values):
            if result.file == "s":
                self._scalar(self._b.body.pointer(self._b.register_pointer(result), 4 * width * i), type_, value)
            else:
                self._vector(result, type_, value, width * i)

    def _scalar(self, pointer: str, type_: str, value: LlvmValue) -> None:
        b = self._b
        if type_ == "mask":
            value = b.ballot(value if b.lane_enable is None else b.and_(value, b.lane_enable))
        if value.lanes:
            raise NotImplementedError("a value per lane for a scalar register")
        if type_ in ("mask", "lanes"):
            b.store_lane_bits(value, pointer)
            return
        bits = b.bitcast(value, "i" + value.type[1:])
        b.body.store(b.zext(bits, "i32") if type_ in ("i16", "f16") else bits, pointer, 4)

    def _vector(self, result: OperandShape, type_: str, value: LlvmValue, part: int = 0) -> None:
        b = self._b
        if type_ == "mask":
            raise NotImplementedError("a mask in vector registers")
        pointer = b.body.pointer(b.register_pointer(result), layout.ROW_BYTES * part)
        if type_ in ("i64", "f64"):
            low, high = b.split(b.bitcast(value, "i64"))
            b.write_row(pointer, low, self._ignores_exec)
            b.write_row(b.body.pointer(pointer, layout.ROW_BYTES), high, self._ignores_exec)
        else:
            b.write_row(pointer, self._as_dword(value), self._ignores_exec)

    def _as_dword(self, value: LlvmValue) -> LlvmValue:
        b = self._b
        bits = b.bitcast(value, "i" + value.type[1:])
        return b.zext(bits, "i32")

    def _half(self, result: OperandShape, value: LlvmValue, half: int) -> None:
        """Write 16 bits; the other 16 stay unchanged."""
        b, pointer = self._b, self._b.register_pointer(result)
        kept = b.and_(b.load_row(pointer), constant("i32", 0xFFFF0000 >> (16 * half)))
        b.write_row(pointer, b.or_(kept, b.shl(self._as_dword(value), constant("i32", 16 * half))))

    def _sdwa(self, result: OperandShape, value: LlvmValue) -> None:
        b, pointer = self._b, self._b.register_pointer(result)
        kind, _, number = self._modifiers.text("dst_sel", "DWORD").partition("_")
        bits = 8 if kind == "BYTE" else 16
        shift = bits * int(number)
        field = ((1 << bits) - 1) << shift
        placed = b.and_(b.shl(self._as_dword(value), constant("i32", shift)), constant("i32", field))
        unused = self._modifiers.text("dst_unused", "UNUSED_PAD")
        if unused == "UNUSED_PRESERVE":
            placed = b.or_(placed, b.and_(b.load_row(pointer), constant("i32", ~field)))
        elif unused == "UNUSED_SEXT":
            to_top = constant("i32", 32 - shift - bits)
            extended = b.shl(b.ashr(b.shl(placed, to_top), constant("i32", 32 - bits)), constant("i32", shift))
            placed = extended
        b.write_row(pointer, placed)

    def _output_modifiers(self, value: LlvmValue) -> LlvmValue:
        """omod (mul:2, mul:4, div:2), then clamp to [0, 1]."""
        b, modifiers = self._b, self._modifiers
        factor = modifiers.integer("mul", 1) / modifiers.integer("div", 1)
        if factor != 1 and not b.ieee_mode() and not b.keeps_denormal_results(value.type):
            scaled = b.fmul(value, constant(value.type, factor))
            value = b.float_op("fadd", scaled, constant(value.type, 0.0))
        return self._clamp(value) if modifiers.flag("clamp") else value

    def _clamp(self, value: LlvmValue) -> LlvmValue:
        b = self._b
        zero, one, nan = constant(value.type, 0.0), constant(value.type, 1.0), b.is_nan(value)
        upper = b.select(b.float_compare("ogt", value, one), one, value)
        at_rest = zero if b.dx10_clamp() else b.select(nan, value, zero)
        return b.select(b.float_compare("ogt", value, zero), upper, at_rest)
