"""Operand readers of the lock-step machine, by register file, width, and the modifiers of each encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flydsl.hsaco.operands import Aperture, Immediate, Keyword, Modifiers, Operand, Register, StatusBit, Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.isa.atomics import widened
from flydsl.simulator.isa.dpp import lane_pattern
from flydsl.simulator.isa.table import FIXED, HALVES
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.lockstep.values import DTYPES, constant
from flydsl.simulator.waves import row_of

Read = Callable[[Machine], Any]

_SDWA_SOURCES = ("src0_sel", "src1_sel")
_MOST = 8  # operands of an instruction


def reader(instruction: Instruction, position: int, program: Program) -> Read:
    """The reader of the source at `position` of the signature. NotImplementedError for an unsupported form."""
    semantics = instruction.semantics
    assert semantics is not None
    word, operand = semantics.sources[position], instruction.sources[position]
    if word == "modifiers":
        modifiers = instruction.modifiers
        return lambda m: modifiers
    if word == "scc":
        return lambda m: m.waves.scc[m.selection]
    if word in ("dst", "dst1"):
        which = int(word == "dst1")
        return _destination(instruction, which, program)
    if word in FIXED:
        type_, register = FIXED[word]
        return read_plain(register, type_, program)
    assert operand is not None
    if isinstance(operand.atom, Symbol):
        return _symbol(operand.atom, instruction, program)
    explicit = sum(s is not None for s in instruction.sources[:position])
    return _modified(instruction, operand, word, explicit, program)


def _destination(instruction: Instruction, which: int, program: Program) -> Read:
    """A reader of what a result's registers have before: of 16 bits, those that are written."""
    assert instruction.semantics is not None
    atom, word = instruction.results[which].atom, instruction.semantics.results[which].rstrip("~")
    half = instruction.modifiers.bits("op_sel", _MOST)[sum(s is not None for s in instruction.sources) + which]
    if word in ("f16", "i16") and half and isinstance(atom, Register):
        return _half(_raw32(atom), word, 1)
    return read_plain(atom, word, program)


def read_plain(atom: Any, word: str, program: Program) -> Read:
    """Read registers or a constant as the word's type, no modifiers."""
    if word == "imm":
        return _constant_int(atom)
    if word == "register":
        if not isinstance(atom, Register) or atom.file != "v":
            raise NotImplementedError(f"{atom} as a register with an index")
        return lambda m: atom
    if word == "word":
        return _constant_text(atom)
    if word == "offset":
        return _offset(atom, program)
    if word == "any":
        return _by_register_count(atom, program)
    if "x" in word:
        return _tuple(atom, word, program)
    if isinstance(atom, Immediate):
        return _immediate(atom, word)
    if isinstance(atom, Aperture):
        return _aperture(atom.name, word)
    if isinstance(atom, StatusBit):
        return _status_bit(atom, word)
    if not isinstance(atom, Register):
        raise NotImplementedError(f"{atom} as {word}")
    if word == "mask":
        return _mask(atom)
    if word == "lanes":
        return lambda m: m.lane_bits(atom.first)
    raw = _raw64(atom) if word in ("i64", "f64") else _raw32(atom)
    if word in ("i32", "i64"):
        return raw
    if word in ("f16", "i16", "bfloat"):
        return _half(raw, _bits_type(word), 0)
    dtype = DTYPES[word]
    return lambda m: raw(m).view(dtype)


def _bits_type(word: str) -> str:
    """The type of a word's values: a bf16 is its bits."""
    return "i16" if word == "bfloat" else word


def _aperture(name: str, word: str) -> Read:
    if word == "i32" and name.endswith(("_lo", "_hi")):
        which = int(name.endswith("_hi"))
        return lambda m: m.split(m.aperture(name))[which]
    if not name.endswith(("_base", "_limit", "_base_lo")) or word != "i64":
        raise NotImplementedError(f"{name} as {word}")
    return lambda m: m.aperture(name)


