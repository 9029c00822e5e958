"""A tool of LLVM's that is started before its input is there, and reads it from a pipe: to load it takes longer than
its work."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Sequence

from flydsl.system.child_processes import end_child, start_child

SECONDS = 120  # a code object takes a hundredth of one

# Started tools that have no input yet. No WeakSet: a Ctrl-C in the callback of a weak reference is lost.
_waiting: list[weakref.ref[PendingTool]] = []


class PendingTool:
    """A tool that is being started. Its owner calls `finish`, once, or `end`. Raises OSError if it does not start.

    command: of a program that reads its input up to the end, and writes its output to stdout.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process: subprocess.Popen[bytes] = start_child(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C in the terminal is for the user's process
        )
        _waiting[:] = [weakref.ref(self), *(pending for pending in _waiting if pending() is not None)]

    def finish(self, content: bytes) -> tuple[bytes, str]:
        """The output for an input; none, and the tool's message, if it fails."""
        with self._process as process:
            try:
                output, message = process.communicate(content, SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                return b"", str(error)
            except BaseException:  # a KeyboardInterrupt, mostly
                end_child(process)
                raise
        words = message.decode("utf-8", "replace").strip() or f"exit status {process.returncode}"
        return (output, words) if process.returncode == 0 else (b"", words)

    def end(self) -> None:
        """End it, if it has not ended."""
        if self._process.returncode is None:
            end_child(self._process)

    def close_in_child(self) -> None:
        """In a fork of this process: its copy of the pipe would keep the end of the input from the tool."""
        if self._process.stdin is not None:
            self._process.stdin.close()


def _close_in_child() -> None:
    for pending in _waiting:
        if tool := pending():
            tool.close_in_child()


os.register_at_fork(after_in_child=_close_in_child)
