"""Changes to modules that the program may import later: made when they are loaded, and taken back at the end.

Torch's compilers keep functions of torch.cuda, and other names, when they are loaded. They are loaded with torch as it
was before a GPU posed, so that they do not keep what is there in between.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

_MISSING = object()
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._decomp", "torch._functorch._aot_autograd")


class Replacements:
    """Attributes that have been replaced. `restore` puts back what was there before, or nothing if nothing was."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._last: list[Callable[[], Any]] = []

    def replace(self, place: Any, name: str, value: Any) -> None:
        """Put a value in the place of an attribute of a module, a class or an object."""
        self._before.append((place, name, vars(place).get(name, _MISSING)))
        setattr(place, name, value)

    def at_the_end(self, restore: Callable[[], Any]) -> None:
        """Call a function with what is restored: it takes back what is no attribute."""
        self._last.append(restore)

    def restore(self) -> None:
        for restore in reversed(self._last):
            restore()
        for before in reversed(self._before):
            _put(*before)
        self._before.clear()
        self._last.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Put the originals back for the duration of the `with` block."""
        now = [(place, name, vars(place).get(name, _MISSING)) for place, name, _ in self._before]
        for before in reversed(self._before):
            _put(*before)
        try:
            yield
        finally:
            for after in now:
                _put(*after)


def _put(place: Any, name: str, value: Any) -> None:
    if value is not _MISSING:
        setattr(place, name, value)
    elif name in vars(place):
        delattr(place, name)


class _Loader(importlib.abc.Loader):
    """The loader of one module, around the one that was found, which may load others, too, as pytest's does.

    load: is called with what loads the module, and the module.
    """

    def __init__(self, found: Any, load: Callable[[Callable[[ModuleType], None], ModuleType], None]) -> None:
        self._found, self._load = found, load

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._found.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        __tracebackhide__ = True
        module.__loader__ = self._found
        if module.__spec__ is not None:
            module.__spec__.loader = self._found
        self._load(self._found.exec_module, module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


class ImportHook(importlib.abc.MetaPathFinder):
    """Changes modules when they are imported, and at once those that are.

    changes: what is done to the module of each name. replaced: what is replaced already, in torch.
    """

    def __init__(self, changes: Mapping[str, Callable[[ModuleType], None]], replaced: Replacements) -> None:
        self._changes, self._replaced = changes, replaced
        self._loading = 0
        self._loaded: list[ModuleType] = []

    def begin(self) -> None:
        sys.meta_path.insert(0, self)
        for name, change in self._changes.items():
            if name in sys.modules:
                change(sys.modules[name])

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_compiler = fullname.startswith(_COMPILERS)
        if fullname not in self._changes and not is_compiler:
            return None
        spec = self._found(fullname)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = _Loader(spec.loader, partial(self._load, is_compiler))
        return spec

    def _load(self, is_compiler: bool, load: Callable[[ModuleType], None], module: ModuleType) -> None:
        __tracebackhide__ = True
        with self._replaced.suspended() if self._loading == 0 and is_compiler else nullcontext():
            self._loading += 1
            try:
                load(module)
            finally:
                self._loading -= 1
        self._loaded.append(module)
        if self._loading == 0:
            self._change_loaded()

    def _change_loaded(self) -> None:
        """Make the changes to what one import has loaded."""
        loaded, self._loaded = self._loaded, []
        for module in loaded:
            if module.__name__ in self._changes and self in sys.meta_path:
                self._changes[module.__name__](module)

    def _found(self, fullname: str) -> importlib.machinery.ModuleSpec | None:
        """The module as the finders after this one find it."""
        sys.meta_path.remove(self)
        try:
            return importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
