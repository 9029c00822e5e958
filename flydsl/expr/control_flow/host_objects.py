"""Refuse changes to host objects that only tracing would make: of arrays, and in a runtime branch or loop of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from flydsl.dialect.location import trace_error
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import user_location
from flydsl.expr.control_flow.containers import Reachable, copied, write
from flydsl.expr.control_flow.region import open_word, word_after

CHANGING_METHODS = {
    "append", "appendleft", "extend", "extendleft", "insert", "remove", "pop", "popleft", "clear", "sort", "reverse",
    "rotate", "update", "setdefault", "popitem", "add", "discard", "difference_update", "intersection_update",
    "symmetric_difference_update", "fill", "put", "itemset", "resize",
}  # fmt: skip
_CONTAINERS = (list, dict, set, bytearray, deque)
_LIBRARIES = ("numpy", "torch", "array")
_HINT = (
    "it would change once, when this is traced, and whichever way the device goes: assign to a variable of the kernel, "
    "or write to a tensor"
)


def require_not_hosts(value: Any, path: str, what: str) -> Any:
    """Return an object that is about to be changed. Raise TraceError for a host's in a runtime branch or loop.

    An array of the host must not be changed at all: it would be once, while tracing, and not by each call.

    path: the object as written in the source. what: an attribute's name, or "element" for an element of a container.
    """
    word = open_word()
    if word and _changes_host(value, what):
        raise trace_error(f"the host's object {path} is changed in a runtime {word}", _HINT)
    if what == "element" and type(value).__module__.partition(".")[0] in _LIBRARIES:
        raise trace_error(
            f"{path} is an array of the host, which this changes once, while tracing, and not in each call",
            "change it before the call, or pass it as an argument, and let a kernel write to it",
        )
    return value


def require_own_iterator(value: Any, what: str) -> Any:
    """Return an iterator whose items are about to be taken. Raise TraceError for one that a branch did not make.

    what: the source that takes them.
    """
    if word := word_after(value):
        raise trace_error(
            f"{what} in a runtime {word}",
            "it would advance once, while this is traced, whichever way the device goes: count in a variable",
        )
    return value


def require_no_function(value: Any, path: str) -> Any:
    """Return the value of a statement that only names it. Raise TraceError for a function, which is not called."""
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
        raise trace_error(f"{path} is a function, which this does not call", f"{path}() does")
    return value


def _changes_host(value: Any, what: str) -> bool:
    """True if the change is to the object itself, and not made by a method or property of the user's class."""
    package = type(value).__module__.partition(".")[0]
    if what == "element":
        return isinstance(value, _CONTAINERS) or package in _LIBRARIES
    return package not in ("flydsl", "mlir") and not isinstance(getattr(type(value), what, None), property)


class HostObjects:
    """Objects reachable from global names whose attributes or elements a branch or loop sets.

    names, thunks: these names, and a function for each that reads its value. Local variables are ignored.
    """

    def __init__(self, names: Sequence[str], thunks: Sequence[Callable[[], Any]]) -> None:
        self._objects: dict[int, tuple[str, Any, Any]] = {}
        for name, thunk in zip(names, thunks, strict=True):
            if is_global(name, thunk):
                self._note(name, thunk)

    def _note(self, name: str, thunk: Callable[[], Any]) -> None:
        try:
            value = thunk()
        except NameError:
            return
        if isinstance(value, ModuleType):
            self._objects[id(value)] = (name, value, dict(vars(value)))
        reachable = Reachable({name: value}, {})
        for key, found in reachable.objects.items():
            self._objects[key] = (reachable.paths[key], found, reachable.before[key])

    def require_unchanged(self, word: str, at: SourceLocation | None) -> None:
        """Raise TraceError if tracing has changed an object, and undo the change."""
        for path, value, before in self._objects.values():
            if not _is_same(before, dict(vars(value)) if isinstance(value, ModuleType) else copied(value)):
                write(value, before)
                raise TraceError(f"the host's object {path} is changed in a runtime {word}", at=at, hint=_HINT)


def refuse_globals(names: Sequence[str], thunks: Sequence[Callable[[], Any]], word: str, at: Any) -> None:
    """Raise TraceError if a runtime branch or loop assigns a global variable."""
    for name, thunk in zip(names, thunks, strict=True):
        if is_global(name, thunk):
            raise _global_assigned(name, word, at)


def require_no_branch(name: str) -> None:
    """Raise TraceError if a runtime branch or loop is open: a global variable is about to be assigned."""
    if word := open_word():
        raise _global_assigned(name, word, user_location())


def _global_assigned(name: str, word: str, at: SourceLocation | None) -> TraceError:
    return TraceError(
        f"the global variable {name} is assigned in a runtime {word}",
        at=at,
        hint="it is the host's, which has no values of the device: assign to a variable of the kernel",
    )


def is_global(name: str, thunk: Callable[[], Any]) -> bool:
    """True if the name that a function reads is global."""
    return name in thunk.__code__.co_names


def _is_same(before: Any, now: Any) -> bool:
    if isinstance(before, dict):
        return before.keys() == now.keys() and all(now[key] is value for key, value in before.items())
    if isinstance(before, list):
        return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
    return bool(before == now)
