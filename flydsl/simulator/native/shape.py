"""The shape of an instruction, on which its native handler depends: the instruction without its numbers.

Numbers of registers, constants, offsets and distances go into the record. A handler is generated from the shape
alone, so that it cannot depend on anything that two instructions of the same shape do not share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flydsl.hsaco.operands import (
    SGPR_FILE_SIZE,
    Aperture,
    Immediate,
    Keyword,
    Modifiers,
    ModifierValue,
    Null,
    Operand,
    Register,
    StatusBit,
    Symbol,
)
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.isa import TABLE
from flydsl.simulator.isa.table import HALVES, IMPLICIT, Semantics
from flydsl.simulator.isa.waits_and_hints import wait
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.ir import RecordNumber
from flydsl.simulator.waves import ACCUMULATION_ROW, VECTOR_ROWS, row_of

_OFFSETS = {"offset": layout.OFFSET_SLOT, "offset0": layout.OFFSET_SLOT, "offset1": layout.SECOND_OFFSET_SLOT}
_NO_EFFECT = {"sc0", "sc1", "nt", "glc", "slc", "scc", "th", "scope", "nv"}
"""On caches only; that an atomic returns something is in the entry's name."""
_OFFSET_IS_A_PATTERN = {"ds_swizzle_b32"}


@dataclass(frozen=True)
class OperandShape:
    """An operand without its number. kind: register, immediate, symbol, label, aperture, status, null or keyword.

    file and count are those of a register, text is the name of an aperture or status bit, or the keyword. `slot` is
    where the record has the number, half which half of it if that is not all.
    """

    kind: str
    slot: int
    file: str = ""
    count: int = 1
    text: str = ""
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False
    half: int | None = None


@dataclass(frozen=True)
class Shape:
    """Everything that determines the code of a handler. entry: the name in the table of semantics."""

    entry: str
    encoding: str  # sdwa, dpp or nothing
    results: tuple[OperandShape, ...]
    sources: tuple[OperandShape | None, ...]
    modifiers: tuple[tuple[str, ModifierValue], ...]
    mode_bits: int
    lane_count: int = 64

    @property
    def semantics(self) -> Semantics:
        return TABLE[self.entry]

    @property
    def mode(self) -> FloatMode:
        return FloatMode(self.mode_bits)


class ShapeModifiers(Modifiers):
    """Modifiers whose offsets are fields of the record."""

    def integer(self, name: str, default: int = 0) -> int:
        if name in _OFFSETS and name not in self.values:
            return RecordNumber(_OFFSETS[name])  # type: ignore[return-value]  # it stands for an int
        return super().integer(name, default)


@dataclass
class BoundInstruction:
    """An instruction as a shape and the numbers of its record; `symbols` are the slots that the launch fills."""

    shape: Shape
    slots: list[int] = field(default_factory=lambda: [0] * 7)
    symbols: list[tuple[int, Symbol]] = field(default_factory=list)


def bind(instruction: Instruction, program: Program, mode: FloatMode) -> BoundInstruction:
    """The bound instruction. NotImplementedError for a form that has no native handler."""
    semantics = instruction.semantics
    if semantics is None:
        raise NotImplementedError(instruction.problem)
    entry = semantics.entry
    if semantics.evaluate is wait and program.has_global_atomics and not program.has_locks:
        # Waves in turns would reach atomics, which return what came before, in another order. But what a lock guards,
        # all waves read before one gets far beyond it.
        return BoundInstruction(Shape("buffer_inv", "", (), (), (), mode.bits, instruction.wave_size))
    if semantics.sources == ("...",):
        return BoundInstruction(Shape(entry, "", (), (), (), mode.bits, instruction.wave_size))
    binder = _Binder(instruction, program)
    words = [w for w in semantics.results if w not in IMPLICIT]
    if "::" in instruction.mnemonic:
        results = binder.results_of_pair(instruction.results)
    else:
        results = tuple(binder.operand(o, w, 0) for o, w in zip(instruction.results, words, strict=True))
    sources: list[OperandShape | None] = []
    for operand, word in zip(instruction.sources, semantics.sources, strict=True):
        explicit = sum(s is not None for s in sources)
        sources.append(None if operand is None else binder.operand(operand, word, explicit))
    modifiers = binder.modifiers(entry)
    encoding = next((e for e in ("sdwa", "dpp") if e in instruction.encoding), "")
    shape = Shape(entry, encoding, results, tuple(sources), modifiers, mode.bits, instruction.wave_size)
    return BoundInstruction(shape, binder.slots, binder.symbols)


