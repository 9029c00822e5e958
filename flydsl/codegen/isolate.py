"""Run a piece of work in a forked copy of this process.

LLVM's backend answers code that it cannot compile (an instruction the GPU lacks, too much LDS) by ending the process.
In a copy, that ends the copy, and the user's notebook gets an error with LLVM's words. A fork costs a few milliseconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import resource
import select
import signal
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import IO, Any, NoReturn, TypeVar

from flydsl.errors import CompileError
from flydsl.system.interrupts import interrupt_afterwards
from flydsl.system.temporary_files import NoRoomError, temporary_file

T = TypeVar("T")

_STDERR = 2
_STEP_MS = 500
_own_fork = threading.local()
# Behind a whole result. Exit status of a child that could not write it: sysexits.h's EX_IOERR.
_COMPLETE = b"\n"
_NO_ROOM = 74


class ProcessEndedError(CompileError):
    """The isolated work ended its process; `output` is what it wrote to stderr before."""

    def __init__(self, output: str) -> None:
        super().__init__(output or "the compiling process ended without a word")
        self.output = output


def run_isolated(work: Callable[[], T], *, lock: contextlib.AbstractContextManager[Any]) -> tuple[T, str]:
    """Call `work` in a forked process: its result, which is pickled, and what was written to stderr.

    `lock` guards the library that the work uses: held during the fork, it is the child's afterwards, so that no other
    thread's half-done call is copied.

    Raises ProcessEndedError when the child did not come to its end as it should. An interrupt ends the child.
    """
    # Files, not pipes: they need no reader while the child writes, and a third process cannot hold an end open.
    with temporary_file() as result, temporary_file() as stderr:
        pid = 0
        try:
            with lock, interrupt_afterwards():
                pid = _fork()
                if pid == 0:
                    _run_child(work, result, stderr)
            status = _status(pid)
        except BaseException:  # a KeyboardInterrupt, mostly: do not leave the child behind
            if pid:
                _end(pid)
            raise
        return _outcome(status, result, stderr)


def _outcome(status: int, result: IO[bytes], stderr: IO[bytes]) -> tuple[Any, str]:
    """The contents of the files of a child that ended with that status."""
    stderr.seek(0)
    output = stderr.read().decode("utf-8", "replace").strip()
    result.seek(0)
    content = result.read()
    if os.waitstatus_to_exitcode(status) == _NO_ROOM:
        raise NoRoomError(output or "no space left")
    # The last byte says that all of it is there, even where other code has fetched the child's status.
    if status != 0 or not content.endswith(_COMPLETE):
        raise ProcessEndedError(output)
    return pickle.loads(content), output


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns that other threads' locks are copied; the child takes none but `lock`.
        warnings.simplefilter("ignore", DeprecationWarning)
        _own_fork.under_way = True
        try:
            return os.fork()
        except OSError as error:
            raise CompileError(f"the system refuses the compiling process: {error}") from error
        finally:
            _own_fork.under_way = False


def is_own_fork() -> bool:
    """True while this thread forks a compiling process, which holds the locks that it needs."""
    return getattr(_own_fork, "under_way", False)


def _run_child(work: Callable[[], Any], result: IO[bytes], stderr: IO[bytes]) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # one in the terminal is for this process, too
        gc.disable()  # a collection would copy every page that holds a Python object: 150 ms with torch loaded
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(stderr.fileno(), _STDERR)
        content = pickle.dumps(work(), protocol=pickle.HIGHEST_PROTOCOL)
        status = _write(content + _COMPLETE, result)
    except NoRoomError:  # of work that is itself isolated
        status = _NO_ROOM
    finally:  # nothing of the parent's (buffers, exit handlers, notebook sockets) may run a second time
        with contextlib.suppress(OSError):
            if status not in (0, _NO_ROOM):
                os.write(_STDERR, traceback.format_exc(limit=0).encode())
        os._exit(status)


def _write(content: bytes, result: IO[bytes]) -> int:
    """Write the result to send back; return the exit status."""
    try:
        result.write(content)
        result.flush()
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(_STDERR, str(error).encode())
        return _NO_ROOM
    return 0


def _status(pid: int) -> int:
    """The status of a child at its end."""
    _await_end(pid)
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # the user's SIGCHLD is ignored, or another waitpid was faster: it has ended
        return 0


def _await_end(pid: int) -> None:
    """Wait for a process in steps: an interrupt just before a call that waits would be looked at after it."""
    if not hasattr(os, "pidfd_open"):  # macOS
        return
    try:
        process = os.pidfd_open(pid)
    except OSError:  # an old kernel, or it has ended and its status is gone
        return
    try:
        ended = select.poll()
        ended.register(process, select.POLLIN)
        while not ended.poll(_STEP_MS):
            pass
    finally:
        os.close(process)


def _end(pid: int) -> None:
    """End a process, unless it has ended: its number may be another's by now."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
