"""Errors of a simulated program, each with the instruction, its source line, and the lanes that executed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from flydsl.errors import SimulatorError, SourceLocation

if TYPE_CHECKING:
    from flydsl.hsaco.listing import ListedInstruction


class UnknownInstruction(SimulatorError):
    """An instruction, or a form of one, whose semantics are not in the table; raised when a wave reaches it."""


class RegisterFault(SimulatorError):
    """An access to a vector register that the kernel was not given; raised when a wave reaches it."""


class Trap(SimulatorError):
    """The program executed s_trap."""


class UnsupportedMode(SimulatorError):
    """A floating-point mode that the simulator does not support."""


class BarrierDeadlock(SimulatorError):
    """Waves wait at a barrier that the others of their workgroup, or of their cluster, can no longer reach."""


class BarrierMisuse(SimulatorError):
    """A workgroup arrives twice at its cluster's barrier, which then does not wait for the others."""


class InstructionLimit(SimulatorError):
    """A wave executed more instructions than the launch allows.

    polled: the addresses that its loop reads, each with the bytes that were there.
    """

    polled: tuple[tuple[int, bytes], ...] = ()
    if_meant: ClassVar[str] = "if it is meant to run this long: with flydsl.simulator.limited(instructions=...)"


@dataclass(frozen=True)
class Access:
    """One lane's access to memory, or a wave's, in the terms of the kernel's author.

    address is the simulated address (an offset where the space is LDS or scratch); element_index counts from the
    start of the buffer in units of its elements and may be negative. buffer is None where the address belongs to none.
    lane and thread are None where the wave accesses once for all its lanes.
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
    lane: int | None
    thread: tuple[int, int, int] | None


class DescriptorError(SimulatorError):
    """A tensor descriptor with a field that means nothing, or disagrees with another one, or with the LDS there is."""


class MemoryFault(SimulatorError):
    """A lane read or wrote memory that it must not access. This class itself: outside of every buffer.

    access says who accessed what; instruction is the text of the instruction and isa_line its line in the listing.
    In the interpreter, these are the name of the operation and 0.
    """

    def __init__(
        self, problem: str, access: Access, instruction: str, isa_line: int, at: SourceLocation | None, hint: str | None
    ) -> None:
        verb = "writes" if access.is_write else "reads"
        by = "" if access.lane is None else f", lane {access.lane}, thread {access.thread}"
        message = (
            f"{instruction.split()[0]} {verb} {access.access_bytes} bytes {problem}\n"
            f"  instruction: {instruction} (ISA line {isa_line})\n"
            f"  workgroup {access.workgroup}, wave {access.wave}{by}"
        )
        super().__init__(message, at=at, hint=hint)
        self.access = access
        self.instruction = instruction
        self.isa_line = isa_line

    @classmethod
    def of_operation(
        cls, problem: str, access: Access, operation: str, at: SourceLocation | None, hint: str | None
    ) -> MemoryFault:
        """The error for an operation that the interpreter executes."""
        made = cls(problem, access, operation, 0, at, hint)
        made.message = made.message.replace(f"\n  instruction: {operation} (ISA line 0)", "")
        return made


class MisalignedAccess(MemoryFault):
    """A lane used an address that is not a multiple of what the instruction requires."""


class UninitializedLds(MemoryFault):
    """A lane read LDS that no lane of its workgroup had written."""


@dataclass(frozen=True)
class Accessor:
    """The earlier one of two racing accesses: who made it, and the instruction. "read", "write" or "atomic".

    lane and thread are None for a copy that the wave has issued.
    """

    kind: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int | None
    thread: tuple[int, int, int] | None
    instruction: str
    isa_line: int
    at: SourceLocation | None

    def within_workgroup(self) -> str:
        return f"wave {self.wave}" + ("" if self.lane is None else f", lane {self.lane}")

    def __str__(self) -> str:
        return f"workgroup {self.workgroup}, {self.within_workgroup()}"

    def instruction_text(self) -> str:
        place = f", {self.at}" if self.at else ""
        return f"{self.instruction} (ISA line {self.isa_line}{place})"


class Race(MemoryFault):
    """Two unordered accesses to the same bytes, at least one of them a write.

    access and instruction are those of the one that came later here, other the earlier one.
    """

    def __init__(
        self,
        problem: str,
        access: Access,
        instruction: str,
        isa_line: int,
        at: SourceLocation | None,
        hint: str | None,
        other: Accessor,
    ) -> None:
        super().__init__(problem, access, instruction, isa_line, at, hint)
        self.other = other


class LdsRace(Race):
    """A race in LDS: two waves without a barrier in between, or two lanes of one wave in one instruction or update."""


class GlobalRace(Race):
    """A race in global memory: two workgroups, two waves without a barrier in between, or two lanes of one wave."""


class MissingWait(SimulatorError):
    """A wave used what an operation of its own, or of another wave, had still under way: a wait is missing.

    instruction, isa_line: of the use; at, its place in the source, is the error's. started, started_line, started_at:
    of the operation. counter: that must be waited for, and enough: its largest count that would do; "" and 0 where wait
    states are missing. seen: what the hardware may have seen, in words. lane: None where the whole wave is concerned.
    """

    def __init__(
        self,
        problem: str,
        instruction: ListedInstruction,
        started: ListedInstruction,
        *,
        workgroup: tuple[int, int, int],
        wave: int,
        lane: int | None,
        thread: tuple[int, int, int] | None,
        counter: str,
        enough: int,
        seen: str,
        hint: str,
    ) -> None:
        place = f", {started.location}" if started.location else ""
        by = "" if lane is None else f", lane {lane}, thread {thread}"
        lines = [
            f"{instruction.text.split()[0]} {problem}",
            f"  instruction: {instruction.text} (ISA line {instruction.line})",
            f"  after: {started.text} (ISA line {started.line}{place})",
            f"  workgroup {workgroup}, wave {wave}{by}",
            *([f"  {seen}"] if seen else []),
        ]
        super().__init__("\n".join(lines), at=instruction.location, hint=hint)
        self.instruction, self.isa_line = instruction.text, instruction.line
        self.started, self.started_line, self.started_at = started.text, started.line, started.location
        self.workgroup, self.wave, self.lane, self.thread = workgroup, wave, lane, thread
        self.counter, self.enough, self.seen = counter, enough, seen


class NotFinite(SimulatorError):
    """A launch wrote a NaN or an infinity where there was a number.

    tensor, element, count: where, the first one by its place in memory, and how many of the tensor there are. made: the
    first instructions that made one out of numbers, by time (`lockstep.checked.nans.Made`).
    """

    def __init__(self, tensor: str, label: str, element: int, count: int, shown: str, made: Sequence[Any]) -> None:
        others = f", and {count - 1} more NaNs or infinities" if count > 1 else ""
        first = [f"  {'first' if i == 0 else 'then'}: {each}" for i, each in enumerate(made)]
        nobody = ["  no instruction made it out of numbers: it was in memory before, or comes from integers"]
        lines = [f"{tensor} ({label}) has {shown} at element {element} in memory{others}", *(first or nobody)]
        at = made[0].at if made else None
        super().__init__(
            "\n".join(lines), at=at, hint="look for rows without elements, logarithms of 0, and sums too large for f16"
        )
        self.tensor, self.element, self.count, self.made = tensor, element, count, tuple(made)


class UninitializedRegister(SimulatorError):
    """The program depends on a register, or on scratch (private memory), that was never written.

    instruction is the text of the instruction that does it, isa_line its line in the listing, registers those of its
    operands that depend on it. lane is None where the whole wave is concerned (a branch), access where no memory is.
    """

    def __init__(
        self,
        problem: str,
        *,
        instruction: ListedInstruction,
        workgroup: tuple[int, int, int],
        wave: int,
        lane: int | None,
        thread: tuple[int, int, int] | None,
        registers: tuple[str, ...],
        access: Access | None,
        first_reads: tuple[str, ...],
    ) -> None:
        by = "" if lane is None else f", lane {lane}, thread {thread}"
        through = f" through {', '.join(registers)}" if registers else ""
        lines = [
            f"{instruction.text.split()[0]}: {problem} depends{through} on a register or scratch that nothing wrote",
            f"  instruction: {instruction.text} (ISA line {instruction.line})",
            f"  workgroup {workgroup}, wave {wave}{by}",
            *(f"  read before anything wrote it: {read}" for read in first_reads),
        ]
        super().__init__("\n".join(lines), at=instruction.location, hint="initialise every value on every path")
        self.instruction, self.isa_line = instruction.text, instruction.line
        self.workgroup, self.wave, self.lane, self.thread = workgroup, wave, lane, thread
        self.registers, self.access = registers, access
