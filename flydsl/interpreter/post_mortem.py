"""Expressions in a debugger that looks at a launch which has failed: they are executed where it stopped.

`pdb.pm()`, `python -m pdb`, `pytest --pdb` and IPython's `%debug` come when MLIR's context is left. Their prompt is
`pdb.Pdb.interaction`, which is wrapped once a launch has failed: while it shows, the execution goes on where it was.
"""

from __future__ import annotations

import contextvars
import pdb
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import FrameType, TracebackType
from typing import Any

from mlir import ir

from flydsl.dialect.context import context, lock
from flydsl.expr.tracing.emit import is_traced
from flydsl.interpreter.execution import Execution


@dataclass
class _Failure:
    """The execution that failed last, and what its context variables were. count: of all failures."""

    execution: Execution | None = None
    variables: contextvars.Context | None = None
    count: int = 0


_last = _Failure()


def failures() -> int:
    """The number of executions that have failed."""
    return _last.count


def keep(x: Execution) -> None:
    """Keep an execution that fails now, for the debugger that comes after it."""
    _last.execution, _last.variables, _last.count = x, contextvars.copy_context(), _last.count + 1
    if not hasattr(pdb.Pdb.interaction, "__wrapped__"):
        pdb.Pdb.interaction = _reentering(pdb.Pdb.interaction)  # type: ignore[method-assign]


def _reentering(interaction: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(interaction)
    def interact(self: pdb.Pdb, frame: FrameType | None, failed: Any = None) -> Any:
        x, variables = _last.execution, _last.variables
        if failed is None or x is None or variables is None or is_traced():
            return interaction(self, frame, failed)
        with lock, context(), ir.Location.unknown(), ir.InsertionPoint(x.block):
            return variables.copy().run(interaction, self, frame, _to_the_users_line(failed))

    return interact


def _to_the_users_line(failed: Any) -> Any:
    """A traceback without our frames after the user's last one. failed: a traceback, from 3.13 on perhaps an error."""
    traceback: TracebackType | None = getattr(failed, "__traceback__", failed)
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    while entries and _is_ours(entries[-1].tb_frame):
        entries.pop()
    made = None
    for entry in reversed(entries):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made or failed


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in ("flydsl", "numpy", "contextlib")
