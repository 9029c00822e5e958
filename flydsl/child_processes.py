"""Child processes of which a Ctrl-C leaves none behind."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from flydsl.interrupts import interrupt_afterwards


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
            with process:
                process.kill()
        raise
    return process
