"""Checks for the launches of a `with` block, beyond those that always run, and the limit on a wave's instructions.

    with checking() as found:  # all of them; or checking("races")
        launcher(A, B, C)
    print(found)  # hints, if there are any

| check | finds |
| --- | --- |
| `uninitialized` | a read of LDS that nothing wrote, and use of registers or scratch that nothing wrote (see below) |
| `index` | an index outside of its mode of a tensor, though within the tensor's memory (see below) |
| `races` | accesses to the same bytes of LDS or global memory, one of them writing, that nothing orders (see below) |
| `waits` | use of what is still under way: an `s_waitcnt`, or `s_nop`, that is missing (see below) |
| `alignment` | as a hint, accesses that are slow for their address |
| `barriers` | as a hint, barriers that some waves of a workgroup end without reaching, or lanes of a wave do not take |

Each raises an error at the instruction that does it: `UninitializedLds`, `UninitializedRegister`, `LdsRace`,
`GlobalRace`, `MissingWait`; hints are in what the block is given. Launches are checked by the lock-step backend,
which computes with numpy and takes about a hundred times as long as native code. Check at small sizes. Where races are
all that is asked for, native code first tries to prove that there are none (`native.races`); if that succeeds, as for
most of the library's kernels, a launch takes two to four times as long as without.

# Indices

`x[row, column]` past the end of its row reads the next row, and an index past one array of LDS reads another array:
nothing is wrong for the machine, but the tensor knows its shape. With this check, the launchers called in the block are
compiled with an assertion at each access by a coordinate, in global memory, LDS and registers. It raises
`flydsl.errors.DeviceAssertion` with the mode, its size and the index. `checking("index")` runs this code, on GPUs, too.

With other checks it runs first, on the simulator, and its effects are undone; then the launch itself is checked, whose
code has no assertions. Copies, pointers and vectors at an offset have no coordinate to look at, and the programs of
other compilers and saved artifacts have no tensors.

# Overflow

`checking("overflow")` compiles an assertion after each `+`, `-` and `*` of signed integers, scalars and vectors: a sum
of Int8 that needs 9 bits raises `DeviceAssertion` with the operands. It is asked for by its name, alone or beside other
checks. Unsigned integers are to wrap around, as are `fx.arith.addi` and its like; products of Int64, conversions and
shifts are not looked at. It runs on GPUs, and in the interpreter, too. A float that is too large for its type is
infinite: see NaN.

# Registers

Reading an undefined register is not an error by itself: compilers read values that they then discard, such as the
unused half of a packed operand. But addresses, the direction of branches, the set of active lanes, and values stored to
global memory must not depend on one. So every workgroup runs three times side by side, each time with different
contents in whatever the hardware leaves undefined, and the runs are compared. This follows an undefined value through
every instruction, LDS and scratch, to the bit. It misses a dependency that happens not to show with any of the three
contents (zeros, random bits, and their complement), and anything that the compiler did with an undefined value before
register allocation. Reading a register tensor that nothing wrote is a compile error.

# Races

Two accesses by different waves race unless they are ordered: by a barrier of their workgroup between them, or by an
atomic of each at the same address, as where the last workgroup to finish sums up, or a lock or flag is passed on.
Every atomic orders, whatever its scope, and so do loads and stores with sc0 or sc1, which is what atomic and volatile
ones become (loads with glc on CDNA 2, where atomic stores look like any other). Whether the hardware needs fences or
cache operations in addition is not checked.

Within a wave, instructions happen one after the other for all lanes, and code relies on it. There, a race is

- lanes that store different bytes to one place in one instruction: which of them remains is not defined;
- lanes that load a place, compute something from it and all store that there (`s[k] = s[k] + 1.0`): one of the updates
  remains. Lanes that are to do the same update redundantly look alike; let one of them do it.

A tile of gfx1250's tensor data mover, or an asynchronous copy, reads and writes from its instruction on until its wave
has waited for it (s_wait_tensorcnt, s_wait_asynccnt), or until it arrives at a barrier in LDS. Until then an access to
what it writes, or a write of what it reads, is a race, also by the same wave. The barrier of a cluster orders what its
workgroups did before with what they do after it.

These are no races: two atomics; writes of bytes that are there already because another lane or wave wrote the same; a
plain read of a location that is updated by compare-and-swap, which compilers emit before its loop.

Races are found in the order in which the simulator runs the launch, for its operands. Not found are races that only
another order or other operands would cause, races between launches, and with uniform (scalar) loads of elements below
4 bytes. Where more than two unordered waves read a location, the one that is named may be another than the one that
matters.

# Waits

A GPU does not wait for a load. Here its result is there when the next instruction begins, so a program in which a wait
is missing gives right numbers here, and sometimes there. With this check every operation is under way until the wave
has waited for it by the counters of its GPU (`flydsl.arch.wait_counters`): loads of vectors and scalars, LDS, flat
accesses, atomics that return, loads straight to LDS, messages. An error are

- the use of a register, reading or writing, that an operation is still to write;
- an access to LDS that a load of the same wave is still to write, or that an access of another wave, which arrived at
  the barrier before it had completed, may still touch; a copy from LDS that begins before its wave's stores are there;
- an instruction that comes before the wait states that the ISA asks for and no hardware counts: after matrix
  instructions, scalar registers and EXEC that the vector ALU writes, DPP, on gfx1250 transcendentals.

LLVM waits for what it compiles, so this is about inline assembly, copies to LDS, and code of others. A compilation that
has any of the first two warns of what no path waits for without running it: `flydsl.compiler.debugging.missing_waits`.
Not checked are image instructions, exports, the order of stores in memory, and `s_delay_alu`, which is a hint. Of
listings only, not of launches: scalar registers that RDNA 4 reads before `s_wait_alu`.

`checking("late")`, which goes alone and is in no other, shows what a missing wait may do: loads bring their data at the
last moment that the waits allow, so that a program that does not wait computes with what was there before. Tiles of
gfx1250 that tell a barrier in LDS, and what goes from LDS to memory, come at once there, and `races` looks after them.

# NaN

`checking("nan")`, which is in no other, is for results that are not numbers. When a launch has written a NaN or an
infinity to a tensor of floats where there was a number, it raises `NotFinite`, which names the element, and the first
instructions that made one out of numbers, with their lanes, operands and lines. What a launch only hands on, it has not
made; and what it makes and does not write, as the square root of 0 does on its way, is no error. Integers that are
computed from a bf16, of which CDNA 3 rounds one, are not seen to make one. Beside other checks, as in
`checking("races", "nan")`, a launch runs twice: for the others first, on a copy of its memory.

# Alignment

The unaligned access mode, which AMD's runtime sets, allows any address for vector loads and stores, and LLVM merges
accesses because it does. Up to 16 bytes in LDS and up to 4 elsewhere, an address that is a multiple of the size is
faster; other addresses are reported as hints. A misaligned atomic is always a fault, `MisalignedAccess`; scalar loads
ignore the two low bits of their address.

# Always

Bounds, impassable barriers (waves that have ended are not waited for), and a limit of 10 million instructions
per wave (see `limited`) are always checked. The lock-step backend would take minutes to reach the limit. So when waves
have run for a while, native code runs ahead, on copies of registers and memory, and if that reaches the limit, the
launch ends with its error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flydsl.errors import ArgumentError, SourceLocation
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.simulator.decoding.program import Instruction
    from flydsl.simulator.errors import Access

CHECKS = ("uninitialized", "index", "races", "waits", "alignment", "barriers")

OVERFLOW = "overflow"
"""A check that goes by its name only: programs that hash, for example, have integers wrap around."""

LATE, NAN = frozenset({"late"}), frozenset({"nan"})
"""Checks that go by their names only: one changes what the others look at, and what the other finds may be meant."""

_COMPILED_IN = frozenset({"index", "overflow"})

DEFAULT_INSTRUCTION_LIMIT = 10_000_000

_instruction_limit: ContextVar[int] = ContextVar("flydsl_instruction_limit", default=DEFAULT_INSTRUCTION_LIMIT)
_findings: ContextVar[Findings | None] = ContextVar("flydsl_simulator_findings", default=None)
_enabled: ContextVar[frozenset[str]] = ContextVar("flydsl_simulator_checks", default=frozenset())


@dataclass
class MisalignedHint:
    """An instruction whose address is not a multiple of `alignment` bytes, which makes it slower.

    access: the first of these accesses. count: their number, each lane counted.
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


