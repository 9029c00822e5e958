"""How many registers hold something that is still needed, at each instruction.

A register is live where a path leads from there to an instruction that reads it, with none on the way that writes it.
Lanes count as one: as in LLVM, an instruction that writes a register under a mask ends the life of the value before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.machine_code.blocks import Block
from workbench.machine_code.instructions import MachineInstruction
from workbench.machine_code.registers import RegisterSet


@dataclass(frozen=True)
class Pressure:
    """The registers in use at an instruction: before: live when it starts; after: live when it ends, or written."""

    before: RegisterSet
    after: RegisterSet

    def count(self, file: str) -> int:
        """How many of file "s", "v" or "a", before or after, whichever is more."""
        return max(self.before.count(file), self.after.count(file))

    def total_vgprs(self, *, unified: bool) -> int:
        """Vector registers as an allocation counts them: with unified AGPRs, these follow at a multiple of 4."""
        vgprs, agprs = self.count("v"), self.count("a")
        return -(-vgprs // 4) * 4 + agprs if unified and agprs else vgprs


def pressures(instructions: Sequence[MachineInstruction], graph: Sequence[Block]) -> list[Pressure]:
    """Per instruction, the registers in use."""
    live_at_start = [0] * len(graph)
    waiting = list(range(len(graph)))
    while waiting:
        number = waiting.pop()
        block = graph[number]
        live = _live_at_end(block, live_at_start)
        for instruction in reversed(instructions[block.start : block.end]):
            live = instruction.uses.reads | live & ~instruction.uses.writes
        if live != live_at_start[number]:
            live_at_start[number] = live
            waiting += [p for p in block.predecessors if p not in waiting]
    found: list[Pressure] = []
    for block in graph:
        live = _live_at_end(block, live_at_start)
        inside = []
        for instruction in reversed(instructions[block.start : block.end]):
            after = live | instruction.uses.writes
            live = instruction.uses.reads | live & ~instruction.uses.writes
            inside.append(Pressure(RegisterSet(live), RegisterSet(after)))
        found += reversed(inside)
    return found


def _live_at_end(block: Block, live_at_start: Sequence[int]) -> int:
    live = 0
    for successor in block.successors:
        live |= live_at_start[successor]
    return live
