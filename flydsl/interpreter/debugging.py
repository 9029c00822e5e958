"""pdb for kernels: it goes from line to line of the user's, and its `display` compares values of all lanes."""

from __future__ import annotations

import atexit
import pdb
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
from mlir import ir

from flydsl.errors.places import is_user_frame
from flydsl.expr.control_flow.generated import continuing, is_generated
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.numeric import Numeric
from flydsl.expr.tracing.breakpoints import breakpoints_call
from flydsl.expr.tracing.operands import FlyValue
from flydsl.interpreter.showing import of_lane


def stopping_in_the_users_lines() -> AbstractContextManager[None]:
    """Let `breakpoint()` start this debugger in the `with` block, where Python's own pdb would be started."""
    return breakpoints_call(_stop)


_debuggers: list[Debugger] = []


def _stop(*args: Any, **options: Any) -> None:
    """Stop in the caller's line, in the debugger that stopped before: it knows what is displayed."""
    if not _debuggers:
        _debuggers.append(Debugger())
    _debuggers[0].set_trace(sys._getframe(1))


# Packages that come with this one, or with torch. Python calls functions of theirs between any two lines of the user's:
# finalizers of objects, and hooks when the process forks.
_PACKAGES = ("numpy", "torch", "mlir", "llvmlite", "filelock")
_NEVER_SHOWN = [pattern for package in _PACKAGES for pattern in (package, f"{package}.*")]


class Debugger(pdb.Pdb):
    """Python's debugger without the frames between the user's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(skip=_NEVER_SHOWN, **options)
        atexit.register(self._end)

    def _end(self) -> None:
        """Trace nothing of what Python does when it takes its modules down."""
        if getattr(sys.gettrace(), "__self__", None) is self:
            sys.settrace(None)

    def stop_here(self, frame: FrameType) -> bool:
        """True if a step ends in a frame: only in one of the user's source."""
        return is_user_frame(frame) and not is_generated(frame.f_code) and super().stop_here(frame)

    def dispatch_call(self, frame: FrameType, arg: Any) -> Any:
        """Begin a function: none that holds a part of an expression, whose line has been shown."""
        return None if is_generated(frame.f_code) else super().dispatch_call(frame, arg)

    def dispatch_line(self, frame: FrameType) -> Any:
        """Begin a line, unless a statement of several lines, such as an `if`, only goes on in its first."""
        if frame.f_lasti in continuing(frame.f_code):
            return self.trace_dispatch
        return super().dispatch_line(frame)

    def _getval_except(self, *args: Any, **options: Any) -> Any:
        """The value of an expression that is displayed: its text, as `!=` of values compares in each lane."""
        value = super()._getval_except(*args, **options)
        if isinstance(value, Numeric) and value.is_static and value.is_float:  # as it is shown when a loop has taken it
            return _Text(f"{type(value).__name__}({of_lane(np.float64(value.value))})")
        return _Text(repr(value)) if isinstance(value, ArithValue | FlyValue | ir.Value) else value


@dataclass(frozen=True)
class _Text:
    text: str

    def __repr__(self) -> str:
        return self.text
