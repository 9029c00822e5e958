"""Operand readers of native code, by register file, width, and the modifiers of each encoding.

The forms are those of the lock-step `reading`, which says more about each.
"""

from __future__ import annotations

from typing import Any

from flydsl.hsaco.operands import STATUS_BITS
from flydsl.simulator.isa.atomics import widened
from flydsl.simulator.isa.dpp import lane_pattern
from flydsl.simulator.isa.table import FIXED, HALVES
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.handler import HandlerBuilder
from flydsl.simulator.native.builder.ir import LlvmValue, RecordNumber, Registers, constant
from flydsl.simulator.native.shape import OperandShape, Shape, ShapeModifiers

"""Words of a signature that always mean the same register: its type and number."""

_SDWA_SOURCES = ("src0_sel", "src1_sel")
_MOST = 8  # operands of an instruction


class Reader:
    """Reads the sources of one shape into values of a builder."""

    def __init__(self, builder: HandlerBuilder, shape: Shape) -> None:
        self._b, self._shape = builder, shape
        self._semantics = shape.semantics
        self.modifiers = ShapeModifiers(dict(shape.modifiers))

    def read(self, position: int) -> Any:
        """The source at `position` of the signature. NotImplementedError for an unsupported form."""
        word, operand = self._semantics.sources[position], self._shape.sources[position]
        if word == "modifiers":
            return self.modifiers
        if word == "scc":
            return self._b.read_scc()
        if word in ("dst", "dst1"):
            which = int(word == "dst1")
            return self._destination(which)
        if word in FIXED:
            type_, register = FIXED[word]
            return self._scalar(self._b.wave_pointer(4 * register.first), type_)
        assert operand is not None
        return self._modified(operand, word, self._explicit(position))

    def _destination(self, which: int) -> Any:
        """The previous values of a result's registers: of 16 bits, those that are written."""
        operand, word = self._shape.results[which], self._semantics.results[which].rstrip("~")
        half = self.modifiers.bits("op_sel", _MOST)[self._explicit(len(self._shape.sources)) + which]
        if word in ("f16", "i16") and half and operand.kind == "register":
            return self._half(operand, word, 1)
        return self.plain(operand, word)

    def halves(self, position: int) -> tuple[Any, Any]:
        """A packed (VOP3P) operand, for the low and for the high result."""
        word, operand = self._semantics.sources[position], self._shape.sources[position]
        if word == "modifiers":
            return self.modifiers, self.modifiers
        if word == "dst":
            result, type_ = self._shape.results[0], self._semantics.results[0]
            return self._packed_part(result, type_, 0), self._packed_part(result, type_, 1)
        assert operand is not None
        return self._both_halves(operand, word, self._explicit(position))

    def plain(self, operand: OperandShape, word: str) -> Any:
        """Registers or a constant as the word's type, without modifiers."""
        if word == "imm":
            return RecordNumber(operand.slot)
        if word == "register":
            if operand.file != "v":
                raise NotImplementedError(f"{operand.kind} {operand.file} as a register with an index")
            return operand
        if word == "word":
            return operand.text
        if word == "any":
            return self._by_register_count(operand)
        if word == "offset":
            if operand.kind == "immediate":
                return self._b.const("i64", RecordNumber(operand.slot))
            return self._b.zext(self.plain(operand, "i32"), "i64")
        if "x" in word:
            return self._tuple(operand, word)
        if operand.kind == "aperture":
            return self._aperture(operand.text, word)
        if operand.kind == "immediate":
            return self._immediate(operand, word)
        if operand.kind == "symbol":
            return self._b.const("i64" if word == "i64" else "i32", RecordNumber(operand.slot))
        if operand.kind == "status":
            bit = self._status_bit(operand)
            return self._b.bitcast(self._b.zext(bit, "i" + word[1:]), word)
        if operand.kind != "register":
            raise NotImplementedError(f"{operand.text} as {word}")
        return self._register(operand, word)

    def _explicit(self, position: int) -> int:
        return sum(s is not None for s in self._shape.sources[:position])

    # --- registers and constants

    def _status_bit(self, operand: OperandShape) -> LlvmValue:
        register = STATUS_BITS[operand.text]
        if register is None:
            return self._b.read_scc()
        pair = self._scalar(self._b.wave_pointer(4 * register), "lanes")
        return self._b.icmp("eq", pair, constant("i64", 0))

    def _raw(self, operand: OperandShape) -> LlvmValue:
        """A dword from which SDWA or op_sel takes parts."""
        if operand.kind == "immediate":
            return self._b.const("i32", RecordNumber(operand.slot))
        if operand.kind == "status":
            return self._b.zext(self._status_bit(operand), "i32")
        if operand.kind != "register":
            raise NotImplementedError(f"a part of {operand.text}")
        return self._register(operand, "i32")

    def _register(self, operand: OperandShape, word: str, part: int = 0) -> LlvmValue:
        b = self._b
        if operand.file == "s":
            return self._scalar(b.body.pointer(b.register_pointer(operand), 4 * part), word)
        if word == "mask":
            raise NotImplementedError("a mask in vector registers")
        if word in ("i64", "f64"):
            return b.bitcast(b.join([self._row(operand, part), self._row(operand, part + 1)]), word)
        return self._narrow(self._row(operand, part), word)

    def _scalar(self, pointer: str, word: str) -> LlvmValue:
        b = self._b
        if word == "mask":
            return b.mask_bits(b.load_lane_bits(pointer, 4))
        if word == "lanes":
            return b.load_lane_bits(pointer, 4)
        if word in ("i64", "f64"):
            return b.bitcast(LlvmValue(b.body.load("i64", pointer, 4), "i64", 0), word)
        return self._narrow(LlvmValue(b.body.load("i32", pointer, 4), "i32", 0), word)

    def _row(self, operand: OperandShape, part: int) -> LlvmValue:
        return self._b.load_row(self._b.body.pointer(self._b.register_pointer(operand), layout.ROW_BYTES * part))

    def _narrow(self, raw: LlvmValue, word: str) -> LlvmValue:
        """32 bits as the type, from the low half if it is narrower."""
        if word == "bfloat":
            return self._b.trunc(raw, "i16")
        return self._b.bitcast(self._b.trunc(raw, "i16") if word in ("i16", "f16") else raw, word)

    def _immediate(self, operand: OperandShape, word: str) -> LlvmValue:
        field = RecordNumber(operand.slot)
        if word == "mask":
            return self._b.mask_bits(self._b.const("i64", field))
        if word == "bfloat":
            return self._b.const("i16", field)
        return self._b.bitcast(self._b.const("i" + word[1:], field), word)

    def _aperture(self, name: str, word: str) -> LlvmValue:
        if word == "i32" and name.endswith(("_lo", "_hi")):
            return self._b.split(self._b.aperture(name))[int(name.endswith("_hi"))]
        if not name.endswith(("_base", "_limit", "_base_lo")) or word != "i64":
            raise NotImplementedError(f"{name} as {word}")
        return self._b.aperture(name)

    def _by_register_count(self, operand: OperandShape) -> Any:
        if operand.kind == "keyword" and operand.text == "off":
            return None
        return self.plain(operand, {1: "i32", 2: "i64"}.get(operand.count, f"i32x{operand.count}"))

    def _tuple(self, operand: OperandShape, word: str) -> tuple[LlvmValue, ...]:
        type_, count_text = word.split("x")
        count, width = int(count_text), 2 if type_ == "f64" else 1
        if operand.kind == "immediate":
            return (self._immediate(operand, type_),) * count
        if operand.kind != "register" or operand.count != count * width:
            raise NotImplementedError(f"{operand.count} registers as {word}")
        offset = self._b.body.load("i64", self._b.record_pointer(layout.slot_offset(operand.slot)))
        return Registers(offset, (self._register(operand, type_, width * i) for i in range(count)))

    # --- modifiers

    def _modified(self, operand: OperandShape, word: str, explicit: int) -> Any:
        """The operand with modifiers. `explicit` counts the operands before it: op_sel has one entry for each."""
        modifiers = self.modifiers
        if operand.kind == "symbol":
            return self.plain(operand, "i64" if word == "i64" else "i32")
        if word in ("mix", "bmix"):
            return self._mix(operand, explicit, "f16" if word == "mix" else "bf16")
        if word in HALVES:
            return self._both_halves(operand, word.removesuffix("x2"), explicit)
        if self._shape.encoding == "sdwa":
            value = self._sdwa(operand, word, explicit)
        elif word in ("f16", "i16", "bfloat") and "op_sel" in modifiers.values and operand.kind == "register":
            value = self._half(operand, word, modifiers.bits("op_sel", _MOST)[explicit])
        else:
            value = self.plain(operand, word)
        if self._shape.encoding == "dpp" and explicit == 0:
            value = self._dpp(value)
        if "x" in word:  # registers whose modifiers are for the semantics
            return value
        whole = modifiers.bits("neg_lo", _MOST)[explicit] == 1
        negates = operand.negate != whole
        return self._signs(value, negates, operand.absolute, word)

    def _signs(self, value: LlvmValue, negate: bool, absolute: bool, word: str) -> LlvmValue:
        if not (negate or absolute):
            return value
        if word in ("bf16", "bfloat"):
            kept = self._b.and_(value, constant("i16", 0x7FFF)) if absolute else value
            return self._b.xor(kept, constant("i16", 0x8000)) if negate else kept
        if word[0] != "f":
            raise NotImplementedError(f"negation of an operand of type {word}")
        value = self._b.fabs(value) if absolute else value
        return self._b.fneg(value) if negate else value

    def _both_halves(self, operand: OperandShape, type_: str, explicit: int) -> tuple[LlvmValue, LlvmValue]:
        modifiers = self.modifiers
        if self._shape.encoding == "sdwa":
            raise NotImplementedError("sdwa operand of packed math")
        moves = self._shape.encoding == "dpp" and explicit == 0
        which = modifiers.bits("op_sel", _MOST)[explicit], modifiers.bits("op_sel_hi", _MOST, default=1)[explicit]
        negated = modifiers.bits("neg_lo", _MOST)[explicit], modifiers.bits("neg_hi", _MOST)[explicit]
        low, high = (
            self._signs(self._packed_part(operand, type_, half, moves=moves), bool(negate), False, type_)
            for half, negate in zip(which, negated, strict=True)
        )
        return low, high

    def _packed_part(self, operand: OperandShape, word: str, half: int, *, moves: bool = False) -> LlvmValue:
        if word in ("f16", "i16", "bf16"):
            return self._half(operand, "i16" if word == "bf16" else word, half, moves=moves)
        if operand.kind == "register":
            return self._register(operand, word, half)
        return self._b.bitcast(self._raw(operand), word)

    def _half(self, operand: OperandShape, word: str, half: int, *, moves: bool = False) -> LlvmValue:
        """The selected half of an operand. `moves`: by DPP."""
        b = self._b
        raw = self._dpp(self._raw(operand)) if moves else self._raw(operand)
        return self._narrow(b.lshr(raw, constant("i32", 16)) if half else raw, word)

    def _mix(self, operand: OperandShape, explicit: int, narrow: str) -> LlvmValue:
        if self.modifiers.bits("op_sel_hi", _MOST)[explicit]:
            half = self._packed_part(operand, narrow, self.modifiers.bits("op_sel", _MOST)[explicit])
            value = widened(self._b, half, narrow)
        else:
            value = self.plain(operand, "f32")
        return self._signs(value, operand.negate, operand.absolute, "f32")

    def _sdwa(self, operand: OperandShape, word: str, explicit: int) -> LlvmValue:
        if word == "mask":
            return self.plain(operand, word)
        if word not in ("i32", "f32", "i16", "f16"):
            raise NotImplementedError(f"sdwa operand {operand.kind} as {word}")
        raw = self._raw(operand)
        kind, _, number = self.modifiers.text(_SDWA_SOURCES[explicit], "DWORD").partition("_")
        if kind != "DWORD":
            narrow = "i8" if kind == "BYTE" else "i16"
            shifted = self._b.lshr(raw, constant("i32", int(number) * int(narrow[1:])))
            extend = self._b.sext if operand.sign_extend else self._b.zext
            raw = extend(self._b.trunc(shifted, narrow), "i32")
        return self._narrow(raw, word)

    def _dpp(self, value: LlvmValue) -> LlvmValue:
        b, pattern = self._b, lane_pattern(self.modifiers, self._b.lane_count)
        in_range, enabled = (b.constant_mask(m.tolist()) for m in (pattern.in_range, pattern.enabled))
        valid = in_range
        if not pattern.fetches_inactive:
            valid = b.and_(b.permute_constant(b.exec_mask(), pattern.source.tolist()), in_range)
        taken = b.permute_constant(b.broadcast(value), pattern.source.tolist())
        if pattern.bound_control:
            b.lane_enable = None if pattern.enabled.all() else enabled
            return b.select(valid, taken, constant(taken.type, 0))
        b.lane_enable = b.and_(enabled, valid)
        return taken
