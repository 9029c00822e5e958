"""Make LLVM's assembly text readable: debug directives become one short comment per source line.

    v_add_f32_e32 v2, v2, v3                ; vector_add.py:12

The result still assembles to the same machine code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from flydsl.errors import SourceLocation
from flydsl.hsaco.listing import read_file, read_loc

_COMMENT_COLUMN = 56

_DEBUG_DIRECTIVE = re.compile(r"\s*\.(?:file|loc|cfi_\w+)\b")
_SECTION = re.compile(r'\s*\.section\s+"?(?P<name>[^",\s]+)')
_SECTION_SWITCH = re.compile(r"\s*\.(?:section|text|data|bss|amdgpu_metadata)\b")
_INSTRUCTION = re.compile(r"\t[a-z]")
_LOCAL_NAME = re.compile(r"\.L\w+")
_LOCAL_LABEL = re.compile(r"(\.L(?:tmp|func_begin)\d+):\s*$")


def readable_isa(listing: str) -> str:
    """`listing` (LLVM assembly of any verbosity) without debug sections and directives, with source comments."""
    lines = list(_annotated(_without_debug_sections(listing.splitlines())))
    return "\n".join(_without_unused_labels(lines)) + "\n"


def _without_debug_sections(lines: Iterable[str]) -> Iterator[str]:
    in_debug_section = False
    for line in lines:
        if _SECTION_SWITCH.match(line):
            section = _SECTION.match(line)
            in_debug_section = section is not None and section["name"].startswith(".debug")
        if not in_debug_section:
            yield line


def _annotated(lines: Iterable[str]) -> Iterator[str]:
    """The lines without .file, .loc and .cfi; the first instruction of each new source line names it in a comment."""
    files: dict[int, str] = {}
    place = shown = ""
    for line in lines:
        if _DEBUG_DIRECTIVE.match(line):
            if file := read_file(line.strip()):
                files[file[0]] = PurePath(SourceLocation(file[1], 1).file_label).name
            elif (loc := read_loc(line.strip())) and loc[1]:  # line 0: code of no particular line
                place = f"{files.get(loc[0], '?')}:{loc[1]}"
        elif place != shown and _INSTRUCTION.match(line):
            shown = place
            yield f"{_padded(line)}; {place}"
        else:
            yield line


def _padded(line: str) -> str:
    width = len(line.expandtabs(8))
    return line + " " * max(_COMMENT_COLUMN - width, 1)


def _without_unused_labels(lines: list[str]) -> list[str]:
    """The lines without labels that only debug information referred to."""
    uses = Counter(label for line in lines for label in _LOCAL_NAME.findall(line))
    return [line for line in lines if not ((label := _LOCAL_LABEL.match(line)) and uses[label[1]] == 1)]
