"""Source lines of the instructions in hard clauses.

From RDNA on, LLVM's back end bundles loads, or stores, that are issued one after the other (`s_clause`), and then knows
of one source line for all of a bundle. The same code without clauses says which line each instruction has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

WITHOUT_CLAUSES = "-amdgpu-hard-clause-length-limit=1"

_LOC = re.compile(r"\t\.loc\t")
_FILE = re.compile(r"\t\.file\t\d")
_INSTRUCTION = re.compile(r"\t(?P<text>(?P<name>[a-z]\w*)[^;]*?)\s*(?:;.*)?")
_ABOUT_OTHERS = frozenset(("s_clause", "s_delay_alu", "s_nop"))
_FUNCTION_END = ".Lfunc_end"
# Around inline assembly, which is assembled apart as well, and so holds no directive of ours.
_ASSEMBLY, _ASSEMBLY_END = ";;#ASMSTART", ";;#ASMEND"


def restore_lines(listing: str, without_clauses: str) -> str:
    """A listing whose every instruction has its own source line; as it is where the other one is not the same code."""
    lines, others = listing.split("\n"), without_clauses.split("\n")
    own, known = list(_instructions(lines)), list(_instructions(others))
    files = list(filter(_FILE.match, lines))  # numbered in the order of their first use, which lines that move precede
    if [text for _, text, _ in own] != [text for _, text, _ in known] or set(files) != set(filter(_FILE.match, others)):
        return listing
    places = dict(zip((at for at, _, _ in own), (place for _, _, place in known), strict=True))
    result, current, is_ours = list[str](), "", True
    for at, line in enumerate(lines):
        if _LOC.match(line):
            continue
        if _FILE.match(line):
            result += files
            files = []
            continue
        if line.startswith(_FUNCTION_END):
            current = ""
        elif is_ours and (_INSTRUCTION.fullmatch(line) or line.strip() == _ASSEMBLY):
            place = next((places[i] for i in range(at, len(lines)) if i in places), "")
            if place != current:
                result += [*files, place]
                current, files = place, []
        result.append(line)
        is_ours = line.strip() != _ASSEMBLY and (is_ours or line.strip() == _ASSEMBLY_END)
    return "\n".join(result)


def _instructions(lines: Iterable[str]) -> Iterable[tuple[int, str, str]]:
    """The instructions that do something themselves: number of the line, text, and the directive with its place."""
    place = ""
    for at, line in enumerate(lines):
        instruction = _INSTRUCTION.fullmatch(line)
        if _LOC.match(line):
            place = line
        elif line.startswith(_FUNCTION_END):
            place = ""
        elif instruction and instruction["name"] not in _ABOUT_OTHERS:
            yield at, instruction["text"], place
