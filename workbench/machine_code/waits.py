"""The memory instruction that each wait waits for.

Memory instructions increment a counter when they are issued and decrement it when they complete; a wait stops the wave
until a counter is at most n. In straight-line code, that is until the (n+1)-th instruction before it has completed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workbench.machine_code.blocks import Block
from workbench.machine_code.instructions import MachineInstruction

# gfx9 waits for several counters in one instruction, gfx12 has an instruction for each and for some pairs.
_TOGETHER = re.compile(r"(\w+cnt)\((\d+)\)")
_NAMED = re.compile(r"s_wait_([a-z]+cnt)(?:_(dscnt))? (\S+)")


def _is_store(instruction: MachineInstruction) -> bool:
    return "_store" in instruction.mnemonic


def _is_flat(instruction: MachineInstruction) -> bool:
    return instruction.mnemonic.startswith("flat_")


_COUNTS: dict[str, Callable[[MachineInstruction], bool]] = {
    "vmcnt": lambda i: i.kind == "VMEM",
    "lgkmcnt": lambda i: i.kind in ("LDS", "SMEM") or _is_flat(i),
    "loadcnt": lambda i: i.kind == "VMEM" and not _is_store(i),
    "storecnt": lambda i: i.kind == "VMEM" and _is_store(i),
    "dscnt": lambda i: i.kind == "LDS" or _is_flat(i),
    "kmcnt": lambda i: i.kind == "SMEM",
}


@dataclass(frozen=True)
class Wait:
    """A wait for one counter. cause: the instruction it waits for, None where that is before its block."""

    instruction: MachineInstruction
    counter: str
    at_most: int
    cause: MachineInstruction | None

    @property
    def distance(self) -> int | None:
        """Instructions from the issue of the cause to the wait."""
        return None if self.cause is None else self.instruction.index - self.cause.index


def waits(instructions: Sequence[MachineInstruction], graph: Sequence[Block]) -> list[Wait]:
    """Every wait for memory in a function, once per counter."""
    found = []
    for block in graph:
        issued: dict[str, list[MachineInstruction]] = {counter: [] for counter in _COUNTS}
        for instruction in instructions[block.start : block.end]:
            for counter, at_most in _conditions(instruction.text):
                counted = issued[counter]
                found.append(
                    Wait(instruction, counter, at_most, counted[-1 - at_most] if len(counted) > at_most else None)
                )
            for counter, counts in _COUNTS.items():
                if counts(instruction):
                    issued[counter].append(instruction)
    return found


def _conditions(text: str) -> Iterator[tuple[str, int]]:
    """The counters of `_COUNTS` that an instruction waits for, with the most that each may be."""
    if text.startswith("s_waitcnt"):
        yield from ((name, int(most)) for name, most in _TOGETHER.findall(text) if name in _COUNTS)
    elif named := _NAMED.match(text):
        first, second, value = named[1], named[2], int(named[3], 0)
        if second:
            yield second, value & 0xFF
        if first in _COUNTS:
            yield first, value >> 8 if second else value