def _status_bit(bit: StatusBit, word: str) -> Read:
    raw = _raw_status(bit)
    if word in ("f16", "i16"):
        return _half(raw, word, 0)
    if word in ("i64", "f64"):
        return lambda m: raw(m).astype(np.uint64).view(DTYPES[word])
    if word not in ("i32", "f32"):
        raise NotImplementedError(f"{bit.name} as {word}")
    return lambda m: raw(m).view(DTYPES[word])


def _raw_status(bit: StatusBit) -> Read:
    """A reader of a status bit as a dword."""
    if bit.register is None:
        return lambda m: m.waves.scc[m.selection].astype(np.uint32)
    first = bit.register
    return lambda m: (m.lane_bits(first) == 0).astype(np.uint32)


def _raw(atom: Any, type_: str) -> Read:
    """A reader of a dword from which SDWA or op_sel takes parts; a constant is one of `type_`."""
    if isinstance(atom, Immediate):
        value = constant("i32", atom.packed_bits(type_) if type_ in ("f16", "i16", "bf16") else atom.bits(type_))
        return lambda m: value
    if isinstance(atom, StatusBit):
        return _raw_status(atom)
    if not isinstance(atom, Register):
        raise NotImplementedError(f"a part of {atom}")
    return _raw32(atom)


def _raw32(register: Register) -> Read:
    first = register.first
    if register.file == "s":
        return lambda m: m.waves.sgpr[m.selection, first : first + 1]
    row = row_of(register)
    return lambda m: m.waves.vgpr[row, m.selection]


def _raw64(register: Register) -> Read:
    first = register.first
    if register.file == "s":
        return lambda m: np.ascontiguousarray(m.waves.sgpr[m.selection, first : first + 2]).view(np.uint64)
    row = row_of(register)

    def read(m: Machine) -> Array:
        both = np.empty((m.selected_count, m.waves.vgpr.shape[2], 2), np.uint32)
        both[..., 0] = m.waves.vgpr[row, m.selection]
        both[..., 1] = m.waves.vgpr[row + 1, m.selection]
        return both.view(np.uint64)[..., 0]

    return read


def _half(raw: Read, type_: str, half: int) -> Read:
    dtype = DTYPES[type_]
    return lambda m: np.ascontiguousarray(raw(m)).view(np.uint16)[:, half::2].view(dtype)


def _mask(register: Register) -> Read:
    first = register.first
    return lambda m: m.mask_bits(m.lane_bits(first))


def _immediate(atom: Immediate, word: str) -> Read:
    if word == "mask":
        lanes = np.array([[(atom.bits("i64") >> lane) & 1 for lane in range(64)]], np.bool_)
        return lambda m: lanes[:, : m.lane_count]
    if word == "bfloat":
        bits = constant("i16", atom.bits(word))
        return lambda m: bits
    value = constant("i" + word[1:], atom.bits(word)).view(DTYPES[word])
    return lambda m: value


def _constant_int(atom: Any) -> Read:
    if not isinstance(atom, Immediate) or isinstance(atom.value, float):
        raise NotImplementedError(f"{atom} where a number is expected")
    value = atom.value
    return lambda m: value


def _constant_text(atom: Any) -> Read:
    text = atom.text if isinstance(atom, Keyword) else atom
    return lambda m: text


def _by_register_count(atom: Any, program: Program) -> Read:
    if isinstance(atom, Keyword) and atom.text == "off":
        return lambda m: None
    count = atom.count if isinstance(atom, Register) else 1
    word = {1: "i32", 2: "i64"}.get(count, f"i32x{count}")
    return read_plain(atom, word, program)


def _offset(atom: Any, program: Program) -> Read:
    if isinstance(atom, Immediate):
        return _immediate(atom, "i64")
    narrow = read_plain(atom, "i32", program)
    return lambda m: narrow(m).astype(np.uint64)


