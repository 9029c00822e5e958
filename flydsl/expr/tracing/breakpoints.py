"""The debugger that `breakpoint()` starts in a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flydsl import env


@contextmanager
def breakpoints_call(stop: Callable[..., Any]) -> Iterator[None]:
    """Have `breakpoint()` call a function in the `with` block, where Python would start its own pdb.

    A debugger that the program chose, by PYTHONBREAKPOINT or `sys.breakpointhook`, stays.
    """
    hook = sys.breakpointhook
    if hook is not sys.__breakpointhook__ or env.text("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = stop
    try:
        yield
    finally:
        sys.breakpointhook = hook
