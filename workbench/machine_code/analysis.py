"""The analysis of a kernel's machine code: blocks, registers in use, waits, the mix of instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from flydsl.codegen import CodeObject, Kernel
from flydsl.hsaco.listing import Listing, read_listing
from workbench.machine_code.blocks import Block, blocks
from workbench.machine_code.instructions import KINDS, MachineInstruction, read_function
from workbench.machine_code.liveness import Pressure, pressures
from workbench.machine_code.waits import Outstanding, outstanding
from workbench.resources.limits import next_steps


@dataclass(frozen=True, eq=False)
class Analysis:
    """A kernel's instructions, and the facts that are computed from them."""

    kernel: Kernel
    instructions: tuple[MachineInstruction, ...]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Basic blocks."""
        return blocks(self.instructions)

    @cached_property
    def pressures(self) -> list[Pressure]:
        """Registers in use, per instruction."""
        return pressures(self.instructions, self.blocks)

    @cached_property
    def outstanding(self) -> Outstanding:
        """Memory operations under way, per instruction, and the waits for them."""
        return outstanding(self.instructions, self.blocks, self.kernel.arch)

    @cached_property
    def vector_registers(self) -> list[int]:
        """The number of vector registers an allocation needs, per instruction; with AGPRs if they share the file."""
        return [p.total_vgprs(unified=self.kernel.arch.unified_agprs) for p in self.pressures]

    @property
    def peak(self) -> int:
        """The most vector registers that are in use at once."""
        return max(self.vector_registers, default=0)

    @cached_property
    def target(self) -> int | None:
        """The number of vector registers with which one more wave would fit; None if they are not the limit."""
        steps = next_steps(self.kernel.usage)
        return next((step.amount for step in steps if step.resource == "VGPR"), None)

    @property
    def over_target(self) -> list[MachineInstruction]:
        """The instructions at which too many vector registers are in use for one more wave."""
        if self.target is None:
            return []
        return [i for i in self.instructions if self.vector_registers[i.index] > self.target]

    @cached_property
    def loop_depths(self) -> list[int]:
        """The number of loops around each instruction."""
        return [len(block.loops) for block in self.blocks for _ in range(block.start, block.end)]

    def mix(self) -> dict[str, tuple[int, int]]:
        """The number of instructions of each kind, and of those in loops. Kinds that do not occur are left out."""
        counts = Counter(i.kind for i in self.instructions)
        inside = Counter(i.kind for i in self.instructions if self.loop_depths[i.index])
        return {kind: (counts[kind], inside[kind]) for kind in KINDS if counts[kind]}


def analyses(code: CodeObject) -> list[Analysis]:
    """The analysis of each kernel of a code object."""
    return [analyse(code, kernel.name) for kernel in code.kernels]


@lru_cache(maxsize=32)
def analyse(code: CodeObject, name: str) -> Analysis:
    """The analysis of one kernel, by name."""
    kernel = next(kernel for kernel in code.kernels if kernel.name == name)
    return Analysis(kernel, read_function(listing_of(code), name))


@lru_cache(maxsize=8)
def listing_of(code: CodeObject) -> Listing:
    """The listing of a code object, read."""
    return read_listing(code.listing)


def source_lines(instructions: Sequence[MachineInstruction]) -> list[int]:
    """The user's lines that instructions come from, each once, in order."""
    return sorted({i.location.line for i in instructions if i.location is not None})
