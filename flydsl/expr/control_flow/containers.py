"""Lists, dicts, objects and variables that code in a branch or loop may change, directly or through other references.

A body is traced once, however often the device runs it. So a change that it makes to a Python object happens in the
program only if the change becomes a value of the branch or loop. The source names the variables that a body assigns,
but an object can be changed through any reference to it, and a variable by a nested function. Therefore all objects
that a function can reach are compared before and after. Objects from outside of the function belong to the host, which
may count and record what is traced: among their changes, only those that add or remove values of the program matter.
An attribute that caches a value when it is first needed is not a change either, if it holds no values of the branch or
loop. An array of the host cannot hold values of the program, so a branch or loop must not change it at all, nor take
the next item of an iterator that was there before.
"""

from __future__ import annotations

import array
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from types import (
    BuiltinMethodType,
    CellType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Any

from mlir import ir

from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import TRACER, user_frames
from flydsl.expr.control_flow.tree import flatten, is_leaf
from flydsl.expr.numeric import is_python_number
from flydsl.expr.printing.refusals import change_within

# Objects of these packages do not change while they are traced, or are not ours to look into.
_FOREIGN = {"flydsl", "mlir", "torch", "numpy", "builtins", "types", "typing", "functools", "ast"}
_DEPTH = 6
_LARGEST = 4096
_LARGEST_DATA_BYTES = 1 << 20
_ABSENT = object()


class Reachable:
    """The mutable objects reachable from the variables of a function, with their contents.

    own, outer: the function's own variables, and those of the functions around it.
    paths: for each object how a user would write it, `accs` or `state.accs`.
    data, iterators: the arrays of the host, data_before what they held, and the iterators.
    copies: whether to copy the contents, as is needed to compare them.
    """

    def __init__(self, own: dict[str, Any], outer: dict[str, Any], *, copies: bool = True) -> None:
        self.objects: dict[int, Any] = {}
        self.paths: dict[int, str] = {}
        self.data: list[tuple[str, Any]] = []
        self.iterators: dict[int, Any] = {}
        for name, value in own.items():
            self._visit(value, name, _DEPTH)
        self._own = set(self.objects)
        for name, value in outer.items():
            self._visit(value, name, _DEPTH)
        self.before = self.contents() if copies else {}
        self.data_before = [_state_of_data(value) for _, value in self.data] if copies else []

    @staticmethod
    def from_here() -> Reachable:
        """The objects reachable from the running function of the user.

        Its own are also those of the functions that called it while they are traced.
        """
        frames = list(user_frames(TRACER))
        if not frames:
            return Reachable({}, {})
        own, outer = _variables(frames[0])
        found = Reachable(own, outer)
        found._claim_functions(frames[0], outer)
        for frame in frames[1:]:
            if found.objects.keys() <= found._own:
                break
            own, outer = _variables(frame)
            found.claim(tuple(own.values()))
            found._claim_functions(frame, outer)
        return found

    def _claim_functions(self, frame: FrameType, outer: dict[str, Any]) -> None:
        """Mark what the functions that a function has made change as its own: not the variables of the host."""
        for function in (value for name, value in outer.items() if name not in frame.f_code.co_freevars):
            self._own.add(id(function))
            if defaults := _defaults(function):
                self.claim(defaults)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                if name in frame.f_code.co_cellvars:
                    self.claim(cell)

    def _visit(self, value: Any, path: str, depth: int) -> None:
        if not depth or is_leaf(value):
            return
        inner: Iterable[tuple[str, Any]]
        if isinstance(value, FunctionType) and (id(value) in self.objects or not _is_written(value)):
            inner = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        elif isinstance(value, tuple):
            inner = ((f"{path}[{i}]", item) for i, item in enumerate(value))
        elif isinstance(value, MethodType | BuiltinMethodType):
            inner = ((path, value.__self__),)
        elif isinstance(value, partial):
            inner = ((path, value.func), (path, value.args), (path, value.keywords))
        elif is_data(value):
            self.data.append((path, value))
            return
        elif id(value) in self.objects or not _is_mutable(value):
            if hasattr(type(value), "__next__"):
                self.iterators[id(value)] = value
            return
        else:
            self.objects[id(value)] = value
            self.paths[id(value)] = path
            inner = _items(value, path)
        for place, item in inner:
            self._visit(item, place, depth - 1)

    def contents(self) -> dict[int, Any]:
        """A copy of the current contents of each object."""
        return {key: copied(value) for key, value in self.objects.items()}

    def restore(self, keys: list[int]) -> None:
        """Restore the contents of objects."""
        for key in keys:
            write(self.objects[key], self.before[key])

    def require_unchanged_data(self, word: str, at: SourceLocation | None) -> None:
        """Raise TraceError if an array of the host has changed. word: what was traced, `if` or a loop."""
        for (path, value), before in zip(self.data, self.data_before, strict=True):
            if _state_of_data(value) != before:
                raise TraceError(
                    f"{path} is changed in a runtime {word}, but it is an array of the host",
                    at=change_within(at, path) or at,
                    hint="it would change once, while this is traced, whichever way the device goes: keep values of "
                    "the device in fx.make_rmem_tensor(4, fx.Float32), or unroll with range_constexpr",
                )

    def changed(self, *others: dict[int, Any]) -> list[int]:
        """The keys of the objects whose contents before differ from those in one of `others`."""
        return [key for key in self.before if any(self._differs(key, other[key]) for other in others)]

    def _differs(self, key: int, new: Any) -> bool:
        old, new = _parts(self.before[key]), _parts(new)
        different = [
            (old.get(place, _ABSENT), new.get(place, _ABSENT))
            for place in {**old, **new}
            if old.get(place, _ABSENT) is not new.get(place, _ABSENT)
        ]
        if isinstance(self.before[key], dict):
            different = [pair for pair in different if not self._is_made_once(*pair)]
        return bool(different) if key in self._own else any(map(holds_value, (x for pair in different for x in pair)))

    def _is_made_once(self, old: Any, new: Any) -> bool:
        """True if an attribute or key that held nothing got an object, without values of the program that are new."""
        if not (old is None or old is _ABSENT) or new is _ABSENT or is_python_number(new):
            return False
        known = {id(leaf) for contents in self.before.values() for leaf in _values_in(contents)}
        made = Reachable({"": new}, {})
        leaves = [leaf for contents in (new, *made.before.values()) for leaf in _values_in(contents)]
        return all(id(leaf) in known for leaf in leaves)

    def claim(self, value: Any) -> None:
        """Mark an object, and the objects that it holds, as the function's own."""
        self._own.update(Reachable({"": value}, {}, copies=False).objects)

    def forget(self, value: Any) -> None:
        """Exclude an object, and the objects that it holds, from the comparison."""
        for key in Reachable({"": value}, {}, copies=False).objects:
            self._drop(key)

    def forget_variables(self, thunks: Sequence[Callable[[], Any]]) -> None:
        """Exclude the variables that functions read from the comparison, but not the objects that they hold."""
        for thunk in thunks:
            for cell in getattr(thunk, "__closure__", None) or ():
                self._drop(id(cell))

    def _drop(self, key: int) -> None:
        self.objects.pop(key, None)
        self.before.pop(key, None)


def _variables(frame: FrameType) -> tuple[dict[str, Any], dict[str, Any]]:
    """A function's own variables, and those that are functions, or of the functions around it."""
    variables = {name: value for name, value in frame.f_locals.items() if not name.startswith("__fly_")}
    free = frame.f_code.co_freevars
    outer = {name: v for name, v in variables.items() if name in free or isinstance(v, FunctionType)}
    return {name: v for name, v in variables.items() if name not in outer}, outer


def _values_in(contents: Any) -> list[Any]:
    """The values of the program right in the contents of an object."""
    items = contents.values() if isinstance(contents, dict) else contents if isinstance(contents, list) else [contents]
    leaves = [leaf for item in items for leaf in flatten(item).leaves]
    return [leaf for leaf in leaves if isinstance(leaf, ir.Value) or (is_leaf(leaf) and not is_python_number(leaf))]


def _parts(contents: Any) -> dict[Any, Any]:
    """A copy of contents, keyed by place."""
    if isinstance(contents, set):
        return {id(item): item for item in contents}
    return dict(enumerate(contents)) if isinstance(contents, list) else contents


def holds_value(value: Any) -> bool:
    """True if a value is, or contains, a value of the program."""
    return not all(map(is_python_number, flatten(value).leaves))


def write(target: Any, content: Any) -> None:
    """Replace the contents of an object in place."""
    if isinstance(target, list):
        target[:] = content
    elif isinstance(target, deque):
        target.clear()
        target.extend(content)
    elif isinstance(target, CellType):
        for value in content:
            target.cell_contents = value
    elif isinstance(target, dict | set):
        target.clear()
        target.update(content)
    elif isinstance(target, type):
        now = _attributes(target)
        for name in content.keys() | now.keys():
            if name not in content:
                type.__delattr__(target, name)
            elif now.get(name, _ABSENT) is not content[name]:
                type.__setattr__(target, name, content[name])
    else:
        slots = _slots(type(target))
        for name in slots:
            if name in content:
                object.__setattr__(target, name, content[name])
            elif hasattr(target, name):
                object.__delattr__(target, name)
        if hasattr(target, "__dict__"):
            vars(target).clear()
            vars(target).update({name: value for name, value in content.items() if name not in slots})


_ARRAYS = (("numpy", "ndarray"), ("torch", "Tensor"))


def is_data(value: Any) -> bool:
    """True for what holds numbers, and can hold no values of the program: an array, a tensor of torch, bytes."""
    return isinstance(value, bytearray | array.array) or (
        type(value).__module__.partition(".")[0] in ("numpy", "torch")
        and any(isinstance(value, getattr(sys.modules.get(library), name, ())) for library, name in _ARRAYS)
    )


def _state_of_data(value: Any) -> Any:
    """A value that differs after a change of an array's contents; None for an array that is not watched."""
    if isinstance(value, bytearray | array.array):
        return bytes(value)
    if hasattr(value, "is_inference"):
        return None if value.is_inference() else value._version  # torch counts the changes
    if value.dtype.hasobject:
        return [id(item) for item in value.flat[:_LARGEST]]
    return value.tobytes() if value.nbytes <= _LARGEST_DATA_BYTES else None


def _is_mutable(value: Any) -> bool:
    if isinstance(value, CellType):
        return True
    if isinstance(value, list | dict | set | deque):
        return len(value) <= _LARGEST
    if isinstance(value, type | FunctionType):
        return _is_written(value)
    if isinstance(value, ir.Operation) or not (hasattr(value, "__dict__") or _slots(type(value))):
        return False
    return isinstance(value, SimpleNamespace) or type(value).__module__.partition(".")[0] not in _FOREIGN


def _is_written(value: Any) -> bool:
    """True for a class or function of the user's: it has attributes that the source may set."""
    return (value.__module__ or "").partition(".")[0] not in _FOREIGN


def _defaults(function: FunctionType) -> tuple[Any, ...]:
    return (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def _slots(kind: type) -> frozenset[str]:
    """The attributes that objects of a class of Python's keep in slots."""
    written = [base for base in kind.__mro__ if "__slots__" in vars(base)]
    return frozenset(n for base in written for n, item in vars(base).items() if isinstance(item, MemberDescriptorType))


def _attributes(value: Any) -> dict[str, Any]:
    """A copy of the attributes of an object; of a class those that its source sets."""
    if isinstance(value, type):
        return {name: item for name, item in vars(value).items() if not name.startswith("__")}
    found = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return found | vars(value) if hasattr(value, "__dict__") else found


def _items(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | deque):
        return ((f"{path}[{i}]", item) for i, item in enumerate(value))
    if isinstance(value, dict):
        return ((f"{path}[{key!r}]", item) for key, item in value.items())
    if isinstance(value, CellType):
        return ((path, item) for item in content(value))
    if isinstance(value, set):
        return iter(())
    if isinstance(value, FunctionType):
        return chain(
            ((f"{path}.{name}", item) for name, item in vars(value).items()),
            zip(value.__code__.co_freevars, value.__closure__ or (), strict=True),
            ((f"a default of {path}", item) for item in _defaults(value)),
        )
    return ((f"{path}.{name}", item) for name, item in _attributes(value).items())


def copied(value: Any) -> Any:
    """A shallow copy of an object's contents."""
    if isinstance(value, CellType):
        return content(value)
    if isinstance(value, FunctionType):
        return vars(value).copy()
    if isinstance(value, deque):
        return list(value)
    return value.copy() if isinstance(value, list | dict | set) else _attributes(value)


def content(cell: CellType) -> list[Any]:
    """The contents of a closure variable's cell, in a list; an empty list if it is not assigned yet."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []
