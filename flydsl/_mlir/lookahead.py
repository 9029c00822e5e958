"""Trace a kernel ahead in a copy of this process, because some wrong operands make MLIR end the process.

MLIR's builders check little: an operand of a type that an operation never expects, or an attribute of another kind, is
an assertion that fails in C++. So the first time that a trace calls one, the process forks, and the copy traces on to
the end while this one waits. Where the copy dies, the operation that it was about to make is an error at the user's
line. Else this process does the same, and nothing has happened.

It costs a fork and the time of the trace, once for each compilation of a program that builds MLIR's operations itself.
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
    """State of the copied process: a note, shared with the parent, of the operation that it is about to make."""

    note: mmap.mmap | None = None


def _before_call(name: str) -> Callable[[], None] | None:
    """The function that the builder calls when it has made its operation, if any."""
    if _Copy.note is not None:
        _write_note(name)
        return None
    if not is_tracing():
        return _try_alone(name)
    state = CompilationContext.get_current()
    if state.thread != threading.get_ident():
        return None  # a copy has no other thread, and would wait for ever for the waves that are interpreted in them
    if not state.is_looked_ahead:
        state.is_looked_ahead = True
        state.fatal = _outlived(name)
        if _Copy.note is not None:
            state.at_end.append(_leave)
    if state.fatal is not None:  # again, where a program has caught it
        raise state.fatal
    return None


def _try_alone(name: str) -> Callable[[], None] | None:
    """Make an operation of a module that is built by hand in a copy first, which ends with it."""
    fatal = _outlived(name)
    if fatal is not None:
        raise fatal
    return None if _Copy.note is None else _leave


def _leave() -> None:
    os._exit(0)


def _write_note(name: str) -> None:
    assert _Copy.note is not None
    _Copy.note[:_NOTE_BYTES] = f"{name}\n{_place_text()}".encode()[:_NOTE_BYTES].ljust(_NOTE_BYTES, b"\0")


def _place_text() -> str:
    at = user_location()
    return "" if at is None else f"{at.file}\n{at.line}"


def _outlived(name: str) -> TraceError | None:
    """Fork. In the copy, return None at once; here, None once the copy has ended normally, else its error."""
    note = mmap.mmap(-1, _NOTE_BYTES)
    with temporary_file() as output:
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads' locks: the copy takes none of them
            pid = os.fork()
        if pid == 0:
            _become_the_copy(note, output)
            _write_note(name)
            return None
        try:
            status = os.waitpid(pid, 0)[1]
        except BaseException:  # a KeyboardInterrupt, mostly: do not leave the copy behind
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        if not os.WIFSIGNALED(status):
            return None
        output.seek(0)
        return _died(note, output.read().decode(errors="replace"), signal.Signals(os.WTERMSIG(status)).name)


def _become_the_copy(note: mmap.mmap, output: IO[bytes]) -> None:
    """Silence this process. The other one will see its outcome too."""
    _Copy.note = note
    gc.disable()
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = nothing = open(os.devnull, "w")  # noqa: SIM115 - a notebook's go through a thread
    os.dup2(nothing.fileno(), _STDOUT)
    os.dup2(output.fileno(), _STDERR)


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
