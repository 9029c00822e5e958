"""Checks for the launches of a `with` block, beyond those that always run, and the limit on a wave's instructions.

    with checking() as found:  # all of them; or checking("races")
        launcher(A, B, C)
    print(found)  # hints, if there are any

| check | finds |
| --- | --- |
| `uninitialized` | a read of LDS that nothing wrote, and use of registers or scratch that nothing wrote (see below) |
| `races` | accesses to the same bytes of LDS or global memory, one of them writing, that nothing orders (see below) |
| `alignment` | as a hint, accesses that are slow for their address |

Each raises an error at the instruction that does it: `UninitializedLds`, `UninitializedRegister`, `LdsRace`,
`GlobalRace`; hints are in what the block is given. Launches are checked by the lock-step backend, several times slower
than without.

# Registers

Reading an undefined register is no error by itself: compilers read what they then discard, such as the unused half of
a packed operand. What must not depend on one is an address, the way of a branch, which lanes are active, and a value
that goes into global memory. So every workgroup runs three times side by side, each with different contents in whatever
the hardware leaves undefined, and these are compared. A value is thereby followed through every instruction, LDS and
scratch, to the bit; what escapes is a dependency that happens not to show for any of three contents (zeros, random
bits, and their complement), and what the compiler made of an undefined value before there were registers. Of register
tensors that nothing wrote, the compiler itself complains.

# Races

Two accesses by different waves race unless one lies behind the other: with a barrier of their workgroup in between, or
an atomic of each at the same address, as where the last workgroup to finish sums up, or a lock or flag is passed on.
Every atomic orders, whatever its scope, and so do loads and stores with sc0 or sc1, which is what atomic and volatile
ones become. Which fences and caches the hardware would want in addition is not looked at.

Within a wave, instructions happen one after the other for all lanes, and code relies on it. There, what is found is

- lanes that store different bytes to one place in one instruction: which of them remains is not defined;
- lanes that load a place, compute something from it and all store that there (`s[k] = s[k] + 1.0`): one of the updates
  remains. Lanes that are to do the same update redundantly look alike; let one of them do it.

No race are: two atomics; writes of bytes that are there already because another lane or wave wrote the same; a plain
read of what is updated by compare-and-swap, which compilers emit before its loop.

What is found is found in the order in which the simulator happens to run things, for the operands of this launch. Not
seen are accesses that another order or other operands would make, those of two launches, uniform (scalar) loads of
elements below 4 bytes, waits that machine code forgets (s_waitcnt), and, where more than two waves read a place with
nothing between them, which of them it was.

# Alignment

The unaligned access mode, which AMD's runtime sets, allows any address for vector loads and stores, and LLVM merges
accesses because it does. Up to 16 bytes in LDS and up to 4 elsewhere, a multiple of the size is faster; what is not
is told in the findings. A misaligned atomic is always a fault, `MisalignedAccess`; scalar loads ignore the two low bits
of their address.

# Always

Always on are bounds, barriers that cannot be passed, and a limit of 10 million instructions per wave: `limited`. The
lock-step backend would take minutes to get there. So when waves have run for a while, native code runs ahead, on copies
of registers and memory, and if that reaches the limit, the launch ends with its error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flydsl.errors import ArgumentError, SourceLocation

if TYPE_CHECKING:
    from flydsl.simulator.errors import Access
    from flydsl.simulator.program import Instruction

CHECKS = ("uninitialized", "races", "alignment")

DEFAULT_INSTRUCTION_LIMIT = 10_000_000

_instruction_limit: ContextVar[int] = ContextVar("flydsl_instruction_limit", default=DEFAULT_INSTRUCTION_LIMIT)
_findings: ContextVar[Findings | None] = ContextVar("flydsl_simulator_findings", default=None)
_enabled: ContextVar[frozenset[str]] = ContextVar("flydsl_simulator_checks", default=frozenset())


@dataclass
class MisalignedHint:
    """An instruction whose address is not a multiple of `alignment` bytes, which makes it slower.

    access is the first of such accesses, count how many there were, of single lanes.
    """

    instruction: str
    isa_line: int
    at: SourceLocation | None
    alignment: int
    access: Access
    count: int = 0

    def __str__(self) -> str:
        place = f", {self.at}" if self.at else ""
        of = f" of {self.access.buffer}" if self.access.buffer else ""
        return (
            f"{self.instruction} (ISA line {self.isa_line}{place}): {self.count} addresses{of} are not multiples of "
            f"{self.alignment}, the first {self.access.address:#x}, by workgroup {self.access.workgroup}, wave "
            f"{self.access.wave}, lane {self.access.lane}; slower than aligned"
        )


class Findings:
    """The findings of a `with` block that are not errors. Prints as a list; without findings, as an empty text."""

    def __init__(self) -> None:
        self._misaligned: dict[tuple[str, int], MisalignedHint] = {}

    @property
    def hints(self) -> list[MisalignedHint]:
        """Accesses that are slow because of their address, one for each instruction."""
        return list(self._misaligned.values())

    def add_misaligned(self, instruction: Instruction, access: Access, alignment: int, count: int) -> None:
        listed = instruction.listed
        hint = MisalignedHint(listed.text, listed.line, listed.location, alignment, access)
        self._misaligned.setdefault((listed.text, listed.line), hint).count += count

    def __str__(self) -> str:
        return "\n".join(str(hint) for hint in self.hints)


@contextmanager
def checking(*checks: str) -> Iterator[Findings]:
    """Check the launches inside the `with` block: by the checks named, or by all. ArgumentError for an unknown name.

    What is wrong raises; what is merely slow is in the `Findings` that the block is given.
    """
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise ArgumentError(f"there is no check {unknown[0]!r}", hint=f"the checks are {', '.join(CHECKS)}")
    findings = Findings()
    token, found = _enabled.set(frozenset(checks or CHECKS)), _findings.set(findings)
    try:
        yield findings
    finally:
        _enabled.reset(token)
        _findings.reset(found)


@contextmanager
def limited(*, instructions: int) -> Iterator[None]:
    """Limit the instructions of a wave inside the `with` block: a wave that executes more is reported as endless."""
    token = _instruction_limit.set(instructions)
    try:
        yield
    finally:
        _instruction_limit.reset(token)


def instruction_limit() -> int:
    """The number of instructions that a wave may execute here."""
    return _instruction_limit.get()


def current_findings() -> Findings:
    """The findings of the innermost `checking` block, or empty ones outside of any."""
    return _findings.get() or Findings()


def enabled_checks() -> frozenset[str]:
    """The checks that are enabled here."""
    return _enabled.get()
