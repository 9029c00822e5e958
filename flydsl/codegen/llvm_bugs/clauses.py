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
# Instructions about those that follow, which differ with and without clauses.
_ABOUT_OTHERS = frozenset(("s_clause", "s_delay_alu", "s_nop"))
_FUNCTION_END = ".Lfunc_end"
# Around inline assembly, which is assembled apart as well, and so holds no directive of ours.
_ASSEMBLY, _ASSEMBLY_END = ";;#ASMSTART", ";;#ASMEND"


def restore_lines(listing: str, without_clauses: str) -> str:
    """The listing with a source line of its own for every instruction, taken from the listing without clauses.

    Unchanged if the two do not hold the same instructions and files.
    """
    lines, others = listing.split("\n"), without_clauses.split("\n")
    own, known = list(_instructions(lines)), list(_instructions(others))
    files = list(filter(_FILE.match, lines))  # numbered in the order of their first use, which lines that move precede
    if [text for _, text, _ in own] != [text for _, text, _ in known] or set(files) != set(filter(_FILE.match, others)):
        return listing
    places = dict(zip((at for at, _, _ in own), (place for _, _, place in known), strict=True))
    result, current, outside_assembly = list[str](), "", True
    for at, line in enumerate(lines):
        if _LOC.match(line):
            continue
        if _FILE.match(line):
            result += files
            files = []
            continue
        if line.startswith(_FUNCTION_END):
            current = ""
        elif outside_assembly and (_INSTRUCTION.fullmatch(line) or line.strip() == _ASSEMBLY):
            place = next((places[i] for i in range(at, len(lines)) if i in places), "")
            if place != current:
                result += [*files, place]
                current, files = place, []
        result.append(line)
        outside_assembly = line.strip() != _ASSEMBLY and (outside_assembly or line.strip() == _ASSEMBLY_END)
    return "\n".join(result)


def _instructions(lines: Iterable[str]) -> Iterable[tuple[int, str, str]]:
    """The instructions that are in both listings: (number of the line, text, the `.loc` directive in force)."""
    place = ""
    for at, line in enumerate(lines):
        instruction = _INSTRUCTION.fullmatch(line)
        if _LOC.match(line):
            place = line
        elif line.startswith(_FUNCTION_END):
            place = ""
        elif instruction and instruction["name"] not in _ABOUT_OTHERS:
            yield at, instruction["text"], place