class _Binder:
    """Assigns the slots of a record, in the order of the operands."""

    def __init__(self, instruction: Instruction, program: Program) -> None:
        self._instruction, self._program = instruction, program
        self.slots = [0] * 7
        self.symbols: list[tuple[int, Symbol]] = []
        self._next = 0
        self._constants: dict[object, int] = {}

    def operand(self, operand: Operand, word: str, explicit: int) -> OperandShape:
        """The shape of an operand. `explicit` counts the sources before this one."""
        slot = self._slot(operand)
        flags = (operand.negate, operand.absolute, operand.sign_extend)
        atom = operand.atom
        if word == "label":
            self.slots[slot] = self._distance(atom)
            return OperandShape("label", slot)
        if isinstance(atom, Register):
            self.slots[slot] = register_offset(atom)
            return OperandShape("register", slot, atom.file, atom.count, "", *flags)
        if isinstance(atom, Immediate):
            self.slots[slot] = self._immediate(atom, word, explicit)
            return OperandShape("immediate", slot, "", 1, "", *flags)
        if isinstance(atom, Symbol):
            self.symbols.append((slot, atom))
            return OperandShape("symbol", slot, "", 1, "", *flags)
        if isinstance(atom, StatusBit):
            return OperandShape("status", slot, "", 1, atom.name, *flags)
        if isinstance(atom, Null):
            return OperandShape("null", slot)
        kind = "aperture" if isinstance(atom, Aperture) else "keyword"
        assert isinstance(atom, (Aperture, Keyword))
        return OperandShape(kind, slot, "", 1, atom.name if isinstance(atom, Aperture) else atom.text, *flags)

    def results_of_pair(self, operands: Sequence[Operand]) -> tuple[OperandShape, ...]:
        """The shapes of the results of two operations, which share a slot: there are up to six sources."""
        shapes = []
        for half, operand in enumerate(operands):
            atom = operand.atom
            assert isinstance(atom, Register)
            self.slots[0] |= register_offset(atom) << 32 * half
            shapes.append(OperandShape("register", 0, atom.file, atom.count, half=half))
        self._next = 1
        return tuple(shapes)

    def _slot(self, operand: Operand) -> int:
        """The next slot, or that of the same constant in a pair of operations, which have a literal between them."""
        is_shared = "::" in self._instruction.mnemonic and isinstance(operand.atom, Immediate)
        if is_shared and operand.atom in self._constants:
            return self._constants[operand.atom]
        slot, self._next = self._next, self._next + 1
        has_offsets = not self._instruction.mnemonic.startswith("v_")
        if slot >= (layout.OPERAND_SLOTS if has_offsets else len(self.slots)):
            raise NotImplementedError("so many operands")
        self._constants[operand.atom] = slot
        return slot

    def modifiers(self, entry: str) -> tuple[tuple[str, ModifierValue], ...]:
        kept = []
        for name, value in self._instruction.modifiers.values.items():
            if name in _OFFSETS and isinstance(value, int) and entry not in _OFFSET_IS_A_PATTERN:
                self.slots[_OFFSETS[name]] = value
            elif name not in _NO_EFFECT:
                kept.append((name, value))
        return tuple(sorted(kept))

    def _immediate(self, atom: Immediate, word: str, explicit: int) -> int:
        type_ = word.rstrip("~").partition("x")[0]
        semantics, modifiers = self._instruction.semantics, self._instruction.modifiers
        assert semantics is not None
        if type_ == "imm":
            if isinstance(atom.value, float):
                raise NotImplementedError(f"{atom} where a number is expected")
            return atom.value
        if type_ in ("mi", "bmi"):  # "mix" and "bmix"
            narrow = "f16" if type_ == "mi" else "bf16"
            return atom.packed_bits(narrow) if modifiers.bits("op_sel_hi", 3)[explicit] else atom.bits("f32")
        in_parts = semantics.packed or "sdwa" in self._instruction.encoding
        if word in HALVES or (in_parts and f"{type_}x2" in HALVES):
            return atom.packed_bits(type_)
        return atom.bits({"mask": "i64", "offset": "i64", "any": "i32"}.get(type_, type_))

    def _distance(self, atom: object) -> int:
        """Distance in bytes to the record of a branch target."""
        name = atom.name if isinstance(atom, Symbol) else str(getattr(atom, "text", atom))
        if name not in self._program.labels:
            raise NotImplementedError(f"a branch to {name}")
        return layout.RECORD_BYTES * (self._program.labels[name] - self._instruction.index)


def register_offset(register: Register) -> int:
    """Offset of a register in the wave block. NotImplementedError for one beyond its file."""
    size = {"s": SGPR_FILE_SIZE, "a": ACCUMULATION_ROW}.get(register.file, VECTOR_ROWS)
    if register.first + register.count > size:
        raise NotImplementedError(f"register {register.file}{register.first + register.count - 1}")
    if register.file == "s":
        return 4 * register.first
    return layout.Wave.vgpr.offset + layout.ROW_BYTES * row_of(register)
