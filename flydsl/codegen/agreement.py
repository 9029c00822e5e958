"""Check that an object holds exactly the instructions of a listing that another run of LLVM's back end wrote.

With the feature `dumpcode` an object has a section with the text and bytes of each instruction that it holds. The
targets of branches are missing there; the bytes of `.text` have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flydsl.hsaco import HsacoError, read_contents, read_symbols

DISASSEMBLY = ".AMDGPU.disasm"

# A listing's instructions begin with a tab and a letter, directives with a tab and a point. Its labels are what can be
# jumped to, and the names of functions.
_LINE = re.compile(r'^(?:\t(?P<instruction>[a-z][^;\n]*)|"?(?P<label>[^\s":;]+)"?:)', re.M)
_DISASSEMBLED = re.compile(r"^\t([a-z][^;\n]*); ([0-9A-F ]+)$", re.M)
_LOCAL_LABEL = re.compile(r"\.L[\w$.]+")
_BRANCH = re.compile(r"s_c?branch\w* (\.L[\w$.]+)")
# A number in an instruction's last word; those after a colon are fields. Of operands of 16 bits LLVM 22.1 fills the
# other half of the word with the sign now and then, which no listing says.
_LITERAL = re.compile(r"v_\w+_[biuf]16\w* .*(?<=[ ,])0x([0-9a-f]+)\b")
_HEX_DIGITS, _WORD_BYTES = 8, 4


def agrees(listing: str, obj: bytes) -> bool:
    """True if the object has exactly the instructions and branches of the listing."""
    try:
        contents, symbols = read_contents(obj), read_symbols(obj)
    except HsacoError:
        return False
    text = contents.sections.get(".text", b"")
    held = _DISASSEMBLED.findall(contents.sections.get(DISASSEMBLY, b"").decode("utf-8", "replace"))
    return _agrees(listing, iter(held), text, symbols)


def _agrees(listing: str, held: Iterator[tuple[str, str]], text: bytes, symbols: dict[str, int]) -> bool:
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    offset = 0
    for line in _LINE.finditer(listing):
        label, instruction = line["label"], line["instruction"]
        if label:
            offset = symbols.get(label, offset)
            labels[label] = offset
            continue
        said, code = next(held, ("", ""))
        if _LOCAL_LABEL.sub('""', instruction.rstrip()) != said.rstrip():
            return False
        if (literal := _LITERAL.match(instruction)) and int(literal[1], 16) != int(code[-_HEX_DIGITS:], 16):
            return False
        if branch := _BRANCH.match(instruction):
            branches.append((offset, branch[1]))
        offset += (len(code) + 1) // (_HEX_DIGITS + 1) * _WORD_BYTES
    return next(held, None) is None and all(labels.get(to) == _target(text, at) for at, to in branches)


def _target(text: bytes, at: int) -> int:
    """Offset of the target of a branch: its lower half counts words from the next instruction."""
    words = int.from_bytes(text[at : at + 2], "little", signed=True)
    return at + _WORD_BYTES + words * _WORD_BYTES
