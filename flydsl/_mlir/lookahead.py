"""Trace a kernel ahead in a copy of this process, because some wrong operands make MLIR end the process.

MLIR's builders check little: an operand of a type that an operation never expects, or an attribute of another kind, is
an assertion that fails in C++. So the first time that a trace calls one, the process forks, and the copy traces on to
the end. This one follows: it makes a call when the copy has come to the one after it. Where the copy dies, the
operation that it was about to make is an error at the user's line.

It costs a fork, and another processor for the time of the trace, once for each compilation of a program that builds
MLIR's operations itself.
In a module that is built by hand, outside of a trace, each operation is made in a copy of its own first: a fork each.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import os
import re
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import IO, Any

from mlir import ir

from flydsl.compiler.trace import CompilationContext, is_tracing
from flydsl.errors import TraceError
from flydsl.errors.places import user_location
from flydsl.expr.tracing import builder
from flydsl.expr.tracing.outlived import note_raw
from flydsl.system.temporary_files import temporary_file

_OPERATIONS = ir.Operation.__base__  # of operations as such, and of the dialects' classes
_PACKAGE = __name__.partition(".")[0] + "."
_STDOUT, _STDERR = 1, 2
_CALLS_AT_ONCE = 1 << 12
# What MLIR and LLVM write before the reason for which they end the process.
_BEFORE_REASON = re.compile("Assertion |LLVM ERROR: ")


def install() -> None:
    """Trace ahead when a program first calls a builder, or takes an operation out of its block."""
    builder.hooks.before_call = _before_call
    for name in ("erase", "detach_from_parent"):
        setattr(_OPERATIONS, name, _watched(name, getattr(_OPERATIONS, name)))


def _watched(name: str, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The method of operations, which MLIR answers by ending the process if others use their values.

    This package takes out operations only where nothing uses them: a runtime `if` needs no second trace.
    """

    @functools.wraps(method)
    def watched(operation: Any) -> Any:
        if is_tracing() and not _is_ours(sys._getframe(1)):
            _before_call(name)
            note_raw(operation)
        return method(operation)

    return watched


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(_PACKAGE)


class _Copy:
    """State of the copied process: the pipe in which the parent hears of its calls; None in any other process."""

    calls: int | None = None

    @classmethod
    def become(cls, calls: int, output: IO[bytes]) -> None:
        """Silence this process, which is the copy. The other one will see its outcome too."""
        cls.calls = calls
        gc.disable()
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdout = sys.stderr = nothing = open(os.devnull, "w")  # noqa: SIM115 - a notebook's go through a thread
        os.dup2(nothing.fileno(), _STDOUT)
        os.dup2(output.fileno(), _STDERR)


class _Ahead:
    """A copy of this process that is ahead of it in the same trace, by one call of a builder or more."""

    def __init__(self, pid: int, calls: int, output: IO[bytes], opened: contextlib.ExitStack) -> None:
        self._pid, self._calls, self._output, self._opened = pid, calls, output, opened
        self._calls_ahead = 0
        self._fatal: TraceError | None = None

    def follow(self, name: str) -> None:
        """Wait until the copy has made this call, of a builder of that name, and come to the next one or to its end.

        TraceError if the call ended it.
        """
        if self._pid and not self._calls_ahead:
            self._calls_ahead = len(os.read(self._calls, _CALLS_AT_ONCE))
            if not self._calls_ahead:
                self._note_outcome(name)
        if self._pid:
            self._calls_ahead -= 1
        if self._fatal is not None:  # again, where a program has caught it
            raise self._fatal

    def _note_outcome(self, name: str) -> None:
        status = os.waitpid(self._pid, 0)[1]
        self._pid = 0
        if os.WIFSIGNALED(status):
            self._output.seek(0)
            output = self._output.read().decode(errors="replace")
            self._fatal = _died(name, output, signal.Signals(os.WTERMSIG(status)).name)
        self._opened.close()

    def end(self) -> None:
        """Leave no copy behind where the trace has ended early, as by a KeyboardInterrupt."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
        self._opened.close()


def _before_call(name: str) -> Callable[[], None] | None:
    """The function that the builder calls when it has made its operation, if any."""
    if _Copy.calls is not None:
        os.write(_Copy.calls, b".")  # all before this call has gone well
        return None
    if not is_tracing():
        return _try_alone(name)
    state = CompilationContext.get_current()
    if state.thread != threading.get_ident():
        return None  # a copy has no other thread, and would wait for ever for the waves that are interpreted in them
    if state.ahead is None:
        state.ahead = _fork()
        state.at_end.append(_leave if state.ahead is None else state.ahead.end)
    if state.ahead is not None:
        state.ahead.follow(name)
    return None


def _try_alone(name: str) -> Callable[[], None] | None:
    """Make an operation of a module that is built by hand in a copy first, which ends with it."""
    ahead = _fork()
    if ahead is None:
        return _leave
    try:
        ahead.follow(name)
    finally:
        ahead.end()
    return None


def _leave() -> None:
    os._exit(0)


def _fork() -> _Ahead | None:
    """Copy this process, which is about to make a call: None in the copy."""
    with contextlib.ExitStack() as opened:
        output = opened.enter_context(temporary_file())
        calls, theirs = os.pipe()
        opened.callback(os.close, calls)
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads' locks: the copy takes none of them
            pid = os.fork()
        if pid == 0:
            _Copy.become(theirs, output)
            return None
        os.close(theirs)  # so that the pipe ends with the copy
        return _Ahead(pid, calls, output, opened.pop_all())


def _died(name: str, output: str, signal_name: str) -> TraceError:
    """The error for the operation that ended the copy, which this process is about to make."""
    found = _BEFORE_REASON.search(output)
    reason = output[found.end() :].splitlines()[0] if found else signal_name
    return TraceError(
        f"{name}: MLIR cannot take these operands ({reason})",
        at=user_location(),
        hint="compare their number, their types and the attributes with those of the operation",
    )
