"""What a simulated program can do wrong, each with the instruction, its source line and who executed it."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.errors import SimulatorError, SourceLocation


class ListingError(SimulatorError):
    """An assembly listing, or one line of it, that this reader does not understand."""


class UnknownInstruction(SimulatorError):
    """An instruction, or a form of one, whose semantics are not in the table; raised when a wave reaches it."""


class Trap(SimulatorError):
    """The program executed s_trap."""


class UnsupportedMode(SimulatorError):
    """A floating-point mode that is not simulated."""


class BarrierDeadlock(SimulatorError):
    """Waves wait at a barrier that the other waves of their workgroup can no longer reach."""


class InstructionLimit(SimulatorError):
    """A wave executed more instructions than the launch allows."""


@dataclass(frozen=True)
class Access:
    """One lane's access to memory, in the terms of the kernel's author.

    address is the simulated address (an offset where the space is LDS or scratch); element_index counts from the
    start of the buffer in units of its elements and may be negative. buffer is None where the address belongs to none.
    """

    is_write: bool
    access_bytes: int
    address: int
    space: str
    buffer: str | None
    label: str
    element_index: int | None
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    thread: tuple[int, int, int]


class MemoryFault(SimulatorError):
    """A lane read or wrote outside of every buffer.

    access says who accessed what; instruction is the text of the instruction and isa_line its line in the listing.
    """

    def __init__(
        self, problem: str, access: Access, instruction: str, isa_line: int, at: SourceLocation | None, hint: str | None
    ) -> None:
        verb = "writes" if access.is_write else "reads"
        message = (
            f"{instruction.split()[0]} {verb} {access.access_bytes} bytes {problem}\n"
            f"  instruction: {instruction} (ISA line {isa_line})\n"
            f"  workgroup {access.workgroup}, wave {access.wave}, lane {access.lane}, thread {access.thread}"
        )
        super().__init__(message, at=at, hint=hint)
        self.access = access
        self.instruction = instruction
        self.isa_line = isa_line


class MisalignedAccess(MemoryFault):
    """A lane used an address that is not a multiple of what the instruction demands."""