@dataclass(frozen=True)
class BarrierHint:
    """A barrier that waves of a workgroup ended without reaching, at which the hardware waits for the others alone.

    waiting, ended: the waves of that workgroup, by their number in it.
    """

    instruction: str
    isa_line: int
    at: SourceLocation | None
    workgroup: tuple[int, int, int]
    waiting: tuple[int, ...]
    ended: tuple[int, ...]

    def __str__(self) -> str:
        place = f", {self.at}" if self.at else ""
        return (
            f"{self.instruction} (ISA line {self.isa_line}{place}): in workgroup {self.workgroup} waves "
            f"{list(self.waiting)} wait, and waves {list(self.ended)} ended without coming there; the barrier does not "
            "order what those did"
        )


@dataclass(frozen=True)
class DivergentBarrierHint:
    """A barrier in a branch that some lanes of a wave do not take: it holds back the wave, and what these do it misses.

    wave: of the workgroup. thread: the first of its lanes that are not there, and missing: their number, of `lanes`.
    """

    instruction: str
    isa_line: int
    at: SourceLocation | None
    workgroup: tuple[int, int, int]
    wave: int
    thread: tuple[int, int, int]
    missing: int
    lanes: int

    def __str__(self) -> str:
        place = f", {self.at}" if self.at else ""
        return (
            f"{self.instruction} (ISA line {self.isa_line}{place}): wave {self.wave} of workgroup {self.workgroup} "
            f"comes there without {self.missing} of its {self.lanes} lanes, the first of them thread {self.thread}: "
            "the barrier is in a branch that they do not take, or they have returned; let all threads come there"
        )


