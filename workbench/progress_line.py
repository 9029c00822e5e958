"""A line under the cell that runs: how far a launch or a compilation is that takes longer than two seconds.

A thread looks while a cell runs, so what runs does nothing for it. The line goes away with what it is about; what
remains of it is an output without content, which saved notebooks do not show.
"""

from __future__ import annotations

import threading
from typing import Any

from IPython.display import display

from flydsl.progress import Task, running
from workbench.kit.html import escape
from workbench.sweeps.progress import bar_html

SECONDS_BEFORE = 2.0
_SECONDS_BETWEEN = 0.5


def show_progress(shell: Any) -> None:
    """Watch the cells of a shell, from the next one on."""
    watch = _Watch()
    shell.events.register("pre_run_cell", watch.begin)
    shell.events.register("post_run_cell", watch.end)


def hide_progress(shell: Any) -> None:
    """Watch no longer, from the next cell on."""
    for event in ("pre_run_cell", "post_run_cell"):
        for known in list(shell.events.callbacks[event]):
            if isinstance(getattr(known, "__self__", None), _Watch):
                shell.events.unregister(event, known)


def line_html(task: Task) -> str:
    """The line."""
    done, total = task.done(), task.total
    bar = bar_html(done, total) if total else ""
    return f"<div>{escape(str(task))}, {task.seconds:.0f} s{bar}</div>"


class _Watch:
    """The thread, and the line that it shows."""

    def __init__(self) -> None:
        self._over: threading.Event | None = None

    def begin(self, _info: Any = None) -> None:
        """A cell begins to run."""
        self.end()
        self._over = threading.Event()
        threading.Thread(target=self._look, args=[self._over], daemon=True).start()

    def end(self, _result: Any = None) -> None:
        """It has ended."""
        if self._over is not None:
            self._over.set()
            self._over = None

    def _look(self, over: threading.Event) -> None:
        line = Line()
        while not over.wait(_SECONDS_BETWEEN):
            line.show(next((task for task in reversed(running()) if task.seconds >= SECONDS_BEFORE), None))
        line.show(None)


class Line:
    """One line that is shown, changed and taken away. It begins empty: what has no content counts as no output."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._is_empty = True

    def show(self, task: Task | None) -> None:
        """Show how far a task is, or nothing."""
        if task is None and self._is_empty:
            return
        if self._handle is None:
            self._handle = display({}, raw=True, display_id=True)
        self._is_empty = task is None
        if self._handle is not None:  # None where nothing is displayed
            content = {} if task is None else {"text/html": line_html(task), "text/plain": str(task)}
            self._handle.update(content, raw=True)
