"""Inline assembly: LLVM copies its text into the listing.

There it is made canonical, the text that LLVM itself would print for the instructions; everything that LLVM decides
(registers by constraints, what moves where, clobbers) is decided as for every other module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from flydsl.arch import Arch
from flydsl.codegen.assemble import assembling
from flydsl.errors import CompileError, SourceLocation
from flydsl.hsaco import assembler
from flydsl.hsaco.listing import read_file, read_loc

# In a line of its own, as LLVM prints it.
_CALL = re.compile(r'\s*(?:%\S+ = )?(?:\w+ )?call\b[^@";]*\basm\b.*[^}\s]$')
_WITH_TEXT = re.compile(r'\basm (?:(?:sideeffect|alignstack|inteldialect|unwind) )*"[^"]')
_TEXT_IN_MESSAGE = re.compile(r"inline asm string: '([^'\n]+)")
_CALL_PLACE = re.compile(r" at line (\d+)$")
_DEBUG_PLACE = re.compile(r"!dbg (!\d+)")
_METADATA_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|([^,)\s]+))')

_START, _END = re.compile(r"\s*;+#ASMSTART\s*"), re.compile(r"\s*;+#ASMEND\s*")
_ASSEMBLER_ERROR = re.compile(r"^[^:\n]*:(\d+):\d+: error: (.+)$", re.M)
_MARK = ".Lblock_of_inline_assembly_"
# The assembler's names for labels such as `1:`, which the listing may have for something else.
_NUMBERED_LABEL = re.compile(r"\.Ltmp(\d+)\b")

_CLOBBERS = re.compile(r"~\{([^}]*)\}")
_SPECIAL = re.compile(r"memory|cc|scc|m0|mode|(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?")
_REGISTERS = re.compile(r"(v|a|s|ttmp)(?:(\d+)|\[(\d+):(\d+)\])")
_COUNTS = {"v": 256, "a": 256, "s": 106, "ttmp": 16}


@dataclass(frozen=True)
class _Block:
    """One inline assembly of a listing: its lines, the index `start` of the first one, and its source location."""

    start: int
    lines: list[str]
    at: SourceLocation | None


def occurs_in(llvm_ir: str) -> bool:
    """True if LLVM IR text has inline assembly that is not empty: an empty one is canonical."""
    return _WITH_TEXT.search(llvm_ir) is not None


def with_places(llvm_ir: str) -> str:
    """LLVM IR text whose calls of inline assembly carry their line number, which LLVM's errors then name."""
    lines = llvm_ir.split("\n")
    return "\n".join(
        f"{line}, !srcloc !{{i64 {number}}}" if _CALL.match(line) and "!srcloc" not in line else line
        for number, line in enumerate(lines, start=1)
    )


def place_in_message(message: str, llvm_ir: str) -> tuple[str, SourceLocation | None]:
    """A message of LLVM without the line of `with_places`, and the source location that belongs to it."""
    if found := _CALL_PLACE.search(message):
        return message[: found.start()], _source_of_line(llvm_ir, int(found[1]))
    if found := _TEXT_IN_MESSAGE.search(message):
        lines = enumerate(llvm_ir.split("\n"), start=1)
        begin = f'"{quoted(found[1])}'
        number = next((i for i, line in lines if _CALL.match(line) and begin in line), 0)
        return message, _source_of_line(llvm_ir, number)
    return message, None


