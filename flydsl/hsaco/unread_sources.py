"""A field that encodings may differ in without a difference: the third source of a VOP3 instruction that has two.

The assembler leaves it 0, the next version of LLVM has the constant 0 there (128), for RDNA and gfx1250. Where an
instruction has a third source, these are a register and a number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from flydsl.hsaco.assembler import AssemblerError, assemble
from flydsl.hsaco.elf import read_contents

_VOP3 = 0b110101
_FIELD = 0x1FF << 18
_CONSTANT_0 = 0x80 << 18
_INSTRUCTION = re.compile(r"^\s*(v_\w+\s+[^;\n]+)", re.MULTILINE)
_MODIFIER = re.compile(r"\s\w+:\S+")


def opcodes(listing: str, gpu: str) -> frozenset[int]:
    """The VOP3 opcodes of a listing's instructions with at most two sources, by assembling these alone."""
    lines = {match[1] for match in _INSTRUCTION.finditer(listing) if _has_two_sources(match[1])}
    try:
        code = read_contents(assemble("\n".join(["k:", *sorted(lines)]), gpu)).sections.get(".text", b"")
    except AssemblerError:
        return frozenset()
    return frozenset(opcode for word in _words(code) if (opcode := _opcode(word)) is not None)


def _has_two_sources(text: str) -> bool:
    operands = _MODIFIER.sub("", text).count(",") + 1
    has_carry = "_co_u32" in text.partition(" ")[0]
    return "::" not in text and operands <= (4 if has_carry else 3)


def are_all_that_differs(one: bytes, other: bytes, of_two_sources: frozenset[int]) -> bool:
    """True if two codes of one length differ in nothing but this field of instructions with these opcodes."""
    if not of_two_sources:
        return False
    before = 0
    for a, b in zip(_words(one), _words(other), strict=True):
        if a != b:
            fields = {a & _FIELD, b & _FIELD}
            if a ^ b != _CONSTANT_0 or fields != {0, _CONSTANT_0} or _opcode(before) not in of_two_sources:
                return False
        before = a
    return True


def _words(code: bytes) -> Iterator[int]:
    return (word for (word,) in struct.iter_unpack("<I", code[: len(code) // 4 * 4]))


def _opcode(word: int) -> int | None:
    """The opcode if this is the first dword of a VOP3 instruction."""
    return word >> 16 & 0x3FF if word >> 26 == _VOP3 else None
