"""Fields of encodings that instructions do not read: code that differs in them only does the same.

- The third source of a VOP3 instruction that has two: the assembler leaves it 0, the next version of LLVM has the
  constant 0 there (128), for RDNA and gfx1250.
- The upper half of a literal of 16 bits: the assembler leaves it 0, the next version of LLVM extends the sign.
"""

from __future__ import annotations

import re
import struct

from flydsl.hsaco.instruction_places import PlacedInstructions

_VOP3 = 0b110101
_FIELD, _CONSTANT_0 = 0x1FF << 18, 0x80 << 18
_MODIFIER = re.compile(r"\s\w+:\S+")
_HALF_WORDS = re.compile(r"v_(?!pk_|dot)[a-z]+(?:_[a-z]+)*_[bfiu]16(?:_e32|_e64)?\b(?!.*::).*\b0x[89a-f][0-9a-f]{3}\b")
_SIGN_EXTENSION, _LITERAL_BYTES = b"\xff\xff", 4


def as_assembled(code: bytes, placed: PlacedInstructions) -> bytes:
    """The code with such fields as the assembler has them. placed: the instructions of its listing."""
    result = bytearray(code)
    for text, start, end in placed:
        if code[start:end] == placed.code[start:end]:
            continue
        if end - start >= 2 * _LITERAL_BYTES and _has_two_sources(text):
            first, second = struct.unpack_from("<II", code, start)
            if first >> 26 == _VOP3 and second & _FIELD == _CONSTANT_0:
                struct.pack_into("<I", result, start + 4, second & ~_FIELD)
        if _HALF_WORDS.match(text) and code[end - 2 : end] == _SIGN_EXTENSION:
            result[end - 2 : end] = bytes(2)
    return bytes(result)


def _has_two_sources(text: str) -> bool:
    operands = _MODIFIER.sub("", text).count(",") + 1
    has_carry = "_co_u32" in text.partition(" ")[0]
    return "::" not in text and operands <= (4 if has_carry else 3)
