"""The switch that makes launches interpreted: `flydsl.interpreting()` and FLYDSL_INTERPRET=1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flydsl import env
from flydsl.system.interrupts import holding

_is_on: ContextVar[bool | None] = ContextVar("flydsl_interpreting", default=None)


@contextmanager
def interpreting(on: bool = True) -> Iterator[None]:
    """Run the launches of the `with` block as Python: `breakpoint()` in a kernel stops with the values of all lanes.

    on: False for launches that are compiled whatever FLYDSL_INTERPRET says. The tensors are on the CPU.
    """
    with holding(_is_on, on):
        yield


def is_interpreting() -> bool:
    """True if launches of this thread are interpreted."""
    found = _is_on.get()
    return env.flag("FLYDSL_INTERPRET") if found is None else found
