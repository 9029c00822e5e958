"""The surroundings that a traced function read: globals, closure cells, attributes of the user's objects.

A compiled launcher is valid as long as these do not change. In a notebook they change all the time: a kernel is
redefined, a block size is set to another value. Changes of these are detected:

- numbers, text, layouts, and containers of them and their views, compared by value; arrays, byte arrays, deques too
- attributes of the user's modules, classes, functions and objects, in a `__dict__` or in slots, through properties,
  descriptors and methods, and the values of enumerations; in the modules of libraries numbers and text
- tensors on the CPU of at most 1,024 elements by value; others by torch's count of their changes in place
- names given as text, as in `globals()["BLOCK"]` and `getattr(config, "block")`, where the text stands in the function
- defaults of parameters, the arguments of a `functools.partial`, the list of a method such as `table.get`
- the environment, if a traced function names `environ` or `getenv`

Not detected: changes of a name that is computed while tracing, of what a library's function reads, of files, and of
what weak references, context variables and `ctypes` lead to.
"""

from __future__ import annotations

import builtins
import dis
import functools
import operator
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from flydsl import env
from flydsl.compiler.caching.value_key import is_mutable_data, value_key
from flydsl.compiler.decorated import DecoratedFunction

_STANDARD_LIBRARY = os.path.dirname(os.__file__)
# Where packages are: in Python's folder, the user's, or that of the Python behind a virtual environment.
_LIBRARY_FOLDERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_PACKAGE = __name__.partition(".")[0]
ABSENT = object()
"""The value of a name that has none."""
# Where a callable keeps the function behind it.
_WRAPPED = {
    DecoratedFunction: "function",
    types.MethodType: "__func__",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.partial: "func",
    property: "fget",
    functools.cached_property: "func",
    type(functools.cache(len)): "__wrapped__",
}


class Dependencies:
    """The surroundings of a function, and of the kernels and functions that it refers to, as they are now.

    values: compile-time arguments, which may be functions with surroundings of their own.
    """

    def __init__(self, function: Callable[..., Any], values: Iterable[Any] = ()) -> None:
        self._attributes: set[str] = set()
        count = -1
        while count < len(self._attributes):  # a function further on may read attributes of an object seen before
            count = len(self._attributes)
            self._names: list[tuple[Mapping[str, Any], str, _Known]] = []
            self._cells: list[tuple[types.CellType, _Known]] = []
            self._contents: list[tuple[Any, _Known]] = []
            self._functions: list[tuple[types.FunctionType, Any, Any, Any]] = []
            self._seen: dict[int, Any] = {}
            for value in (function, *values):
                self._follow(value)
        self._seen.clear()
        reads = not self._attributes.isdisjoint(_ENVIRONMENT)
        self._environment = dict(env.variables()) if reads else None

    @property
    def attributes(self) -> frozenset[str]:
        """The names that the functions may read as attributes."""
        return frozenset(self._attributes)

    def unchanged(self) -> bool:
        """True if nothing has changed."""
        for namespace, name, known in self._names:  # at every launch: loops are quicker than `all`
            now = namespace.get(name, ABSENT)
            if now is not known.constant and not known.is_now(now):
                return False
        for cell, known in self._cells:
            if not known.is_now(cell_contents(cell)):
                return False
        for value, known in self._contents:
            if not known.is_now(value):
                return False
        for function, code, defaults, keywords in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not keywords:
                return False
        return self._environment is None or self._environment == env.variables()

    def _follow(self, value: Any) -> None:
        """Inspect a value: a function, a container, or an object with attributes."""
        attribute = next((a for kind, a in _WRAPPED.items() if isinstance(value, kind)), None)
        if attribute is not None:
            self._follow(getattr(value, attribute))
            if isinstance(value, types.MethodType):
                self._follow(value.__self__)
            elif isinstance(value, functools.partial):
                self._follow_contents(value.args, value.keywords)
        elif not self._is_new(value):
            return
        elif isinstance(value, types.FunctionType):
            if not is_library(sys.modules.get(value.__module__)):
                self._visit(value)
        elif isinstance(value, tuple | list | dict):
            if len(value) <= _LARGEST:
                for item in _items(value):
                    self._follow(item)
        elif isinstance(value, _METHODS):
            if not isinstance(value.__self__, types.ModuleType):
                self._follow_contents(value.__self__)
        elif isinstance(value, types.ModuleType) and is_library(value):
            for name in variable_names(value, self._attributes):
                self._record(vars(value), name)
        else:
            self._follow_attributes(list(_namespaces(value)))

    def _follow_attributes(self, namespaces: Sequence[Mapping[str, Any]]) -> None:
        """namespaces: in the order in which Python looks. A name may appear in one that does not have it yet."""
        names = self._attributes | _IMPLICIT
        places: dict[str, int] = {}
        for place, namespace in enumerate(namespaces):
            places.update(dict.fromkeys(names & namespace.keys(), place))
        for name, last in places.items():
            for namespace in namespaces[: last + 1]:
                self._record(namespace, name)

    def _follow_contents(self, *values: Any) -> None:
        """Inspect objects that no name leads to: what they hold counts, and what that leads to."""
        for value in values:
            if value is not None:
                self._contents.append((value, _Known(value)))
                self._follow(value)

    def _is_new(self, value: Any) -> bool:
        """True the first time that this object is seen. The object is kept, so that no id is reused."""
        if id(value) in self._seen:
            return False
        self._seen[id(value)] = value
        return True

    def _visit(self, function: types.FunctionType) -> None:
        self._functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        defaults = function.__defaults__ or ()
        mutable = [value for value in defaults if isinstance(value, _CONTAINERS) or is_mutable_data(value)]
        self._follow_contents(*mutable, function.__kwdefaults__)
        for default in defaults:
            self._follow(default)
        names, attributes, modules = names_of(function.__code__)
        self._attributes |= attributes
        for cell in function.__closure__ or ():
            value = cell_contents(cell)
            self._cells.append((cell, _Known(value)))
            self._follow(value)
        for module in modules:
            self._follow(sys.modules.get(module))
        if own := vars(function):
            self._follow_attributes([own])
        # A name of a builtin counts, as it may be shadowed later; with `globals()`, so does a name without a value yet.
        may_exist = names if "globals" in names else names & (function.__globals__.keys() | vars(builtins).keys())
        for name in may_exist:
            self._record(function.__globals__, name)

    def _record(self, namespace: Mapping[str, Any], name: str) -> None:
        value = namespace.get(name, ABSENT)
        self._names.append((namespace, name, _Known(value)))
        self._follow(value)


