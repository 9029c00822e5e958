"""A fork by the user's program: it waits until no other thread compiles.

The child has only the thread that forked. Without the wait, MLIR and LLVM would stay locked in it, half way through the
work of the other threads. Our own forks (`codegen.isolate`) hold the locks that they need.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

from flydsl.codegen import llvm
from flydsl.codegen.isolate import is_own_fork
from flydsl.dialect.context import lock

_held = threading.local()


def install() -> None:
    """Have every later fork of this process wait; both processes go on without the locks."""
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


def _acquire() -> None:
    """Take the locks in the order in which a compilation does."""
    if is_own_fork():
        return
    _held.locks = ExitStack()
    _held.locks.enter_context(lock)
    if (of_llvm := llvm.loaded_lock()) is not None:
        _held.locks.enter_context(of_llvm)


def _release() -> None:
    locks, _held.locks = getattr(_held, "locks", None), None
    if locks is not None:
        locks.close()
