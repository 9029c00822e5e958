"""Common parts of branches and loops: the names that they assign, and their source location."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from flydsl.dialect.location import trace_error
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.containers import Reachable
from flydsl.expr.control_flow.region import TracedRegion
from flydsl.expr.control_flow.undefined import unassigned
from flydsl.expr.tracing.executing import executing

Thunks = Sequence[Callable[[], Any]]


class Construct:
    """A branch or loop of the user's source.

    names, thunks: the names that it assigns, and a function for each that reads its value. runtime: whether it is
    traced as an operation; otherwise Python executes it while tracing.
    """

    word = "construct"
    runtime = False

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """One of the class, or where the interpreter is on of its twin, which is executed."""
        executor = executing.get()
        return super().__new__(cls if executor is None else executor.twins.get(cls, cls))

    def __init__(self, names: Sequence[str], thunks: Thunks) -> None:
        self._names = names
        self._thunks = thunks
        self._at = user_location()
        self._region: TracedRegion | None = None
        self._objects: Reachable

    def _open(self) -> TracedRegion:
        """Begin a region."""
        self._region = TracedRegion(self._at, self.word, self._objects.iterators)
        self._region.open()
        return self._region

    def _close(self) -> None:
        assert self._region is not None
        self._region.close()

    def _values(self) -> list[Any]:
        """The current values of the names."""
        return [value_of(name, thunk) for name, thunk in zip(self._names, self._thunks, strict=True)]


def value_of(name: str, thunk: Callable[[], Any]) -> Any:
    """The value of a name, or Undefined."""
    try:
        return thunk()
    except NameError:
        return unassigned(name)


def changed_containers(names: Sequence[str], containers: Sequence[str], thunks: Thunks) -> list[tuple[str, Any]]:
    """The names whose elements or attributes a loop assigns and whose value is a container, one per container."""
    found: dict[int, tuple[str, Any]] = {}
    for name, thunk in zip(containers, thunks, strict=True):
        value = value_of(name, thunk)
        if isinstance(value, list | dict | SimpleNamespace) and name not in names:
            found.setdefault(id(value), (name, value))
    return list(found.values())


def escape(what: str, *constructs: Construct) -> None:
    """Raise TraceError for a `return`, `break`, `raise` or `try` in constructs if one of them is a runtime one."""
    runtime = [construct.word for construct in constructs if construct.runtime]
    if what == "return" and "loop" in runtime:
        raise trace_error("`return` in a runtime loop cannot be traced", _RETURN_IN_LOOP)
    if runtime:
        raise trace_error(f"`{what}` in a runtime {runtime[0]} cannot be traced", _HINTS[what])


_RETURN_IN_LOOP = "put it under an `if`, outside of `try` and `with`; one that always returns needs no loop"
_HINTS = {
    "return": "put what follows into the other branch, or compute the result in a name and return it at the end",
    "break": "make the condition part of the loop: while condition and not done: ...",
    "continue": "put the rest of the body under the opposite condition",
    "try": "the device raises nothing, so nothing is caught there: check the operands with an `if`",
    "raise": "the device raises nothing: write a flag to a tensor, or check on the host before the launch",
    "yield": "a runtime loop yields at the end of its body, and only with range(..., init=[...])",
}
