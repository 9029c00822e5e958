"""A digest of a launcher's surroundings that means the same in every process.

`Dependencies` compares objects with what they were; here a process describes what another one saw. Described are the
code of functions and of the files that they come from, closures, defaults and annotations, the globals and attributes
that the code names, and the whole state of other objects. An object that says too little of itself for that, such as
one of C without `__reduce__`, is an `UnknownStateError`: its launcher is then not kept on disk.

Python and this package count by version and files, other packages by their version, or by the files of their modules.
"""

from __future__ import annotations

import array
import builtins
import functools
import hashlib
import inspect
import re
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from mlir import ir

from flydsl.compiler.arguments.signature import annotations_of
from flydsl.compiler.caching.dependencies import ABSENT, cell_contents, is_library, names_of, variable_names
from flydsl.compiler.caching.observation import file_state
from flydsl.compiler.decorated import DecoratedFunction
from flydsl.errors import FlyError
from flydsl.layout import Layout, Tile

_MOST_OBJECTS = 50_000
_MOST_DATA_BYTES = 1 << 22
_MOST_MODULES = 200
_PLAIN = (int, bool, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
_BUILTIN = (
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
# What Python keeps in a class beside what its author wrote.
_MADE_BY_PYTHON = {"__dict__", "__weakref__", "__doc__", "_abc_impl", "__module__", "__static_attributes__"}
_PACKAGE = __name__.partition(".")[0]
_STARTED_NS = time.time_ns()


class UnknownStateError(Exception):
    """An object says too little of its state for another process to compare it."""


class Fingerprint:
    """The digest of values. attributes: the names that the code which uses them may read of modules.

    with_places: False leaves out which files and lines functions come from and what else is in the files, which what is
    compiled may depend on, and results do not: the same cell of a restarted notebook has another file.
    """

    def __init__(self, attributes: Iterable[str] = (), *, with_places: bool = True) -> None:
        self._attributes = frozenset(attributes)
        self._with_places = with_places
        self._hash = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}  # the objects are kept, so that no id is reused
        self._files: set[str] = set()
        self._packages: set[str] = set()
        self._count = 0

    def hexdigest(self) -> str:
        """The digest of all that was added, and of the files and packages that it comes from."""
        for file in sorted(self._files) if self._with_places else ():
            self._write("file", file, _content_digest(file, _unchanged_state(file)))
        for package in sorted(self._packages):
            self._write("package", package, _package_state(package))
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """Add a value with all that it refers to. Raises UnknownStateError."""
        try:
            self._add(value)
        except RecursionError:
            raise UnknownStateError("it is nested too deeply") from None

    def _add(self, value: Any) -> None:
        self._count += 1
        if self._count > _MOST_OBJECTS:
            raise UnknownStateError(f"it refers to more than {_MOST_OBJECTS} objects")
        kind = type(value)
        if value is ABSENT:
            self._write("absent")
        elif kind in _PLAIN:
            self._write(kind.__name__, repr(value))
        elif kind is tuple or kind is frozenset:
            # Not remembered, as whether equal ones are the same object depends on how the code was loaded.
            self._add_items(kind, sorted(map(self._apart, value)) if kind is frozenset else value)
        elif kind is types.CodeType:
            self._add_code(value)
        elif id(value) in self._seen:
            self._write("seen", self._seen[id(value)][0])
        else:
            self._seen[id(value)] = len(self._seen), value
            self._add_new(value)

    def _add_new(self, value: Any) -> None:
        for kinds, add in _WAYS:
            if isinstance(value, kinds):
                add(self, value)
                return
        module = type(value).__module__.partition(".")[0]
        if module == "torch" and _is_tensor(value):
            self._add_tensor(value)
        elif module == "numpy" and type(value).__name__ == "ndarray":
            self._add_array(value)
        else:
            self._add_object(value)

    def _write(self, *parts: Any) -> None:
        """Write texts, numbers, bytes and tuples of these so that no others make the same digest."""
        self._hash.update(repr(parts).encode())

    def _apart(self, value: Any) -> str:
        """The digest of a value by itself, for values without an order."""
        inner = Fingerprint(self._attributes, with_places=self._with_places)
        inner._count = self._count
        inner._add(value)
        self._count = inner._count
        self._files |= inner._files
        self._packages |= inner._packages
        return inner._hash.hexdigest()

    # --- containers and data -----------------------------------------------------------------------------------------

    def _add_items(self, kind: type, items: Iterable[Any]) -> None:
        found = list(items)
        self._write("items", kind.__name__, len(found))
        for item in found:
            self._add(item)

    def _add_sequence(self, value: Sequence[Any]) -> None:
        self._add(type(value))
        self._add_items(list, value)
        self._add_attributes(value)

    def _add_set(self, value: set[Any]) -> None:
        self._add(type(value))
        self._add_items(set, sorted(map(self._apart, value)))

    def _add_mapping(self, value: Mapping[Any, Any]) -> None:
        self._add(type(value))
        self._add_items(dict, [part for item in value.items() for part in item])
        self._add_attributes(value)

    def _add_data(self, value: Any) -> None:
        data = bytes(value)
        self._write(type(value).__name__, getattr(value, "typecode", getattr(value, "format", "")))
        self._add_bytes(data)

    def _add_bytes(self, data: bytes) -> None:
        if len(data) > _MOST_DATA_BYTES:
            raise UnknownStateError(f"{len(data)} bytes of data are too many")
        self._write("data", len(data))
        self._hash.update(data)

    def _add_array(self, value: Any) -> None:
        self._write("array", value.dtype.str, value.shape)
        if value.dtype.hasobject:
            self._add(value.tolist())
        else:
            self._add_bytes(value.tobytes())

    def _add_tensor(self, value: Any) -> None:
        import torch

        if value.device.type != "cpu" or value.layout != torch.strided or value.is_quantized:
            raise UnknownStateError(f"a tensor on {value.device} is not read")
        if value.numel() * value.element_size() > _MOST_DATA_BYTES:
            raise UnknownStateError("a tensor is too large")
        self._write("tensor", str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad)
        plain = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        self._add_bytes(plain.view(torch.uint8).numpy().tobytes())

    def _add_by_text(self, value: Any) -> None:
        self._write(type(value).__qualname__, str(value))

    # --- code --------------------------------------------------------------------------------------------------------

    def _add_function(self, function: types.FunctionType) -> None:
        module = sys.modules.get(function.__module__)
        if is_library(module):
            self._add_name(function.__module__, function.__qualname__)
            if _found(module, function.__qualname__) is not function:
                # One that a library's decorator made may hold the user's function.
                self._write(function.__code__.co_firstlineno)
                self._add_items(tuple, [cell_contents(cell) for cell in function.__closure__ or ()])
            return
        self._files.add(function.__code__.co_filename)
        self._write("function", function.__module__, function.__qualname__, function.__name__)
        self._add(function.__code__)
        for part in (function.__defaults__, function.__kwdefaults__, vars(function)):
            self._add(part)
        self._add_annotations(function)
        self._add_items(tuple, [cell_contents(cell) for cell in function.__closure__ or ()])
        names, _, modules = names_of(function.__code__)
        for name in sorted(names):
            self._write("global", name)
            self._add(function.__globals__.get(name, vars(builtins).get(name, ABSENT)))
        for imported in sorted(modules):
            self._write("import", imported)
            self._add(sys.modules.get(imported))

    def _add_annotations(self, function: types.FunctionType) -> None:
        try:
            self._add(function.__annotations__)
        except NameError as error:
            raise UnknownStateError(f"an annotation cannot be read: {error}") from None

    def _add_code(self, code: types.CodeType) -> None:
        if self._with_places:
            self._write("place", code.co_filename, code.co_firstlineno, code.co_linetable)
        self._write(
            "code", code.co_name, code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
            code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_code,
            getattr(code, "co_exceptiontable", b""),
        )  # fmt: skip
        self._add_items(tuple, code.co_consts)

    def _add_decorated(self, value: DecoratedFunction) -> None:
        self._write(type(value).__qualname__)
        for part in (value.function, value.options()):
            self._add(part)
        try:
            self._add(annotations_of(value.function))
        except FlyError as error:
            raise UnknownStateError(error.message) from None

    def _add_method(self, value: types.MethodType) -> None:
        self._add(value.__func__)
        self._add(value.__self__)

    def _add_wrapper(self, value: Any) -> None:
        """A static or class method, a property: the functions behind it."""
        self._write(type(value).__qualname__)
        for name in ("__func__", "fget", "fset", "fdel", "func"):
            self._add(getattr(value, name, None))

    def _add_partial(self, value: functools.partial[Any]) -> None:
        self._write("partial")
        for part in (value.func, value.args, value.keywords):
            self._add(part)

    def _add_builtin(self, value: Any) -> None:
        owner, module = getattr(value, "__self__", None), getattr(value, "__module__", None)
        self._write("builtin", module, value.__qualname__)
        self._note_package(module)
        self._add(getattr(value, "__objclass__", None))
        if not isinstance(owner, types.ModuleType):
            self._add(owner)

    # --- modules, classes, objects -----------------------------------------------------------------------------------

    def _add_module(self, module: types.ModuleType) -> None:
        self._write("module", module.__name__)
        if is_library(module):
            self._note_package(module.__name__)
            for name in variable_names(module, self._attributes):
                self._write(name)
                self._add(vars(module)[name])
            return
        if isinstance(file := getattr(module, "__file__", None), str):
            self._files.add(file)
        for name in sorted(self._attributes & vars(module).keys()):
            self._write(name)
            self._add(vars(module)[name])

    def _add_class(self, value: type) -> None:
        self._write("class", value.__module__, value.__qualname__)
        module = sys.modules.get(value.__module__)
        if is_library(module) and _found(module, value.__qualname__) is value:
            self._note_package(value.__module__)
            return
        if isinstance(file := getattr(module, "__file__", None), str):
            self._files.add(file)
        self._add(value.__bases__)
        self._add(type(value))
        for name, item in vars(value).items():
            if name not in _MADE_BY_PYTHON and not isinstance(item, types.MemberDescriptorType):
                self._write(name)
                self._add(item)

    def _add_enum(self, value: Enum) -> None:
        self._add(type(value))
        self._write(value.name)
        self._add(value.value)

    def _add_object(self, value: Any) -> None:
        """The class and the whole state of an object."""
        self._add(type(value))
        try:
            state = value.__reduce_ex__(4)
        except Exception as error:  # noqa: BLE001 - any object's own code: it then says nothing of itself
            raise UnknownStateError(f"{type(value).__qualname__}: {error}") from None
        if isinstance(state, str):
            self._add_name(getattr(value, "__module__", None) or type(value).__module__, state)
        else:
            self._add_items(tuple, [list(part) if i > 2 and part is not None else part for i, part in enumerate(state)])
        self._add_attributes(value)

    def _add_attributes(self, value: Any) -> None:
        """The attributes of a user's object; its `__getstate__` may omit some."""
        if type(value) in (dict, list):  # most of all objects, and they have none
            return
        if not is_library(sys.modules.get(type(value).__module__)):
            self._add(getattr(value, "__dict__", None))
        self._add(inspect.getattr_static(value, "__wrapped__", None))  # without asking a `__getattr__` of the user's

    def _add_name(self, module: str, name: str) -> None:
        """An object of a library, by its name there."""
        self._write("name", module, name)
        self._note_package(module)

    def _note_package(self, module: str | None) -> None:
        package = (module or "").partition(".")[0]
        if package and package != _PACKAGE and package not in sys.stdlib_module_names:
            self._packages.add(package)


_WAYS: tuple[tuple[Any, Callable[[Fingerprint, Any], None]], ...] = (
    (type, Fingerprint._add_class),
    (types.FunctionType, Fingerprint._add_function),
    (DecoratedFunction, Fingerprint._add_decorated),
    (types.ModuleType, Fingerprint._add_module),
    (_BUILTIN, Fingerprint._add_builtin),
    (types.MethodType, Fingerprint._add_method),
    ((staticmethod, classmethod, property, functools.cached_property), Fingerprint._add_wrapper),
    (functools.partial, Fingerprint._add_partial),
    (Enum, Fingerprint._add_enum),
    ((Layout, Tile, ir.Type, ir.Attribute), Fingerprint._add_by_text),
    ((bytearray, memoryview, array.array), Fingerprint._add_data),
    ((tuple, list, deque), Fingerprint._add_sequence),
    ((set, frozenset), Fingerprint._add_set),
    ((dict, types.MappingProxyType), Fingerprint._add_mapping),
)


def _is_tensor(value: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(value, kind)


def _found(module: types.ModuleType | None, qualified_name: str) -> Any:
    """The object of a name in a module, or None."""
    return functools.reduce(lambda owner, name: getattr(owner, name, None), qualified_name.split("."), module)


@functools.lru_cache(maxsize=256)
def _content_digest(file: str, state: tuple[int, int]) -> str:
    """The digest of a file's content; of a notebook cell's file, which is not there, that it is not."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return f"none {state[1]}"


@functools.lru_cache(maxsize=256)
def _package_state(package: str) -> str:
    """The version of a package; for one without, or a small one, the state of the files of its modules."""
    if package in _DISTRIBUTIONS and (tool := tool_version(package)):
        return tool
    version = getattr(sys.modules.get(package), "__version__", None)
    modules = [m for name, m in sorted(sys.modules.items()) if name == package or name.startswith(f"{package}.")]
    if isinstance(version, str) and len(modules) > _MOST_MODULES:
        return version
    files = [file for m in modules if isinstance(file := getattr(m, "__file__", None), str)]
    return repr((version, [(file, _content_digest(file, _unchanged_state(file))) for file in files]))


@functools.cache
def tool_version(package: str) -> str:
    """The version of the distribution that a tool of the compiler is of; "" without one."""
    try:
        text = distribution(_DISTRIBUTIONS.get(package, package)).read_text("METADATA") or ""
    except PackageNotFoundError:
        return ""
    found = re.search(r"^Version: (.+)$", text, re.MULTILINE)  # `importlib.metadata` reads all of it as an e-mail
    return found[1] if found else ""


# Of which no module says the version.
_DISTRIBUTIONS = {"mlir": "xtc-mlir-python-bindings"}


def _unchanged_state(file: str) -> tuple[int, int]:
    """The state of a file, if that is still the one whose content this process has imported."""
    state = file_state(file)
    if state[0] > _STARTED_NS:
        raise UnknownStateError(f"{file} has changed since this process began")
    return state
