"""Ctrl-C deferred where it would do harm: leave work half done, or get lost."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Defer Ctrl-C to the end of the `with` block: for short work that must not be left half done.

    Python itself prints and drops exceptions that are raised in its fork hooks.
    """
    is_handled_by_python = signal.getsignal(signal.SIGINT) is not None
    if threading.current_thread() is not threading.main_thread() or not is_handled_by_python:
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


@contextlib.contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable, which must have a default, in the `with` block.

    It is set inside of `try`: a Ctrl-C between `token = variable.set(value)` and a `try` below would leave it set.
    """
    before = variable.get()
    try:
        variable.set(value)
        yield
    finally:
        variable.set(before)


@contextlib.contextmanager
def finalizers_interrupted_afterwards() -> Iterator[None]:
    """Raise a Ctrl-C that arrives in a finalizer at the end of the `with` block; Python would print and drop it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no KeyboardInterrupt is raised here
        return
    hook, interrupts = sys.unraisablehook, []

    def keep(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            interrupts.append(unraisable.exc_value)
        else:
            hook(unraisable)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = hook
    if interrupts:
        raise KeyboardInterrupt
