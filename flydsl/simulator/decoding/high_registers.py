"""VGPRs beyond v255 (gfx1250): an instruction names one of 256, and s_set_vgpr_msb says which 256 for each operand.

Its operand has two bits for each of four places of an instruction: from the lowest on src0, src1, src2 and the result.
They are the two upper bits of the numbers of registers there, for all instructions up to the next s_set_vgpr_msb, or
s_setreg_imm32_b32 of MODE, which LLVM makes do both. The former's upper byte is the value before, for debuggers. A
branch takes the state with it; compilers set it to 0 before one, and what differs between a branch and its target is
refused. (LLVM, AMDGPULowerVGPREncoding.cpp, AMDGPUBaseInfo.cpp.)

LLVM writes the full name as a comment after the one that is encoded: `v96 /*v864*/`. `full_names` puts it in its place,
and `resolve` checks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flydsl.hsaco.operands import Immediate, Operand, Register

SET_HIGH_BITS = "s_set_vgpr_msb"
_BANK = 256
_RESULT = 3
_NAME_WITH_COMMENT = re.compile(r"\bv(\d+|\[\d+:\d+\])(\.[lh])? ?/\*v(\d+|\[\d+:\d+\])(\.[lh])?\*/")
_FIRST = re.compile(r"\d+")


def full_names(text: str) -> str:
    """A line of assembly with the full names of registers. ValueError for a comment about another register.

    >>> full_names("v_add_f32_e32 v96 /*v864*/, s0, v[2:3] /*v[258:259]*/")
    'v_add_f32_e32 v864, s0, v[258:259]'
    """
    return _NAME_WITH_COMMENT.sub(_full_name, text) if "/*" in text else text


def _full_name(match: re.Match[str]) -> str:
    encoded, full = (int(_FIRST.findall(name)[0]) for name in (match[1], match[3]))
    if encoded != full % _BANK:
        raise ValueError(f"v{match[3]} is not encoded as v{match[1]}")
    return f"v{match[3]}{match[2] or ''}"


_SETS_MODE = re.compile(r"s_setreg_imm32_b32 hwreg\((?:HW_REG_(?:WAVE_)?MODE|1)\b.*\), *(\w+)$")
_IN_MODE = 12


def high_bits_after(mnemonic: str, operands: Sequence[Operand], text: str, before: int) -> int:
    """The state after an instruction. text: the instruction as it is written.

    One that sets MODE to a constant puts the constant's bits 19:12 in its place, whichever bits it is to set: result,
    src0, src1, src2 from the lowest (LLVM, hasSetregVGPRMSBFixup).
    """
    if mnemonic == SET_HIGH_BITS:
        atom = operands[0].atom if operands else None
        return int(atom.value) & 0xFF if isinstance(atom, Immediate) else before
    if mnemonic == "s_setreg_imm32_b32" and (match := _SETS_MODE.match(text)):
        bits = int(match[1], 0) >> _IN_MODE & 0xFF
        return bits >> 2 | (bits & 3) << 6
    return before


def resolve(row: str, operands: Sequence[Operand], results: int, high_bits: int) -> list[Operand]:
    """The operands of an instruction with the registers that they mean in a state.

    row: the mnemonic in the table. results: how many operands are results. ValueError for a full name of a register
    that the state does not give.
    """
    places = _places(row, results, len(operands))
    return [_resolved(operand, place, high_bits) for operand, place in zip(operands, places, strict=True)]


def _resolved(operand: Operand, place: int | None, high_bits: int) -> Operand:
    register = operand.atom
    if not isinstance(register, Register) or register.file != "v":
        return operand
    bank = 0 if place is None else high_bits >> 2 * place & 3
    first = bank * _BANK + register.first % _BANK
    if register.first not in (first, first % _BANK):
        raise ValueError(f"v{register.first}, which means v{first} after {SET_HIGH_BITS} {high_bits:#x}")
    return operand if first == register.first else replace(operand, atom=replace(register, first=first))


_PLACES_OF_MEMORY: Mapping[str, tuple[int, ...]] = {
    "ds": (0, 1, 2),
    "global": (0, 1, 1),
    "flat": (0, 1, 1),
    "scratch": (0, 1, 1),
    "buffer": (0, 0, 0),
}
"""For each kind of memory access, the places of its sources, in the order of the text."""


def _places(row: str, results: int, count: int) -> Sequence[int | None]:
    """The place of each operand, None for one whose upper bits are 0."""
    family = row.partition("_")[0]
    if "_load_async_to_lds_" in row:  # the address in LDS is encoded as a result
        return [_RESULT, *[0] * count][:count]
    if family == "buffer":  # whose data has the place of a result also where it is stored
        return [_RESULT, *[0] * count][:count]
    if family in _PLACES_OF_MEMORY:
        places = (*_PLACES_OF_MEMORY[family], 2, 2)
        return [*[_RESULT] * results, *places[: count - results]]
    if row.startswith(("v_swap", "v_movreld", "v_movrelsd", "v_permlane16_swap", "v_permlane32_swap")):
        return [_RESULT, *[0] * count][:count]
    if row.startswith("v_wmma_scale"):
        return [_RESULT, 0, 1, 2, None, None][:count]
    return [*[_RESULT] * results, *_sources(row)][:count]


def _sources(row: str) -> list[int | None]:
    return [0, None, 2] if "_fmamk_" in row else [0, 1, 2, 2, 2]
