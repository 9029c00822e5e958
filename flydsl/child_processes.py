"""Child processes of which a Ctrl-C leaves none behind."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Defer Ctrl-C to the end of the `with` block.

    One between the start of a child and its number's arrival in a variable would leave a child that nobody knows of,
    and Python prints and drops exceptions raised in its fork hooks.
    """
    is_in_hands_of_python = signal.getsignal(signal.SIGINT) is not None
    if threading.current_thread() is not threading.main_thread() or not is_in_hands_of_python:
        yield  # no KeyboardInterrupt is raised here
        return
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


def start_child(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process, with the options of `subprocess.Popen`; a Ctrl-C meanwhile ends it.

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
