"""Child processes that a Ctrl-C never leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from flydsl.system.interrupts import interrupt_afterwards


def start_child(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, with the options of `subprocess.Popen`; a Ctrl-C meanwhile ends it.

    A Ctrl-C is deferred until the child's object is in a variable, as nobody could end it otherwise. Raises OSError if
    the process cannot be started.
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
    """Kill a process, wait for its end, and close its pipes, whatever a Ctrl-C has interrupted in `subprocess`.

    Popen's own `wait` is not called: if an earlier call was interrupted just after it took its lock, the next one
    would wait for that lock forever.
    """
    process.kill()
    if process.returncode is None:
        try:
            process.returncode = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        except ChildProcessError:  # somebody else has waited for it
            process.returncode = -signal.SIGKILL
    with process:
        pass
