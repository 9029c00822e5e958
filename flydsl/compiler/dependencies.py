"""What a traced function read from its surroundings: globals, closure cells, attributes of the user's objects.

A compiled launcher holds as long as these are what they were. In a notebook they change all the time: a kernel is
redefined, a block size is set anew. Numbers, text, layouts and containers of them are compared by value; anything else
by identity, so a tensor that is changed in place goes unseen.
"""

from __future__ import annotations

import builtins
import dis
import functools
import operator
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flydsl.compiler.decorated import DecoratedFunction
from flydsl.compiler.form import form

_LIBRARY_ROOTS = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGE = __name__.partition(".")[0]
_ABSENT = object()
# Where a callable keeps the function behind it.
_WRAPPED = {
    DecoratedFunction: "function",
    types.MethodType: "__func__",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.partial: "func",
}


class Dependencies:
    """The surroundings of a function, and of the kernels and functions that it refers to, as they are now.

    values: compile-time arguments, which may be functions with surroundings of their own.
    """

    def __init__(self, function: Callable[..., Any], values: Iterable[Any] = ()) -> None:
        self._names: list[tuple[Mapping[str, Any], str, _Known]] = []
        self._cells: list[tuple[types.CellType, _Known]] = []
        self._functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
        self._seen: dict[tuple[int, ...], Any] = {}
        for value in (function, *values):
            self._follow(value, set())
        self._seen.clear()

    def unchanged(self) -> bool:
        """Whether everything is still what it was."""
        for namespace, name, known in self._names:
            if not known.is_now(namespace.get(name, _ABSENT)):
                return False
        for cell, known in self._cells:
            if not known.is_now(_contents(cell)):
                return False
        return all(
            function.__code__ is code and function.__defaults__ is defaults and function.__kwdefaults__ is keywords
            for function, code, defaults, keywords in self._functions
        )

    def _follow(self, value: Any, names: set[str]) -> None:
        """Look into a value: a function, or an object whose attributes `names` were read."""
        attribute = next((a for kind, a in _WRAPPED.items() if isinstance(value, kind)), None)
        if attribute is not None:
            self._follow(getattr(value, attribute), names)
        elif isinstance(value, types.FunctionType):
            if self._is_new(value) and not _is_library(sys.modules.get(value.__module__)):
                self._visit(value)
        elif self._is_new(value, names):
            for namespace in _namespaces(value):
                for name in names & namespace.keys():
                    self._record(namespace, name, names)

    def _is_new(self, *objects: Any) -> bool:
        """Whether these objects come together for the first time; they are kept, so that no id is reused."""
        key = tuple(map(id, objects))
        return self._seen.setdefault(key, objects) is objects

    def _visit(self, function: types.FunctionType) -> None:
        self._functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        names, attributes = _names(function.__code__)
        for cell in function.__closure__ or ():
            value = _contents(cell)
            self._cells.append((cell, _Known(value)))
            self._follow(value, attributes)
        # A builtin that is not shadowed yet is a dependency too.
        for name in names & (function.__globals__.keys() | vars(builtins).keys()):
            self._record(function.__globals__, name, attributes)

    def _record(self, namespace: Mapping[str, Any], name: str, attributes: set[str]) -> None:
        value = namespace.get(name, _ABSENT)
        self._names.append((namespace, name, _Known(value)))
        self._follow(value, attributes)


class _Known:
    """A value as it was. Every launch asks whether it still is, so objects are compared first and forms only then."""

    __slots__ = ("_form", "_items", "_value")

    def __init__(self, value: Any) -> None:
        self._value, self._form = value, form(value)
        items = _items(value)
        nested = any(isinstance(item, _CONTAINERS) for item in items)
        self._items = None if nested or isinstance(value, set) else items

    def is_now(self, now: Any) -> bool:
        """Whether `now` traces the same code."""
        if now is self._value:
            if not isinstance(now, _CONTAINERS):
                return True
            known = self._items
            if known is not None and len(known) == len(items := _items(now)) and all(map(operator.is_, items, known)):
                return True
        return bool(form(now) == self._form)


_CONTAINERS = (tuple, list, dict, set)


def _items(value: Any) -> Sequence[Any]:
    """What a list, tuple or dict holds, in order; nothing for other values."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return tuple(value) if isinstance(value, tuple | list) else ()


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the name is not assigned yet
        return _ABSENT


def _names(code: types.CodeType) -> tuple[set[str], set[str]]:
    """The global names that a function and those nested in it read, and all names that may be attributes."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            inner_names, inner_attributes = _names(const)
            names |= inner_names
            attributes |= inner_attributes
    return names, attributes


def _namespaces(value: Any) -> Iterator[Mapping[str, Any]]:
    """Where a module, class or object of the user's keeps its attributes."""
    if isinstance(value, types.ModuleType):
        if not _is_library(value):
            yield vars(value)
        return
    if not isinstance(value, type):
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            yield own
        value = type(value)
    for base in value.__mro__:
        if not _is_library(sys.modules.get(base.__module__)):
            yield vars(base)


def _is_library(module: types.ModuleType | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this one: taken not to change."""
    if module is None or module.__name__ == "__main__":
        return False
    if module.__name__.partition(".")[0] == _PACKAGE:
        return True
    file = getattr(module, "__file__", None)
    return file is None or file.startswith(_LIBRARY_ROOTS)
