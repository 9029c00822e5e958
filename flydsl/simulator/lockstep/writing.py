"""Result writers of the lock-step machine, by register file, width, EXEC, and the output modifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flydsl.hsaco.operands import EXEC, Modifiers, Null, Register, Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.isa.table import FIXED
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.waves import row_of

Write = Callable[[Machine, Any], None]


def writers(instruction: Instruction, program: Program) -> list[Write]:
    """One writer per result of the signature. NotImplementedError for an unsupported form."""
    semantics = instruction.semantics
    assert semantics is not None
    explicit = enumerate(instruction.results)
    result: list[Write] = []
    for word in semantics.results:
        if word == "scc":
            result.append(_write_scc)
        elif word in FIXED:
            type_, register = FIXED[word]
            result.append(_plain(register, type_, ignores_exec=False))
        else:
            place, operand = next(explicit)
            result.append(_explicit(instruction, operand.atom, place, word, program))
    return result


def _explicit(instruction: Instruction, atom: Any, place: int, word: str, program: Program) -> Write:
    """place: the number of results before this one."""
    if word == "label":
        return _branch(atom, program)
    if isinstance(atom, Null):
        return lambda m, value: None
    if not isinstance(atom, Register):
        raise NotImplementedError(f"{atom} as a result")
    assert instruction.semantics is not None
    type_ = word.rstrip("~")
    ignores_exec = instruction.semantics.ignores_exec
    modifiers = instruction.modifiers
    if instruction.encoding == "sdwa" and modifiers.text("dst_sel", "DWORD") != "DWORD" and type_ != "mask":
        write = _sdwa(atom, modifiers)
    elif type_ in ("f16", "i16") and (word.endswith("~") or "op_sel" in modifiers.values):
        half = modifiers.bits("op_sel", 8)[len(_explicit_sources(instruction)) + place]
        keep = word.endswith("~") or half == 1
        write = _half(atom, half) if keep else _plain(atom, type_, ignores_exec)
    else:
        write = _plain(atom, type_, ignores_exec)
    return _output_modifiers(write, modifiers) if type_[0] == "f" else write


def _branch(atom: Any, program: Program) -> Write:
    name = atom.name if isinstance(atom, Symbol) else str(getattr(atom, "text", atom))
    if name not in program.labels:
        raise NotImplementedError(f"a branch to {name}")
    target = program.labels[name]
    return lambda m, value: m.branch(value, target)


def _explicit_sources(instruction: Instruction) -> list[Any]:
    return [s for s in instruction.sources if s is not None]


def _plain(register: Register, type_: str, ignores_exec: bool) -> Write:
    if type_ == "mask":
        return _mask(register)
    if type_ == "lanes":
        return _lanes(register)
    if "x" in type_:
        return _tuple(register, type_.split("x")[0], ignores_exec)
    if register.file == "s" and type_ in ("i16", "f16"):
        write = _scalar(register, wide=False)
        return lambda m, value: write(m, value.view(np.uint16).astype(np.uint32))
    if register.file == "s":
        return _scalar(register, wide=type_ in ("i64", "f64"))
    if type_ in ("i64", "f64"):
        return _vector64(register, ignores_exec)
    row = row_of(register)
    if type_ in ("i16", "f16"):
        return lambda m, value: write_row(m, row, value.view(np.uint16), ignores_exec)
    return lambda m, value: write_row(m, row, value.view(np.uint32), ignores_exec)


def write_row(m: Machine, row: int, value: Array, ignores_exec: bool = False) -> None:
    """Write one vector register of the selected waves, in the active lanes."""
    vgpr, selection = m.waves.vgpr, m.selection
    if ignores_exec or (m.lane_enable is None and m.exec_is_full()):
        vgpr[row, selection] = value
        return
    mask = m.exec_mask() if m.lane_enable is None else m.exec_mask() & m.lane_enable
    if isinstance(selection, slice):
        np.copyto(vgpr[row], value, where=mask)
    else:
        vgpr[row, selection] = np.where(mask, value, vgpr[row, selection])


def _vector64(register: Register, ignores_exec: bool) -> Write:
    row = row_of(register)

    def write(m: Machine, value: Array) -> None:
        dwords = np.ascontiguousarray(value).view(np.uint32)
        write_row(m, row, dwords[:, 0::2], ignores_exec)
        write_row(m, row + 1, dwords[:, 1::2], ignores_exec)

    return write


def _scalar(register: Register, *, wide: bool) -> Write:
    first, count = register.first, 2 if wide else 1
    touches_exec = first + count > EXEC and first <= EXEC + 1

    def write(m: Machine, value: Array) -> None:
        if value.shape[1] != 1:
            raise ValueError(f"a value per lane, {value.shape}, for a scalar register")
        m.waves.sgpr[m.selection, first : first + count] = np.ascontiguousarray(value).view(np.uint32)
        if touches_exec:
            m.exec_changed()

    return write


def _lanes(register: Register) -> Write:
    """A writer of the bits of a lane mask, an i64."""
    first, touches_exec = register.first, register.first == EXEC

    def write(m: Machine, value: Array) -> None:
        if value.shape[1] != 1:
            raise ValueError(f"a value per lane, {value.shape}, for a scalar register")
        m.write_lane_bits(first, value)
        if touches_exec:
            m.exec_changed()

    return write


def _mask(register: Register) -> Write:
    write = _lanes(register)

    def write_bits(m: Machine, value: Array) -> None:
        write(m, m.ballot(value if m.lane_enable is None else value & m.lane_enable))

    return write_bits


def _write_scc(m: Machine, value: Array) -> None:
    m.waves.scc[m.selection] = value


def _tuple(register: Register, type_: str, ignores_exec: bool) -> Write:
    width = 2 if type_ == "f64" else 1
    places = range(register.first, register.first + register.count, width)
    parts = [_plain(Register(register.file, first, width), type_, ignores_exec) for first in places]

    def write(m: Machine, values: tuple[Array, ...]) -> None:
        for part, value in zip(parts, values, strict=True):
            part(m, value)

    return write


def _half(register: Register, half: int) -> Write:
    """A writer of 16 bits that leaves the other 16 unchanged."""
    row, shift = row_of(register), np.uint32(16 * half)
    keep = np.uint32(0xFFFF0000 >> (16 * half))

    def write(m: Machine, value: Array) -> None:
        placed = value.view(np.uint16).astype(np.uint32) << shift
        write_row(m, row, (m.waves.vgpr[row, m.selection] & keep) | placed)

    return write


def packed_writer(instruction: Instruction) -> Write:
    """A writer of the two results of packed math: two halves of a register, or two registers."""
    atom, semantics = instruction.results[0].atom, instruction.semantics
    assert semantics is not None
    if not isinstance(atom, Register):
        raise NotImplementedError(f"{atom} as a result")
    word, row = semantics.results[0], row_of(atom)

    def write_halves(m: Machine, pair: tuple[Array, Array]) -> None:
        low, high = (part.view(np.uint16).astype(np.uint32) for part in pair)
        write_row(m, row, low | high << np.uint32(16))

    def write_registers(m: Machine, pair: tuple[Array, Array]) -> None:
        write_row(m, row, pair[0].view(np.uint32))
        write_row(m, row + 1, pair[1].view(np.uint32))

    write = write_halves if word in ("f16", "i16") else write_registers
    if word[0] == "i":
        return write
    clamps = instruction.modifiers.flag("clamp")
    return (lambda m, pair: write(m, (_clamp(m, pair[0]), _clamp(m, pair[1])))) if clamps else write


def _output_modifiers(write: Write, modifiers: Modifiers) -> Write:
    """A writer that applies omod (mul:2, mul:4, div:2), then clamps to [0, 1].

    The machine ignores omod in IEEE mode and where denormal results are kept; else it also makes -0 a +0.
    """
    factor = modifiers.integer("mul", 1) / modifiers.integer("div", 1)
    clamps = modifiers.flag("clamp")
    if factor == 1 and not clamps:
        return write

    def scaled(m: Machine, value: Array) -> None:
        if factor != 1 and m.applies_output_modifiers(value):
            value = m.fmul(value, value.dtype.type(factor)) + value.dtype.type(0)
        write(m, _clamp(m, value) if clamps else value)

    return scaled


def _clamp(m: Machine, value: Array) -> Array:
    zero, one = value.dtype.type(0), value.dtype.type(1)
    clamped = np.where(value > zero, np.where(value > one, one, value), np.where(np.isnan(value), value, zero))
    return np.where(np.isnan(value), zero, clamped) if m.dx10_clamp() else clamped


def _sdwa(register: Register, modifiers: Modifiers) -> Write:
    """A writer into a byte or word of the register; the rest becomes zero or the sign, or is kept."""
    kind, _, number = modifiers.text("dst_sel", "DWORD").partition("_")
    bits = 8 if kind == "BYTE" else 16
    shift = np.uint32(bits * int(number))
    field = np.uint32(((1 << bits) - 1) << int(shift))
    above = np.uint32((0xFFFF_FFFF << (int(shift) + bits)) & 0xFFFF_FFFF)
    unused = modifiers.text("dst_unused", "UNUSED_PAD")
    row = row_of(register)

    def write(m: Machine, value: Array) -> None:
        raw = value.view(f"u{value.dtype.itemsize}").astype(np.uint32)
        placed = (raw << shift) & field
        if unused == "UNUSED_PRESERVE":
            placed = placed | (m.waves.vgpr[row, m.selection] & ~field)
        elif unused == "UNUSED_SEXT":
            negative = (placed >> np.uint32(int(shift) + bits - 1)) != 0
            placed = np.where(negative, placed | above, placed)
        write_row(m, row, placed)

    return write
