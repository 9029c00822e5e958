"""The progress of launches and compilations, for views and for the message of one that is interrupted.

What runs says what it is, and how its progress is asked for; it reports nothing by itself, so it costs nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(eq=False)
class Task:
    """Something that runs now, as a `with` block. Ctrl-C in it says how far it came.

    what: it is, such as "matmul_0 on the simulator". total: of units, 0 if unknown. done, detail: ask how many are
    done, and what is done now; they may be called from any thread. kind: of the work, for `seconds_by_kind`.

    >>> str(Task("add_0 on the simulator", 8, "workgroups", done=lambda: 3))
    'add_0 on the simulator: 3 of 8 workgroups done'
    """

    what: str
    total: int = 0
    unit: str = ""
    done: Callable[[], int] = lambda: 0
    detail: Callable[[], str] = lambda: ""
    started: float = field(default_factory=time.monotonic)
    kind: str = ""

    @property
    def seconds(self) -> float:
        """The time since it began."""
        return time.monotonic() - self.started

    def __str__(self) -> str:
        counted = f"{self.done()} of {self.total} {self.unit} done" if self.total else ""
        return f"{self.what}: {', '.join(filter(None, (counted, self.detail()))) or 'under way'}"

    def __enter__(self) -> Task:
        _running.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        text = str(self) if kind is KeyboardInterrupt else ""
        _running.remove(self)
        if _watched and self.kind and all(task.kind != self.kind for task in _running):
            for seconds in _watched:
                seconds[self.kind] += self.seconds
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (text,)


_running: list[Task] = []
_watched: list[dict[str, float]] = []


def running() -> list[Task]:
    """The tasks that run now, on any thread, in the order in which they began."""
    return list(_running)


@contextmanager
def seconds_by_kind() -> Iterator[dict[str, float]]:
    """Add up the time of the tasks that end inside the `with` block, by their kind; one inside another counts once."""
    seconds: dict[str, float] = defaultdict(float)
    _watched.append(seconds)
    try:
        yield seconds
    finally:
        _watched[:] = [counter for counter in _watched if counter is not seconds]
