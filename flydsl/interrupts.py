"""Ctrl-C at a moment when it would do harm."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Defer Ctrl-C to the end of the `with` block: for short work that must not be left half done.

    Python itself prints and drops exceptions that are raised in its fork hooks.
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
