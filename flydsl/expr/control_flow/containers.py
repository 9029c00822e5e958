"""Lists, dicts and objects that the code in a branch or loop may change in place.

A body is traced once, whatever number of times the device runs it, so a change that it makes to a Python object is not
what the program does, unless the change becomes a value of the branch or loop. Names are easy: the source says which
ones are assigned. An object can be changed through any reference to it; so all that a function can reach are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

from mlir import ir

from flydsl.dialect.location import user_frame
from flydsl.expr.tree import is_leaf

# Objects of these packages do not change while they are traced, or are not ours to look into.
_FOREIGN = {"flydsl", "mlir", "torch", "numpy", "builtins", "types", "typing", "functools", "ast"}
_DEPTH = 6
_LARGEST = 4096


class Reachable:
    """The mutable objects that the variables of a function lead to, with their contents.

    paths: for each object how a user would write it, `accs` or `state.accs`.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        self.objects: dict[int, Any] = {}
        self.paths: dict[int, str] = {}
        for name, value in variables.items():
            self._visit(value, name, _DEPTH)
        self.before = self.contents()

    def _visit(self, value: Any, path: str, depth: int) -> None:
        if not depth or is_leaf(value):
            return
        if isinstance(value, FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                self._visit(content(cell), name, depth - 1)
            return
        if isinstance(value, tuple):
            for i, item in enumerate(value):
                self._visit(item, f"{path}[{i}]", depth - 1)
            return
        if id(value) in self.objects or not _is_mutable(value):
            return
        self.objects[id(value)] = value
        self.paths[id(value)] = path
        for inner, item in _items(value, path):
            self._visit(item, inner, depth - 1)

    def contents(self) -> dict[int, Any]:
        """A copy of what each object holds now."""
        return {key: _copy(value) for key, value in self.objects.items()}

    def restore(self, contents: dict[int, Any]) -> None:
        """Give the objects these contents."""
        for key, content in contents.items():
            write(self.objects[key], content)

    def changed(self, *others: dict[int, Any]) -> list[int]:
        """The objects whose contents differ between what they were and one of `others`."""
        return [key for key, old in self.before.items() if any(not _is_same(old, other[key]) for other in others)]

    def forget(self, value: Any) -> None:
        """Take an object, and what it holds, out of the comparison."""
        inside = Reachable({"": value})
        for key in inside.objects:
            self.objects.pop(key, None)
            self.before.pop(key, None)


def caller_variables() -> dict[str, Any]:
    """The variables of the user's function that is running, without the ones that rewriting has put there."""
    frame = user_frame()
    variables = {} if frame is None else frame.f_locals
    return {name: value for name, value in variables.items() if not name.startswith("__fly_")}


def write(target: Any, content: Any) -> None:
    """Replace what an object holds, in place."""
    if isinstance(target, list):
        target[:] = content
    elif isinstance(target, dict | set):
        target.clear()
        target.update(content)
    else:
        vars(target).clear()
        vars(target).update(content)


def _is_mutable(value: Any) -> bool:
    if isinstance(value, list | dict | set):
        return len(value) <= _LARGEST
    if isinstance(value, type | ir.Operation) or not hasattr(value, "__dict__"):
        return False
    return isinstance(value, SimpleNamespace) or type(value).__module__.partition(".")[0] not in _FOREIGN


def _items(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        return ((f"{path}[{i}]", item) for i, item in enumerate(value))
    if isinstance(value, dict):
        return ((f"{path}[{key!r}]", item) for key, item in value.items())
    if isinstance(value, set):
        return iter(())
    return ((f"{path}.{name}", item) for name, item in list(vars(value).items()))


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict | set) else dict(vars(value))


def _is_same(a: Any, b: Any) -> bool:
    """Whether two copies of contents hold the same objects."""
    if isinstance(a, set):
        return set(map(id, a)) == set(map(id, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(a[key] is b[key] for key in a)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def content(cell: Any) -> Any:
    """What a closure's cell holds; None where it holds nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
