"""Python programs in processes of their own that begin at once: copies of one that has loaded torch and the compiler.

Loading these takes four seconds, which a program that is about something else need not spend. What a program finds is
as at the start of Python, but for these modules, the simulator's runtime and LLVM's process, which are there already.
A test that is about what is loaded, or when, starts Python itself.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]


def run_python(
    *arguments: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments`, where these begin with `-c program`, `-m module` or a file, and wait for its end.

    env: all of its environment; by default that of this process."""
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in arguments]
    request = {"arguments": words, "cwd": str(cwd or Path.cwd()), "env": dict(env or os.environ)}
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        requests, replies = _server()
        socket.send_fds(requests, [b"."], [stdout.fileno(), stderr.fileno()])
        replies.write(json.dumps(request) + "\n")
        replies.flush()
        status = json.loads(replies.readline())
        return subprocess.CompletedProcess(words, status, _content(stdout), _content(stderr))


def _content(file: TextIO) -> str:
    file.seek(0)
    return file.read()


@cache
def _server() -> tuple[socket.socket, Any]:
    """The process that is copied, by its socket: it starts with the first program."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "tests.processes", str(theirs.fileno())]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
        )
    stream = ours.makefile("rw")

    def end() -> None:
        stream.close()
        ours.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # a program that has no end
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    atexit.register(end)
    return ours, stream


def _get_ready() -> None:
    """Load what is common to the programs."""
    import pytest  # noqa: F401
    import torch  # noqa: F401

    import flydsl.compiler
    import flydsl.expr
    import flydsl.runtime.simulated
    import flydsl.simulator.timing.session  # noqa: F401
    from flydsl.codegen import llvm_process
    from flydsl.simulator.native.library import library

    llvm_process.start()
    _ = library().run
    gc.collect()
    gc.freeze()


def _serve(requests: socket.socket) -> None:
    """Run programs, each in a copy of this process, until nobody holds the other end any more."""
    with requests.makefile("rw") as stream:
        while True:
            message, outputs, _, _ = socket.recv_fds(requests, 1, 2)
            if not message:
                return
            request = json.loads(stream.readline())
            child = os.fork()
            if not child:
                for output, descriptor in zip(outputs, (1, 2), strict=True):
                    os.dup2(output, descriptor)
                break
            for output in outputs:
                os.close(output)
            stream.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
            stream.flush()
    requests.close()
    _run(**request)


def _run(arguments: list[str], cwd: str, env: dict[str, str]) -> None:
    """Become a program."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    flag, *rest = arguments
    sys.path[:1] = [os.path.dirname(os.path.abspath(flag)) if flag not in ("-c", "-m") else ""]
    sys.path.append(str(ROOT))  # which an installation in place has there, too
    sys.argv = [flag, *rest[1:]] if flag in ("-c", "-m") else arguments
    if flag == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif flag == "-c":
        module = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(module))
    else:
        runpy.run_path(flag, run_name="__main__")


if __name__ == "__main__":
    _get_ready()
    _serve(socket.socket(fileno=int(sys.argv[1])))
