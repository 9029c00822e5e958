"""`with counting() as counters`: every launch inside is counted, whoever makes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from flydsl.simulator.counters.report import LaunchCounters


@dataclass
class Counting:
    """The launches that were counted, in the order in which they ended. A launch that failed is not among them."""

    launches: list[LaunchCounters] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.launches)) or "no launch was counted"


_current: ContextVar[Counting | None] = ContextVar("flydsl_counting", default=None)


@contextmanager
def counting() -> Iterator[Counting]:
    """Count what the launches on the simulator do that this thread makes inside the `with` block.

    Results do not change; a launch takes up to 1.5 times as long. Launches on a GPU are not counted.
    """
    session = Counting()
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)


def current_counting() -> Counting | None:
    """Where to put the counters of a launch, if it is to be counted."""
    return _current.get()