def _tuple(atom: Any, word: str, program: Program) -> Read:
    """A reader of `i32x4` (that many dwords) or `f64x4` (that many register pairs). A constant is every element."""
    type_, count_text = word.split("x")
    count, width = int(count_text), 2 if type_ == "f64" else 1
    if isinstance(atom, Immediate):
        value = _immediate(atom, type_)
        return lambda m: (value(m),) * count
    if not isinstance(atom, Register) or atom.count != count * width:
        raise NotImplementedError(f"{atom} as {word}")
    parts = [read_plain(Register(atom.file, atom.first + width * i, width), type_, program) for i in range(count)]
    return lambda m: tuple(part(m) for part in parts)


def _symbol(symbol: Symbol, instruction: Instruction, program: Program) -> Read:
    type_ = "i64" if symbol.relocation.endswith("rel64") else "i32"
    return lambda m: constant(type_, m.symbol_value(symbol, instruction.index))


# --- modifiers


def _modified(instruction: Instruction, operand: Operand, word: str, explicit: int, program: Program) -> Read:
    """A reader with modifiers. `explicit` counts the operands before this one: op_sel has one entry for each."""
    modifiers = instruction.modifiers
    if word in ("mix", "bmix"):
        return _mix(instruction, operand, explicit, program, "f16" if word == "mix" else "bf16")
    if word in HALVES:
        return _both_halves(instruction, operand, word.removesuffix("x2"), explicit)
    if instruction.encoding == "sdwa":
        read = _sdwa(instruction, operand, word, explicit)
    elif word in ("f16", "i16", "bfloat") and "op_sel" in modifiers.values and isinstance(operand.atom, Register):
        read = _half(_raw32(operand.atom), _bits_type(word), modifiers.bits("op_sel", _MOST)[explicit])
    else:
        read = read_plain(operand.atom, word, program)
    if "dpp" in instruction.encoding and explicit == 0:
        read = _dpp(read, instruction)
    if "x" in word:  # registers whose modifiers are for the semantics
        return read
    return _signs(read, operand.negate != _negates_whole(modifiers, explicit), operand.absolute, word)


def _negates_whole(modifiers: Modifiers, explicit: int) -> bool:
    """True if neg_lo is the sign of a VOP3P operand without halves; neg_hi is then ignored. (LLVM sets both.)"""
    return modifiers.bits("neg_lo", _MOST)[explicit] == 1


def _signs(read: Read, negate: bool, absolute: bool, word: str) -> Read:
    if not (negate or absolute):
        return read
    if word in ("bf16", "bfloat"):
        kept, sign = np.uint16(0x7FFF if absolute else 0xFFFF), np.uint16(0x8000 if negate else 0)
        return lambda m: read(m) & kept ^ sign
    if word[0] != "f":
        raise NotImplementedError(f"negation of an operand of type {word}")
    if absolute and negate:
        return lambda m: -np.abs(read(m))
    if absolute:
        return lambda m: np.abs(read(m))
    return lambda m: -read(m)


def half_readers(instruction: Instruction, position: int, program: Program) -> tuple[Read, Read]:
    """The two readers of a packed (VOP3P) operand: for the low and for the high result."""
    semantics = instruction.semantics
    assert semantics is not None
    word, operand = semantics.sources[position], instruction.sources[position]
    modifiers = instruction.modifiers
    if word == "modifiers":
        return (lambda m: modifiers,) * 2
    if word == "dst":
        destination = instruction.results[0].atom
        return _packed_part(destination, semantics.results[0], 0), _packed_part(destination, semantics.results[0], 1)
    assert operand is not None
    return _selected_halves(instruction, operand, word, sum(s is not None for s in instruction.sources[:position]))