class Findings:
    """The findings of a `with` block that are not errors. Prints as a list; without findings, as an empty text."""

    def __init__(self) -> None:
        self._misaligned: dict[tuple[str, int], MisalignedHint] = {}
        self._barriers: dict[int, BarrierHint | DivergentBarrierHint] = {}

    @property
    def hints(self) -> list[MisalignedHint | BarrierHint | DivergentBarrierHint]:
        """Accesses whose address makes them slow, and barriers that waves or lanes miss, one for each instruction."""
        return [*self._misaligned.values(), *self._barriers.values()]

    def add_misaligned(self, instruction: Instruction, access: Access, alignment: int, count: int) -> None:
        listed = instruction.listed
        hint = MisalignedHint(listed.text, listed.line, listed.location, alignment, access)
        self._misaligned.setdefault((listed.text, listed.line), hint).count += count

    def add_barrier(self, hint: BarrierHint | DivergentBarrierHint) -> None:
        self._barriers.setdefault(hint.isa_line, hint)

    def __str__(self) -> str:
        return "\n".join(str(hint) for hint in self.hints)


@contextmanager
def checking(*checks: str) -> Iterator[Findings]:
    """Check the launches inside the `with` block: by the checks named, or by all. ArgumentError for an unknown name.

    A wrong access raises an error; a slow one becomes a hint in the `Findings` that the block is given.
    """
    unknown = [name for name in checks if name not in (*CHECKS, OVERFLOW, *LATE, *NAN)]
    if unknown:
        raise ArgumentError(
            f"there is no check {unknown[0]!r}", hint=f"the checks are {', '.join(CHECKS)}; {OVERFLOW}; late; and nan"
        )
    if not LATE.isdisjoint(checks) and len(checks) > 1:
        raise ArgumentError(f"'late' must be the only check, got {', '.join(checks)}", hint="launch twice")
    findings = Findings()
    with holding(_enabled, frozenset(checks or CHECKS)), holding(_findings, findings):
        yield findings


@contextmanager
def limited(*, instructions: int) -> Iterator[None]:
    """Limit the instructions of a wave inside the `with` block: a wave that executes more is reported as endless."""
    if type(instructions) is not int or instructions < 1:
        raise ArgumentError(
            f"instructions of limited must be a positive number, got {instructions!r}",
            hint="pass 100_000_000, for example",
        )
    with holding(_instruction_limit, instructions):
        yield


def instruction_limit() -> int:
    """The number of instructions that a wave may execute here."""
    return _instruction_limit.get()


def current_findings() -> Findings:
    """The findings of the innermost `checking` block, or empty ones outside of any."""
    return _findings.get() or Findings()


def enabled_checks() -> frozenset[str]:
    """The checks that are enabled here and that are the simulator's to perform."""
    return _enabled.get() - _COMPILED_IN


def are_enabled() -> bool:
    """True if launches are checked here, by the simulator or by what is compiled in."""
    return bool(_enabled.get())


def in_turn() -> list[frozenset[str]]:
    """The simulator's checks here, in the order in which a launch runs for them: once, or first without "nan"."""
    enabled = enabled_checks()
    return [enabled - NAN, NAN] if enabled > NAN else [enabled]


@contextmanager
def only(checks: frozenset[str]) -> Iterator[None]:
    """Have the simulator perform these of the enabled checks inside of the `with` block."""
    with holding(_enabled, checks):
        yield


def asserted_checks() -> frozenset[str]:
    """The checks that are enabled here and that launchers are to be compiled with, as assertions."""
    return _enabled.get() & _COMPILED_IN


@contextmanager
def no_checks() -> Iterator[None]:
    """Launch inside of the `with` block without checks."""
    with only(frozenset()):
        yield
