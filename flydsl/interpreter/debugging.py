"""pdb for kernels: it goes from line to line of the user's, and its `display` compares values of all lanes."""

from __future__ import annotations

import pdb
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl import env
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.tracing.operands import FlyValue


@contextmanager
def stopping_in_the_users_lines() -> Iterator[None]:
    """Let `breakpoint()` start this debugger in the `with` block, where Python's own pdb would be started."""
    hook = sys.breakpointhook
    if hook is not sys.__breakpointhook__ or env.text("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = _stop
    try:
        yield
    finally:
        sys.breakpointhook = hook


_debuggers: list[Debugger] = []


def _stop(*args: Any, **options: Any) -> None:
    """Stop in the caller's line, in the debugger that stopped before: it knows what is displayed."""
    if not _debuggers:
        _debuggers.append(Debugger())
    _debuggers[0].set_trace(sys._getframe(1))


class Debugger(pdb.Pdb):
    """Python's debugger without the frames between the user's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(skip=["flydsl", "flydsl.*", "contextlib"], **options)

    def _getval_except(self, *args: Any, **options: Any) -> Any:
        """The value of an expression that is displayed: its text, as `!=` of values compares in each lane."""
        value = super()._getval_except(*args, **options)
        return _Text(repr(value)) if isinstance(value, ArithValue | FlyValue | ir.Value) else value


@dataclass(frozen=True)
class _Text:
    text: str

    def __repr__(self) -> str:
        return self.text
