"""What the launches of a `with` block are checked for, beyond what always is, and how long a wave may run.

    with checking():  # all of them; or checking("races")
        launcher(A, B, C)

| check | finds |
| --- | --- |
| `uninitialized` | a read of LDS that nothing wrote, and use of registers or scratch that nothing wrote (see below) |
| `races` | two waves that access one byte of LDS without a barrier between, at least one of them writing |
| `alignment` | an address that is not a multiple of the access's size: up to 16 bytes in LDS, up to 4 elsewhere |

Each raises an error at the instruction that does it: `UninitializedLds`, `UninitializedRegister`, `LdsRace`,
`MisalignedAccess`. Launches are checked by the lock-step backend, some five times slower than it is without.

Reading an undefined register is no error by itself: compilers read what they then discard, such as the unused half of
a packed operand. What must not depend on one is an address, the way of a branch, which lanes are active, and a value
that goes into global memory. So every workgroup runs three times side by side, each with different contents in whatever
the hardware leaves undefined, and these are compared. A value is thereby followed through every instruction, LDS and
scratch, to the bit; what escapes is a dependency that happens not to show for any of three contents (zeros, random
bits, and their complement), and what the compiler made of an undefined value before there were registers.

Always on are bounds, barriers that cannot be passed, and a limit of 10 million instructions per wave: `limited`. The
lock-step backend would take minutes to get there. So when waves have run for a while, native code runs ahead, on copies
of registers and memory, and if that reaches the limit, the launch ends with its error.

Two atomics never race with each other. Two plain writes of the same value do: nothing orders them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flydsl.errors import ArgumentError

CHECKS = ("uninitialized", "races", "alignment")

DEFAULT_INSTRUCTION_LIMIT = 10_000_000

_instruction_limit: ContextVar[int] = ContextVar("flydsl_instruction_limit", default=DEFAULT_INSTRUCTION_LIMIT)
_enabled: ContextVar[frozenset[str]] = ContextVar("flydsl_simulator_checks", default=frozenset())


@contextmanager
def checking(*checks: str) -> Iterator[None]:
    """Check the launches inside of the `with` block: by the checks named, or by all. ArgumentError for a wrong name."""
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise ArgumentError(f"there is no check {unknown[0]!r}", hint=f"the checks are {', '.join(CHECKS)}")
    token = _enabled.set(frozenset(checks or CHECKS))
    try:
        yield
    finally:
        _enabled.reset(token)


@contextmanager
def limited(*, instructions: int) -> Iterator[None]:
    """Inside of the `with` block, a wave that executes more instructions than this is taken for one that never ends."""
    token = _instruction_limit.set(instructions)
    try:
        yield
    finally:
        _instruction_limit.reset(token)


def instruction_limit() -> int:
    """How many instructions a wave may execute here."""
    return _instruction_limit.get()


def enabled_checks() -> frozenset[str]:
    """The checks that are turned on here."""
    return _enabled.get()
