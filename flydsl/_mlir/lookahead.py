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
import mmap
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
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.tracing import builder
from flydsl.expr.tracing.outlived import note_raw
from flydsl.places import user_location
from flydsl.scratch import temporary_file

_OPERATIONS = ir.Operation.__base__  # of operations as such, and of the dialects' classes
_PACKAGE = __name__.partition(".")[0] + "."
_STDOUT, _STDERR = 1, 2
_NOTE_BYTES = 512
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
    """State of the copied process: a note, shared with the parent, of the call that it is about to make, and a pipe."""

    note: mmap.mmap | None = None
    calls = -1

    @classmethod
    def become(cls, note: mmap.mmap, calls: int, output: IO[bytes]) -> None:
        """Silence this process, which is the copy. The other one will see its outcome too."""
        cls.note, cls.calls = note, calls
        gc.disable()
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdout = sys.stderr = nothing = open(os.devnull, "w")  # noqa: SIM115 - a notebook's go through a thread
        os.dup2(nothing.fileno(), _STDOUT)
        os.dup2(output.fileno(), _STDERR)

    @classmethod
    def write_note(cls, name: str) -> None:
        assert cls.note is not None
        cls.note[:_NOTE_BYTES] = f"{name}\n{_place_text()}".encode()[:_NOTE_BYTES].ljust(_NOTE_BYTES, b"\0")

    @classmethod
    def tell_call(cls, name: str) -> None:
        """Tell the parent that all before this call has gone well."""
        cls.write_note(name)
        os.write(cls.calls, b".")


class _Ahead:
    """A copy of this process that is ahead of it in the same trace, by one call of a builder or more."""

    def __init__(self, pid: int, note: mmap.mmap, calls: int, output: IO[bytes], opened: contextlib.ExitStack) -> None:
        self._pid, self._note, self._calls, self._output, self._opened = pid, note, calls, output, opened
        self._calls_ahead = 0
        self._fatal: TraceError | None = None

    def follow(self) -> None:
        """Wait until the copy has come to its next call, or to its end. TraceError for the call that ended it."""
        if self._pid and not self._calls_ahead:
            self._calls_ahead = len(os.read(self._calls, _CALLS_AT_ONCE))
            if not self._calls_ahead:
                self._note_outcome()
        if self._pid:
            self._calls_ahead -= 1
        if self._fatal is not None:  # again, where a program has caught it
            raise self._fatal

    def _note_outcome(self) -> None:
        status = os.waitpid(self._pid, 0)[1]
        self._pid = 0
        if os.WIFSIGNALED(status):
            self._output.seek(0)
            output = self._output.read().decode(errors="replace")
            self._fatal = _died(self._note, output, signal.Signals(os.WTERMSIG(status)).name)
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
    if _Copy.note is not None:
        _Copy.tell_call(name)
        return None
    if not is_tracing():
        return _try_alone(name)
    state = CompilationContext.get_current()
    if state.thread != threading.get_ident():
        return None  # a copy has no other thread, and would wait for ever for the waves that are interpreted in them
    if state.ahead is None:
        state.ahead = _fork(name)
        state.at_end.append(_leave if state.ahead is None else state.ahead.end)
    if state.ahead is not None:
        state.ahead.follow()
    return None


def _try_alone(name: str) -> Callable[[], None] | None:
    """Make an operation of a module that is built by hand in a copy first, which ends with it."""
    ahead = _fork(name)
    if ahead is None:
        return _leave
    try:
        ahead.follow()
    finally:
        ahead.end()
    return None


def _leave() -> None:
    os._exit(0)


def _place_text() -> str:
    at = user_location()
    return "" if at is None else f"{at.file}\n{at.line}"


def _fork(name: str) -> _Ahead | None:
    """Copy this process, which is about to make a call: None in the copy."""
    note = mmap.mmap(-1, _NOTE_BYTES)
    with contextlib.ExitStack() as opened:
        output = opened.enter_context(temporary_file())
        calls, theirs = os.pipe()
        opened.callback(os.close, calls)
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads' locks: the copy takes none of them
            pid = os.fork()
        if pid == 0:
            _Copy.become(note, theirs, output)
            _Copy.write_note(name)
            return None
        os.close(theirs)  # so that the pipe ends with the copy
        return _Ahead(pid, note, calls, output, opened.pop_all())


def _died(note: mmap.mmap, output: str, signal_name: str) -> TraceError:
    """The error for the operation that ended the copy."""
    name, *place = note[:_NOTE_BYTES].rstrip(b"\0").decode(errors="replace").split("\n")
    found = _BEFORE_REASON.search(output)
    reason = output[found.end() :].splitlines()[0] if found else signal_name
    at: Any = user_location()
    if len(place) == 2 and at is not None and (place[0] != at.file or place[1] != str(at.line)):
        at = SourceLocation(place[0], int(place[1]))
    return TraceError(
        f"{name}: MLIR cannot take these operands ({reason})",
        at=at,
        hint="are their number, their types and the attributes those that the operation has?",
    )