class _Known:
    """A value as it was. Every launch asks whether it has changed, so objects are compared first and keys only then.

    constant: the value, if the same object always traces the same code.
    """

    __slots__ = ("_items", "_key", "_mutable", "_value", "constant")

    def __init__(self, value: Any) -> None:
        self._value, self._key = value, value_key(value)
        self._mutable = isinstance(value, _CONTAINERS) or is_mutable_data(value)
        self.constant = _NO_CONSTANT if self._mutable else value
        items = _items(value)
        nested = any(isinstance(item, _CONTAINERS) or is_mutable_data(item) for item in items)
        self._items = items if isinstance(value, tuple | list | dict) and not nested else None

    def is_now(self, now: Any) -> bool:
        """True if `now` traces the same code."""
        if now is self._value:
            if not self._mutable:
                return True
            known = self._items
            if known is not None and len(known) == len(items := _items(now)) and all(map(operator.is_, items, known)):
                return True
        return bool(value_key(now) == self._key)


_NO_CONSTANT = object()
_CONTAINERS = (tuple, list, dict, set)
# The items of a larger container are compared by value, but not followed to what they refer to.
_LARGEST = 1024
_ENVIRONMENT = {"environ", "getenv"}
_METHODS = (types.BuiltinMethodType, types.MethodWrapperType)
# What Python calls without naming it.
_IMPLICIT = {
    f"__{name}__"
    for name in (
        "call", "getattr", "getattribute", "getitem", "len", "iter", "next", "contains", "bool", "index", "int",
        "float", "eq", "ne", "lt", "le", "gt", "ge", "hash", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv",
        "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "neg", "enter", "exit", "get",
    )
} | {"_member_map_", "_value_"}  # fmt: skip


def _items(value: Any) -> Sequence[Any]:
    """The items of a list, tuple or dict, in order; nothing for other values."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return tuple(value) if isinstance(value, tuple | list) else ()


def cell_contents(cell: types.CellType) -> Any:
    """The value of a closure's variable, or ABSENT."""
    try:
        return cell.cell_contents
    except ValueError:  # the name is not assigned yet
        return ABSENT


