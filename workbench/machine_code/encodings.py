"""The bytes of each instruction.

The listing does not have them. It is assembled once more with a label on both sides of every instruction, which are
looked up in the object; so the bytes are right for every encoding of every GPU.
"""

from __future__ import annotations

from functools import lru_cache

from flydsl.codegen import CodeObject
from flydsl.hsaco import read_hsaco
from flydsl.hsaco.assembler import AssemblerError, NoAssemblerError, assemble
from flydsl.hsaco.elf import read_contents, read_symbols
from flydsl.hsaco.listing import read_listing
from flydsl.hsaco.same_code import processor

_BEFORE, _AFTER = "__flydsl_before_", "__flydsl_after_"
_WORD_BYTES = 4


@lru_cache(maxsize=8)
def encodings(code: CodeObject) -> tuple[bytes, ...]:
    """The bytes of every instruction of a code object's listing, in order; empty if there is no assembler.

    Those of addresses that the linker fills in are taken from the code object.
    """
    instructions = read_listing(code.listing).instructions
    lines = code.listing.splitlines()
    for index, instruction in enumerate(instructions):
        at = instruction.line - 1
        lines[at] = f"{_BEFORE}{index}:\n{lines[at]}\n{_AFTER}{index}:"
    try:
        built = assemble("\n".join(lines) + "\n", processor(read_hsaco(code.hsaco).target))
    except (AssemblerError, NoAssemblerError):
        return ()
    assembled, linked = (read_contents(data).sections.get(".text", b"") for data in (built, code.hsaco))
    text = linked if len(linked) == len(assembled) else assembled
    places = read_symbols(built)
    return tuple(text[places[f"{_BEFORE}{i}"] : places[f"{_AFTER}{i}"]] for i in range(len(instructions)))


def words(encoding: bytes) -> str:
    """Bytes as LLVM writes encodings: dwords, the first one first.

    >>> words(bytes.fromhex("0000d0d1ff020000"))
    'd1d00000 000002ff'
    """
    starts = range(0, len(encoding), _WORD_BYTES)
    return " ".join(encoding[i : i + _WORD_BYTES][::-1].hex() for i in starts)