def quoted(text: str) -> str:
    """Text as LLVM IR writes it between the quotation marks of a string."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())


def unquoted(text: str) -> str:
    """The text that `quoted` was called with."""
    escaped = re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return escaped.encode("latin-1", errors="replace").decode(errors="replace")


def check_constraints(constraints: str) -> None:
    """Raise CompileError for clobbered registers that do not exist: LLVM ignores them."""
    for name in _CLOBBERS.findall(constraints):
        if not _SPECIAL.fullmatch(name) and not _is_register(name):
            raise CompileError(
                f"inline assembly clobbers {name!r}, which is not a register",
                hint="for example ~{v7}, ~{s[4:5]}, ~{vcc}, ~{scc}, ~{memory}",
            )


def _is_register(name: str) -> bool:
    found = _REGISTERS.fullmatch(name)
    if found is None:
        return False
    first, last = (found[2], found[2]) if found[2] else (found[3], found[4])
    return int(first) <= int(last) < _COUNTS[found[1]]


def canonical(listing: str, arch: Arch) -> str:
    """A listing with its inline assembly as LLVM writes these instructions.

    Raises CompileError, at the user's line, for text that the assembler does not accept.
    """
    lines = listing.split("\n")
    blocks = list(_blocks(lines))
    for block, text in reversed(list(zip(blocks, _assembled(blocks, arch), strict=True))):
        lines[block.start : block.start + len(block.lines)] = text
    return "\n".join(lines)


def _blocks(lines: list[str]) -> Iterator[_Block]:
    files: dict[int, str] = {}
    at: SourceLocation | None = None
    start: int | None = None
    for i, line in enumerate(lines):
        if start is not None:
            if _END.fullmatch(line):
                yield _Block(start, lines[start:i], at)
                start = None
        elif _START.fullmatch(line):
            start = i + 1
        elif file := read_file(line.lstrip()):
            files[file[0]] = file[1]
        elif loc := read_loc(line.lstrip()):
            at = _location(files.get(loc[0]), *loc[1:])


def _location(file: str | None, line: int, column: int) -> SourceLocation | None:
    """line, column: 0 where they are not known."""
    if file is None or line == 0:
        return None
    return SourceLocation(file, line, column - 1 if column else None, is_claimed=True)


def _assembled(blocks: list[_Block], arch: Arch) -> list[list[str]]:
    """The assembler's output for each block. All are read as one text: a macro of one may be used in the next."""
    source: list[str] = []
    of_line: list[_Block] = []
    for number, block in enumerate(blocks):
        source += (f"{_MARK}{number}:", *block.lines)
        of_line += [block] * (1 + len(block.lines))
    printed = _printed("\n".join(source) + "\n", source, of_line, arch).split("\n")
    starts = [printed.index(f"{_MARK}{number}:") for number in range(len(blocks))]
    ends = [*starts[1:], len(printed)]
    return [
        [_NUMBERED_LABEL.sub(r".Lasm\1", line) for line in printed[start + 1 : end] if line.strip()]
        for start, end in zip(starts, ends, strict=True)
    ]


def _printed(text: str, source: list[str], of_line: list[_Block], arch: Arch) -> str:
    try:
        with assembling("inline assembly needs an assembler, which LLVM is built without here"):
            return assembler.canonical_text(text, arch.name)
    except assembler.AssemblerError as refused:
        words = str(refused)
    error = _ASSEMBLER_ERROR.search(words)
    if error is None or not 0 < int(error[1]) <= len(source):
        raise CompileError(f"inline assembly cannot be assembled for {arch.name}: {words}")
    written = source[int(error[1]) - 1].strip()
    raise CompileError(
        f"inline assembly cannot be assembled for {arch.name}: {error[2]}: {written!r}",
        at=of_line[int(error[1]) - 1].at,
    )


def _source_of_line(llvm_ir: str, number: int) -> SourceLocation | None:
    """The source location of the instruction on a line of LLVM IR text, by its line table."""
    lines = llvm_ir.split("\n")
    debug = _DEBUG_PLACE.search(lines[number - 1]) if 0 < number <= len(lines) else None
    if debug is None:
        return None
    place = _fields(lines, debug[1])
    scope = place
    while "file" not in scope and "scope" in scope:
        scope = _fields(lines, scope["scope"])
    file = _fields(lines, scope["file"]) if "file" in scope else {}
    path = str(PurePath(file.get("directory", ""), file["filename"])) if "filename" in file else None
    return _location(path, int(place.get("line", 0)), int(place.get("column", 0)))


def _fields(lines: Iterable[str], node: str) -> dict[str, str]:
    """The fields of a metadata node."""
    line = next((line for line in lines if line.startswith(f"{node} = ")), "")
    return {name: unquoted(text) or plain for name, text, plain in _METADATA_FIELD.findall(line)}
