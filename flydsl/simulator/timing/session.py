"""`with tracing() as traced`: times every launch inside the block, whoever makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flydsl.arch.launch_limits import Dim3
    from flydsl.simulator.timing.trace import Trace


@dataclass(frozen=True)
class TracedLaunch:
    """A launch and its trace."""

    kernel: str
    grid: Dim3
    block: Dim3
    trace: Trace

    @property
    def time_us(self) -> float:
        """The estimated time."""
        return self.trace.time_us

    def __repr__(self) -> str:
        return f"grid {self.grid}, block {self.block}: {self.trace}"


@dataclass
class Tracing:
    """The launches that were timed, in their order. execute: whether they are also carried out."""

    execute: bool
    launches: list[TracedLaunch] = field(default_factory=list)

    @property
    def time_us(self) -> float:
        """The time of all launches, one after the other."""
        return sum(launch.time_us for launch in self.launches)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.launches)) or "no launch was timed"


_current: ContextVar[Tracing | None] = ContextVar("flydsl_tracing", default=None)


@contextmanager
def tracing(*, execute: bool = False) -> Iterator[Tracing]:
    """Time the launches on the simulator that this thread makes inside the `with` block, and keep their traces.

    Launches are timed and not carried out: of a large grid only some workgroups run, on a copy, and tensors keep their
    values. With execute=True launches are also carried out as always, for programs where one depends on another's
    results. Launches on a GPU are not timed.
    """
    session = Tracing(execute)
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)


def current_tracing() -> Tracing | None:
    """The active `tracing` session, if any."""
    return _current.get()
