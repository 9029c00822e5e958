"""The number of live registers at each instruction.

A register is live at a point if a path leads from there to an instruction that reads it, without a write on the way.
Lanes are not distinguished: as in LLVM, a write under a mask ends the life of the previous value. But if the compiler
masks a few instructions without a branch around them, the inactive lanes skip them all the same: their values are live
from the point where the mask narrows.

Registers that a called function reads, writes and needs are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flydsl.hsaco.register_uses import VECTOR_REGISTERS, RegisterSet
from workbench.machine_code.blocks import Block
from workbench.machine_code.instructions import MachineInstruction

_NARROWS = re.compile(r"s_(?:and|andn2|and_not1)_saveexec_b\d\d (?P<saved>[^,]+),")
_WRITES_EXEC = re.compile(r"s_\w+_saveexec_|s_\w+ exec(?:_lo)?,")


@dataclass(frozen=True)
class Pressure:
    """The registers in use at an instruction: before: live when it starts; after: live when it ends, or written."""

    before: RegisterSet
    after: RegisterSet

    def count(self, file: str) -> int:
        """The number of live registers of file "s", "v" or "a", before or after, whichever is larger."""
        return max(self.before.count(file), self.after.count(file))

    def total_vgprs(self, *, unified: bool) -> int:
        """Vector registers as an allocation counts them: with unified AGPRs, these follow at a multiple of 4."""
        vgprs, agprs = self.count("v"), self.count("a")
        return -(-vgprs // 4) * 4 + agprs if unified and agprs else vgprs


def pressures(instructions: Sequence[MachineInstruction], graph: Sequence[Block]) -> list[Pressure]:
    """Per instruction, the registers in use."""
    around = _ways_around(instructions, graph)
    live_at_start = [0] * len(graph)
    waiting = list(range(len(graph)))
    while waiting:
        number = waiting.pop()
        found = _in_block(instructions, graph[number], live_at_start, around)
        if found and found[0].before != live_at_start[number]:
            live_at_start[number] = found[0].before
            waiting += [p for p in graph[number].predecessors if p not in waiting]
    return [pressure for block in graph for pressure in _in_block(instructions, block, live_at_start, around)]


def _in_block(
    instructions: Sequence[MachineInstruction], block: Block, live_at_start: Sequence[int], around: Mapping[int, int]
) -> list[Pressure]:
    live = 0
    for successor in block.successors:
        live |= live_at_start[successor]
    before: dict[int, int] = {}
    found = []
    for instruction in reversed(instructions[block.start : block.end]):
        live |= before.get(around.get(instruction.index, -1), 0) & VECTOR_REGISTERS
        after = live | instruction.uses.writes
        live = before[instruction.index] = instruction.uses.reads | live & ~instruction.uses.writes
        found.append(Pressure(RegisterSet(live), RegisterSet(after)))
    return found[::-1]


def _ways_around(instructions: Sequence[MachineInstruction], graph: Sequence[Block]) -> dict[int, int]:
    """A map from each instruction that turns lanes off to the one in its block that turns them on again."""
    found = {}
    for block in graph:
        inside = instructions[block.start : block.end]
        for position, instruction in enumerate(inside):
            if narrows := _NARROWS.match(instruction.text):
                ends = (i.index for i in inside[position + 1 :] if _widens(i, narrows["saved"]))
                if (end := next(ends, None)) is not None:
                    found[instruction.index] = end
    return found


def _widens(instruction: MachineInstruction, saved: str) -> bool:
    return _WRITES_EXEC.match(instruction.text) is not None and instruction.text.endswith(saved)
