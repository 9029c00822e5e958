"""Mutants of machine code: the waits that a kernel's author wrote, each weakened by one, removed, or moved.

They are mutants of the code and not of the source: LLVM waits for copies to LDS itself where it sees no wait, so a
mutant of the source may be right. What it adds to a wait that is written changes with it, up to the barrier.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import replace

from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.simulator import Program

MUTATIONS = ("weaker", "removed", "behind the barrier")
_WRITTEN = re.compile(r"s_wait\w*\(|tensor_wait\(")
_COUNT = re.compile(r"(?<=vmcnt\()\d+|(?<=tensorcnt )\w+$|(?<=dscnt )\w+$")
_BARRIER = re.compile(r"s_barrier(_signal .*)?$")
_BEHIND = re.compile(r"s_barrier(_wait .*)?$")


def written_waits(program: Program) -> list[int]:
    """The waits of a program whose line in the source is a wait, and for which there is anything to mutate."""
    return [index for index, instruction in enumerate(program.instructions) if _is_written(instruction.listed)]


def _is_written(listed: ListedInstruction) -> bool:
    at = listed.location
    if not listed.text.startswith("s_wait") or not _COUNT.search(listed.text) or at is None:
        return False
    return _WRITTEN.search(linecache.getline(at.file, at.line)) is not None


def mutants(program: Program, index: int) -> Iterator[tuple[str, Program]]:
    """Each mutant of one wait, with its mutation; "behind the barrier" only where one follows at once."""
    texts = [instruction.listed for instruction in program.instructions]
    ends = {*program.labels.values(), *(i + 1 for i, listed in enumerate(texts) if "branch" in listed.text)}
    block = range(index, min((end for end in ends if end > index), default=len(texts)))
    barrier = next((i for i in block if _BARRIER.match(texts[i].text)), index)
    behind = next((i for i in block if i >= barrier and _BEHIND.match(texts[i].text)), None)
    counter = _COUNT.sub("", texts[index].text)
    waits = [i for i in range(index, barrier + 1) if _COUNT.sub("", texts[i].text).startswith(counter)] or [index]
    for mutation in MUTATIONS if behind is not None else MUTATIONS[:2]:
        changed = list(texts)
        for i in waits:
            changed[i] = replace(texts[i], text="s_nop 0")
            if mutation == "weaker":
                count = _COUNT.search(texts[index].text)
                assert count is not None
                changed[i] = replace(texts[i], text=_COUNT.sub(str(int(count[0], 0) + 1), texts[index].text))
        if mutation == "behind the barrier" and behind is not None:
            changed[index : behind + 1] = [*changed[index + 1 : behind + 1], texts[index]]
        listing = Listing(tuple(changed), dict(program.labels), program.constants, program.variables)
        yield mutation, Program.from_listing(program.kernels, listing, program.arch)
