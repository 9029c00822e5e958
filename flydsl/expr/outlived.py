"""Values that outlive their trace, in a list of the host for example: using one is an error.

Their memory is MLIR's, which is gone after the trace: without this, reading one ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import ref

from flydsl.expr.undefined import Undefined

_traces: list[list[ref[Any]]] = []


@cache
def _outlived() -> Undefined:  # a global one would fail whatever looks through the globals of modules
    return Undefined(
        "a value of a kernel or launcher that was traced before, which the host has kept",
        "keep values of the device in variables of the kernel, which each trace makes anew",
        text="?",
    )


def note(made: Any) -> None:
    """Remember an object whose `value` is of the current trace."""
    if _traces:
        _traces[-1].append(ref(made))


@contextmanager
def values_end() -> Iterator[None]:
    """Take the value of each object that was noted in the `with` block, and is still there, at its end."""
    _traces.append([])
    try:
        yield
    finally:
        for noted in _traces.pop():
            if (made := noted()) is not None:
                made.value = _outlived()
