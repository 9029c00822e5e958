"""A line on the page while a cell runs: how far a launch or a compilation is that takes longer than two seconds.

A thread looks while a cell runs, so what runs does nothing for it. The line is no output of the cell: an output could
be emptied but not taken away, and would cut what the cell prints in two. It is shown where widgets are (JupyterLab and
Jupyter Notebook), and a notebook that runs without a page has none.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from flydsl.progress import Task, running

if TYPE_CHECKING:
    from workbench.kit.progress_strip import ProgressStrip

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
            watch = getattr(known, "__self__", None)
            if isinstance(watch, _Watch):
                shell.events.unregister(event, known)
                watch.end()


class _Watch:
    """The thread, and the line that it shows."""

    def __init__(self) -> None:
        self._over: threading.Event | None = None
        self._line = Line()

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
        while not over.wait(_SECONDS_BETWEEN):
            self._line.show(next((task for task in reversed(running()) if task.seconds >= SECONDS_BEFORE), None))
        self._line.show(None)


class Line:
    """One line that is shown, changed and taken away. Widgets are imported when there is something to show."""

    def __init__(self) -> None:
        self._strip: ProgressStrip | None = None

    def show(self, task: Task | None) -> None:
        """Show how far a task is, or nothing."""
        if self._strip is None:
            if task is None:
                return
            self._strip = _new_strip()
        if task is None:
            self._strip.text = ""
            return
        with self._strip.hold_sync():
            self._strip.share = task.done() / task.total if task.total else -1.0
            self._strip.text = f"{task}, {task.seconds:.0f} s"


def _new_strip() -> ProgressStrip:
    from workbench.kit.progress_strip import ProgressStrip

    return ProgressStrip()
