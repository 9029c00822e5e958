"""Child processes of which a Ctrl-C leaves none behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from flydsl.system.interrupts import interrupt_afterwards


def start_child(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, with the options of `subprocess.Popen`; a Ctrl-C meanwhile ends it.

    One between the start and the arrival of the child's number in a variable would leave a child that nobody knows of.
    Raises OSError if it cannot be started.
    """
    process = None
    try:
        with interrupt_afterwards():
            process = subprocess.Popen(command, **options)
    except BaseException:  # a KeyboardInterrupt, mostly
        if process is not None:
            end_child(process)
        raise
    return process


def end_child(process: subprocess.Popen[Any]) -> None:
    """Kill a process, wait for its end, and close its pipes, wherever a Ctrl-C has left `subprocess`.

    Popen's own `wait` is not called: one that is interrupted just after it has taken its lock keeps it, and the next
    one waits for that lock forever.
    """
    process.kill()
    if process.returncode is None:
        try:
            process.returncode = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        except ChildProcessError:  # somebody else has waited for it
            process.returncode = -signal.SIGKILL
    with process:
        pass
