"""Have LLVM compile in another process.

LLVM's backend answers code that it cannot compile (an instruction the GPU lacks, too much LDS) by ending its process.
So it runs in one of its own, `llvm_worker`, which the user's process starts once, early, as loading LLVM takes as long
as tracing a small kernel. Processes that the user forks share it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from flydsl import env
from flydsl.codegen.isolate import ProcessEndedError
from flydsl.codegen.llvm_worker import Request, Result
from flydsl.errors import CompileError
from flydsl.system.child_processes import start_child
from flydsl.system.temporary_files import temporary_file

# LLVM takes some ten megabytes for a small kernel: a quarter of its time was to get them from the system page by page.
_HUGE_PAGES = "glibc.malloc.hugetlb=1"

_lock = threading.Lock()
_requests: socket.socket | None = None
_starter: subprocess.Popen[bytes] | None = None


class Job:
    """A module that is being compiled. Its owner must call `result()`, once, or `end`. pid: known once it has begun.

    A file or socket that were left open would be closed by the garbage collector, and there Python loses a Ctrl-C
    without a word.
    """

    def __init__(self, request: Request) -> None:
        self.pid: int | None = None
        self._open = contextlib.ExitStack()
        try:
            self._stderr = self._open.enter_context(temporary_file())
            ours, theirs = socket.socketpair()
            with ours, theirs:  # the stream keeps ours open
                _send(request.target, [theirs.fileno(), self._stderr.fileno()])
                self._stream = self._open.enter_context(ours.makefile("rwb"))
            with contextlib.suppress(OSError):  # of a process that has ended; `result` says so
                marshal.dump(vars(request), self._stream)
                self._stream.flush()
        except BaseException:  # a KeyboardInterrupt, mostly
            self.end()
            raise

    def end(self) -> None:
        """Close what it has open, unless that is done. LLVM cannot hand over its result then."""
        with contextlib.suppress(OSError):
            self._open.close()

    def result(self) -> tuple[Result, str]:
        """The result, and what LLVM wrote to stderr. Raises ProcessEndedError if LLVM ended its process."""
        try:
            result = self._received()
            _bury_starter()
            self._stderr.seek(0)
            output = self._stderr.read().decode("utf-8", "replace").strip()
        finally:
            self.end()
        if result is None:
            raise ProcessEndedError(output)
        return result, output

    def _received(self) -> Result | None:
        try:
            self.pid = marshal.load(self._stream)
            result: Result = marshal.load(self._stream)
        except (EOFError, OSError, TypeError, ValueError):
            return None
        except BaseException:  # a KeyboardInterrupt, mostly: do not leave LLVM behind
            if self.pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            raise
        return result


def start(*target: str) -> None:
    """Start the process, unless that is done: it loads LLVM meanwhile, and gets ready for a target, if it is given.

    target: GPU and opt level, as `Request` has them.
    """
    with _lock:
        _started(*target)


def _send(target: bytes, descriptors: list[int]) -> None:
    with _lock:
        try:
            socket.send_fds(_started(), [target], descriptors)
        except OSError:  # it was ended from outside
            _forget()
            socket.send_fds(_started(), [target], descriptors)


def _started(*target: str) -> socket.socket:
    """The socket of the process."""
    global _requests, _starter
    if _requests is None:
        ours, theirs = socket.socketpair()
        flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        program = [sys.executable, *flags, str(Path(__file__).with_name("llvm_program.py")), str(theirs.fileno())]
        program += [str(llvm_library()), *target]
        with theirs:
            try:
                _starter = start_child(
                    program,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise CompileError(
                    f"the system refuses the compiling process: {error}",
                    hint=f"it is started as {sys.executable!r} (sys.executable)",
                ) from error
            except BaseException:  # a KeyboardInterrupt, mostly
                ours.close()
                raise
        _requests = ours
        atexit.register(_forget)
    return _requests


def _environment() -> dict[str, str]:
    """The user's environment, with huge pages added to what the GNU library is told."""
    tunables = env.text("GLIBC_TUNABLES")
    return {**env.variables_now(), "GLIBC_TUNABLES": f"{tunables}:{_HUGE_PAGES}".lstrip(":")}


def _forget() -> None:
    """Close the socket, which ends the process unless a fork of this one holds it too."""
    global _requests
    atexit.unregister(_forget)
    if _requests is not None:
        _requests.close()
    _requests = None


def _bury_starter() -> None:
    """Wait for the starter, which has ended after leaving a process of its own behind."""
    global _starter
    starter, _starter = _starter, None
    if starter is not None:
        starter.wait()


def llvm_library() -> Path:
    """The library that has LLVM, without loading it."""
    (library,) = (path for path in (_llvmlite() / "binding").iterdir() if path.stem.endswith("llvmlite"))
    return library


def _llvmlite() -> Path:
    """The folder of llvmlite, which this process need not import."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise CompileError("llvmlite is missing, which has LLVM", hint="pip install llvmlite")
    return Path(spec.origin).parent
