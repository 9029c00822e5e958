"""What a traced function read from its surroundings: globals, closure cells and attributes of the user's modules.

A compiled launcher holds as long as these are what they were. In a notebook they change all the time: a kernel is
redefined, a block size is set anew.
"""

from __future__ import annotations

import copy
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

from flydsl.compiler.kernel_function import KernelFunction
from flydsl.layout import Layout, Tile

_VALUES = (bool, int, float, complex, str, bytes, type(None), tuple, frozenset, Layout, Tile)
_MUTABLE = (list, dict, set)
_LIBRARY_ROOTS = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGE = __name__.partition(".")[0]
_ABSENT = object()


class Dependencies:
    """The surroundings of a function, and of the kernels and functions that it refers to, as they are now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._names: list[tuple[dict[str, Any], str, Any, bool]] = []
        self._cells: list[tuple[types.CellType, Any, bool]] = []
        self._visit(function, set())

    def unchanged(self) -> bool:
        """Whether everything is still what it was."""
        for namespace, name, value, by_value in self._names:
            now = namespace.get(name, _ABSENT)
            if now is not value and not (by_value and _same(now, value)):
                return False
        for cell, value, by_value in self._cells:
            now = _contents(cell)
            if now is not value and not (by_value and _same(now, value)):
                return False
        return True

    def _visit(self, function: Callable[..., Any], seen: set[int]) -> None:
        if id(function) in seen:
            return
        seen.add(id(function))
        for cell in function.__closure__ or ():
            value = _contents(cell)
            self._cells.append((cell, *_snapshot(value)))
            self._follow(value, seen)
        names = set(_names(function.__code__))
        for name in names & function.__globals__.keys():
            value = function.__globals__[name]
            self._names.append((function.__globals__, name, *_snapshot(value)))
            self._follow(value, seen)
            if isinstance(value, types.ModuleType) and not _is_library(value):
                self._visit_module(value, names, seen)

    def _visit_module(self, module: types.ModuleType, names: set[str], seen: set[int]) -> None:
        """Attributes of a user's module that the function may have read."""
        for name in names & vars(module).keys():
            self._names.append((vars(module), name, *_snapshot(vars(module)[name])))
            self._follow(vars(module)[name], seen)

    def _follow(self, value: Any, seen: set[int]) -> None:
        if isinstance(value, KernelFunction) or hasattr(value, "__flydsl_function__"):
            self._visit(value.function, seen)
        elif isinstance(value, types.FunctionType) and not _is_library(sys.modules.get(value.__module__)):
            self._visit(value, seen)


def _snapshot(value: Any) -> tuple[Any, bool]:
    """A value to compare with later, and whether to compare by value. Mutable containers are copied."""
    if isinstance(value, _MUTABLE):
        return copy.deepcopy(value), True
    return value, isinstance(value, _VALUES)


def _same(now: Any, then: Any) -> bool:
    return type(now) is type(then) and bool(now == then)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the name is not assigned yet
        return _ABSENT


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


def _is_library(module: types.ModuleType | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this one: taken not to change."""
    if module is None or module.__name__.partition(".")[0] == _PACKAGE:
        return module is not None
    file = getattr(module, "__file__", None)
    return (file is None and module.__name__ != "__main__") or bool(file and file.startswith(_LIBRARY_ROOTS))
