"""Registers that were never written, and who read one first: the origin of an undefined value."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flydsl.hsaco.operands import Register, register_name
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction
from flydsl.simulator.isa.table import FIXED, fixed_register
from flydsl.simulator.waves import Waves, row_of


class RegisterHistory:
    """The written registers of the first `count` waves of a batch."""

    def __init__(self, vgpr_is_set: Array, sgpr_is_set: Array) -> None:
        """Start with the registers that are set initially: (rows, count, 64) and (count, 128)."""
        self._vgpr, self._sgpr = vgpr_is_set, sgpr_is_set
        self._reads: dict[int, tuple[Instruction, Register, Array, Array]] = {}

    def note_reads(self, instruction: Instruction, waves: Array, active: Array) -> None:
        """Remember the first instruction that reads each unset register. active: (waves, 64)."""
        if instruction.index in self._reads:
            return
        for register in registers_read(instruction):
            unset = self._unset(register, waves) & active
            if unset.any():
                self._reads[instruction.index] = instruction, register, waves, unset

    def note_writes(self, instruction: Instruction, waves: Array, active: Array) -> None:
        for register in registers_written(instruction):
            if register.file == "s":
                self._sgpr[waves, register.first : register.first + register.count] = True
            else:
                self._vgpr[_rows(register)[:, None], waves] |= active

    def first_reads(self, wave: int, lane: int | None, limit: int = 3) -> tuple[str, ...]:
        """Descriptions of the reads by a lane (or any lane) of a wave, in the order in which they happened."""
        found = []
        for instruction, register, waves, unset in self._reads.values():
            lanes = unset[waves == wave]
            if (lanes if lane is None else lanes[:, lane]).any():
                place = f", {instruction.location}" if instruction.location else ""
                found.append(f"{register_name(register)} in {instruction.listed.text} "
                             f"(ISA line {instruction.listed.line}{place})")  # fmt: skip
        return tuple(found[:limit])

    def _unset(self, register: Register, waves: Array) -> Array:
        """(waves, 64): lanes in which a part of the register is not set."""
        if register.file == "s":
            part = self._sgpr[waves, register.first : register.first + register.count]
            return np.asarray(~part.all(axis=1, keepdims=True))
        return np.asarray(~self._vgpr[_rows(register)[:, None], waves].all(axis=0))


def differing_operands(instruction: Instruction, waves: Waves, copies: Array, lane: int | None) -> tuple[str, ...]:
    """The registers that an instruction reads whose contents differ between waves `copies` (in one lane, or in any)."""
    lanes = slice(None) if lane is None else slice(lane, lane + 1)
    found = []
    for register in registers_read(instruction):
        for part in (register.part(i) for i in range(register.count)):
            values = (
                waves.sgpr[copies, part.first, None] if part.file == "s" else waves.vgpr[row_of(part), copies, lanes]
            )
            if (values != values[0]).any():
                found.append(register_name(part))
    return tuple(dict.fromkeys(found))


def _rows(register: Register) -> Array:
    return row_of(register) + np.arange(register.count)


@cache
def _accumulates(mnemonic: str) -> bool:
    """True if `dst` is an operand; otherwise it is what a partial write keeps."""
    return "mac" in mnemonic or mnemonic.startswith("v_dot")


def registers_read(instruction: Instruction) -> list[Register]:
    semantics, found = instruction.semantics, []
    if semantics is None:
        return []
    for word, operand in zip(semantics.sources, instruction.sources, strict=False):
        if word in FIXED:
            found.append(fixed_register(word, instruction.wave_size))
        elif word == "dst" and _accumulates(semantics.mnemonic):
            found += _registers(instruction.results[:1])
        elif operand is not None and word != "register":
            found += _registers((operand,))
    return found


def registers_written(instruction: Instruction) -> list[Register]:
    semantics = instruction.semantics
    words = [word for word in semantics.results if word in FIXED] if semantics else []
    implicit = [fixed_register(word, instruction.wave_size) for word in words]
    return _registers(instruction.results) + implicit


def _registers(operands: tuple[Any, ...]) -> list[Register]:
    return [operand.atom for operand in operands if isinstance(operand.atom, Register)]