def _selected_halves(instruction: Instruction, operand: Operand, word: str, explicit: int) -> tuple[Read, Read]:
    """Readers of the halves that op_sel and op_sel_hi choose, negated by neg_lo and neg_hi. DPP moves lanes before."""
    modifiers = instruction.modifiers
    if instruction.encoding == "sdwa":
        raise NotImplementedError("sdwa operand of packed math")
    moves = "dpp" in instruction.encoding and explicit == 0
    halves = modifiers.bits("op_sel", _MOST)[explicit], modifiers.bits("op_sel_hi", _MOST, default=1)[explicit]
    negated = modifiers.bits("neg_lo", _MOST)[explicit], modifiers.bits("neg_hi", _MOST)[explicit]
    low, high = (
        _signs(_packed_part(operand.atom, word, half, instruction if moves else None), bool(negate), False, word)
        for half, negate in zip(halves, negated, strict=True)
    )
    return low, high


def _packed_part(atom: Any, word: str, half: int, moved_by: Instruction | None = None) -> Read:
    """A reader of a part. `moved_by`: a DPP instruction whose first operand this is."""
    if word in ("f16", "i16", "bf16"):
        raw = _raw(atom, word)
        return _half(_dpp(raw, moved_by) if moved_by else raw, "i16" if word == "bf16" else word, half)
    raw = _raw(atom.part(half) if isinstance(atom, Register) else atom, word)  # a constant is both of them
    dtype = DTYPES[word]
    return lambda m: raw(m).view(dtype)


def _both_halves(instruction: Instruction, operand: Operand, type_: str, explicit: int) -> Read:
    low, high = _selected_halves(instruction, operand, type_, explicit)
    return lambda m: (low(m), high(m))


def _mix(instruction: Instruction, operand: Operand, explicit: int, program: Program, narrow: str) -> Read:
    """A reader for v_fma_mix: op_sel_hi marks the operand as a narrow float, op_sel selects its half; neg and abs as
    usual."""
    modifiers = instruction.modifiers
    if modifiers.bits("op_sel_hi", _MOST)[explicit]:
        half = _packed_part(operand.atom, narrow, modifiers.bits("op_sel", _MOST)[explicit])
        return _signs(lambda m: widened(m, half(m), narrow), operand.negate, operand.absolute, "f32")
    return _signs(read_plain(operand.atom, "f32", program), operand.negate, operand.absolute, "f32")


def _sdwa(instruction: Instruction, operand: Operand, word: str, explicit: int) -> Read:
    """A reader of a byte or word of a register or constant, extended to 32 bits."""
    if word == "mask":
        assert isinstance(operand.atom, Register)
        return _mask(operand.atom)
    if word not in ("i32", "f32", "i16", "f16"):
        raise NotImplementedError(f"sdwa operand {operand.atom} as {word}")
    raw = _raw(operand.atom, word)
    kind, _, number = instruction.modifiers.text(_SDWA_SOURCES[explicit], "DWORD").partition("_")
    selected = raw if kind == "DWORD" else _part_of_dword(raw, kind, int(number), operand.sign_extend)
    if word in ("f16", "i16"):
        return _half(selected, word, 0)
    dtype = DTYPES[word]
    return lambda m: selected(m).view(dtype)


def _part_of_dword(raw: Read, kind: str, number: int, sign_extend: bool) -> Read:
    dtype = np.dtype(np.uint8 if kind == "BYTE" else np.uint16)
    step = 4 // dtype.itemsize
    source = np.dtype(dtype.str.replace("u", "i")) if sign_extend else dtype

    def read(m: Machine) -> Array:
        part = np.ascontiguousarray(raw(m)).view(source)[:, number::step]
        return part.astype(np.int32 if sign_extend else np.uint32).view(np.uint32)

    return read


def _dpp(read: Read, instruction: Instruction) -> Read:
    pattern = lane_pattern(instruction.modifiers, instruction.wave_size)

    def moved(m: Machine) -> Array:
        value = np.broadcast_to(read(m), (m.selected_count, pattern.source.size))
        valid = pattern.in_range if pattern.fetches_inactive else pattern.in_range & m.exec_mask()[:, pattern.source]
        m.lane_enable = pattern.enabled if pattern.bound_control else pattern.enabled & valid
        taken = value[:, pattern.source]
        return np.where(valid, taken, taken.dtype.type(0)) if pattern.bound_control else taken

    return moved