def names_of(code: types.CodeType) -> tuple[set[str], set[str], set[str]]:
    """The names that a function and those nested in it read: globals, possible attributes, imported modules.

    Attributes that the code only assigns are not among them: their old values make no difference to a trace.
    """
    named = set(_named(code))
    names = {name for opcode, name in named if opcode in _READING_GLOBALS}
    modules = {name for opcode, name in named if opcode == _IMPORT_NAME}
    attributes = {name for opcode, name in named if opcode != _STORE_ATTR}
    attributes |= {text for text in code.co_consts if isinstance(text, str) and text.isidentifier()}
    if "globals" in names:
        names |= attributes
    if not attributes.isdisjoint({"modules", "import_module"}):
        modules |= {text for text in code.co_consts if isinstance(text, str)}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            inner_names, inner_attributes, inner_modules = names_of(const)
            names |= inner_names
            attributes |= inner_attributes
            modules |= inner_modules
    return names, attributes, modules


_IMPORT_NAME, _STORE_ATTR = dis.opmap["IMPORT_NAME"], dis.opmap["STORE_ATTR"]
_READING_GLOBALS = {dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]}
# The instructions that have a name, and the bits of their operand beside its number.
_NAMING = dict.fromkeys(dis.hasname, 0) | {
    dis.opmap[name]: bits
    for name, bits, since in (("LOAD_GLOBAL", 1, (3, 11)), ("LOAD_ATTR", 1, (3, 12)), ("LOAD_SUPER_ATTR", 2, (3, 12)))
    if sys.version_info >= since
}


def _named(code: types.CodeType) -> Iterator[tuple[int, str]]:
    """The opcodes that have a name, with it. `dis` takes twenty times as long."""
    high = 0
    for opcode, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        operand = high | low
        high = operand << 8 if opcode == dis.EXTENDED_ARG else 0
        if opcode in _NAMING:
            yield opcode, code.co_names[operand >> _NAMING[opcode]]


class _Slots(Mapping[str, Any]):
    """The attributes of an object that are stored in slots."""

    def __init__(self, value: Any, names: Sequence[str]) -> None:
        self._value, self._slots = value, names

    def __getitem__(self, name: str) -> Any:
        value = self.get(name, ABSENT)
        if value is ABSENT:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._slots

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self._slots:
            return default
        try:
            return object.__getattribute__(self._value, name)
        except AttributeError:  # not assigned
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)


def _namespaces(value: Any) -> Iterator[Mapping[str, Any]]:
    """The namespaces in which a module, class or object of the user's keeps its attributes."""
    if isinstance(value, types.ModuleType):
        if not is_library(value):
            yield vars(value)
        return
    if not isinstance(value, type):
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            yield own
        value, instance = type(value), value
        slots = [name for base in value.__mro__ for name, kind in vars(base).items() if _is_slot(base, kind)]
        if slots:
            yield _Slots(instance, slots)
    else:
        instance = None
    for base in (*value.__mro__, *(type(value).__mro__ if instance is None else ())):  # a class's own class, too
        if not is_library(sys.modules.get(base.__module__)):
            yield vars(base)


def _is_slot(base: type, descriptor: Any) -> bool:
    return isinstance(descriptor, types.MemberDescriptorType) and not is_library(sys.modules.get(base.__module__))


def variable_names(library: types.ModuleType, names: Set[str]) -> list[str]:
    """The names in a library's module that may change, as in `math.pi = 3`: of numbers, text and other modules."""
    kinds = (int, float, str, types.ModuleType)
    return sorted(name for name in names & vars(library).keys() if isinstance(vars(library)[name], kinds))


def is_library(module: types.ModuleType | None) -> bool:
    """True if a module belongs to Python, to an installed package or to this one. Of those only numbers may change."""
    if module is None or module.__name__ == "__main__":
        return False
    if module.__name__.partition(".")[0] == _PACKAGE:
        return True
    if module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return True
    file = getattr(module, "__file__", None)  # None for a module that a program has made
    return file is not None and (file.startswith(_STANDARD_LIBRARY) or any(part in file for part in _LIBRARY_FOLDERS))
