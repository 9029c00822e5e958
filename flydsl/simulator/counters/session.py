"""`with counting() as counters`: counts every launch that is made inside the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flydsl.simulator.checks import enabled_checks
from flydsl.simulator.timing.session import current_tracing, tracing
from flydsl.system.interrupts import holding

if TYPE_CHECKING:
    from flydsl.simulator.counters.report import LaunchCounters


@dataclass
class Counting:
    """The launches that were counted, in the order in which they ended. Failed launches are left out."""

    launches: list[LaunchCounters] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.launches)) or "no launch was counted"


_current: ContextVar[Counting | None] = ContextVar("flydsl_counting", default=None)


@contextmanager
def counting() -> Iterator[Counting]:
    """Count the launches on the simulator that this thread makes inside the `with` block.

    Results do not change; a launch takes up to 1.5 times as long. Launches on a GPU are not counted.
    """
    session = Counting()
    with holding(_current, session):
        yield session


def current_counting() -> Counting | None:
    """The active `counting` session, if any."""
    return _current.get()


@contextmanager
def counted_into(counters: list[LaunchCounters]) -> Iterator[None]:
    """Count the launches inside the block, unless they are under checks, and add their counters to a list.

    They are timed, too, where the model of time can. A session around receives the counters.
    """
    if enabled_checks():
        yield
        return
    around = current_counting()
    with counting() as counted, nullcontext() if current_tracing() else tracing(execute=True, only_known=True):
        try:
            yield
        finally:
            counters.extend(counted.launches)
            if around is not None:
                around.launches.extend(counted.launches)
