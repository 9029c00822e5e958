"""The handlers of this process, by shape: from memory, from the cache on disk, or generated and compiled."""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from flydsl import env
from flydsl.simulator.native import host
from flydsl.simulator.native.cache import HandlerCache
from flydsl.simulator.native.runtime import Translation, source
from flydsl.simulator.native.shape import Shape
from flydsl.system.garbage import collection_paused

if TYPE_CHECKING:
    from flydsl.simulator.native.builder.ir import Function

_SOURCES = (("hsaco", "*.py"), ("simulator", "*.py"), ("simulator", "*.c"), ("simulator", "*.h"))
"""The sources on which handlers depend: folders of flydsl, and files in them."""

_MOVE_TENSOR = "move_tensor"
_SHARED = re.compile(rb"shared_[0-9a-f]{40}")


class HandlerLibrary:
    """Addresses of handlers. One per process: see `library`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loader = host.Loader()
        self._other_loaders: list[host.Loader] = []
        self._cache = HandlerCache(env.cache_dir() / "simulator")
        self._basis = hashlib.sha256(f"{_source_digest()}\n{host.description()}".encode()).digest()
        self._addresses: dict[str, int] = {}  # by key
        self._keys: dict[Shape, str] = {}
        self._shared: set[str] = set()  # functions that are loaded
        self._without_handler: set[Shape] = set()
        self._translated = _Translated(self._cache, self._basis)
        self._translated.begin("runtime")

    @cached_property
    def run(self) -> Callable[[int], int]:
        """`run` of a group's address, see `runtime/schedule.c`."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._runtime["run"])

    @property
    def fall_back_address(self) -> int:
        """The address of the handler that leaves an instruction to the lock-step machine."""
        return self._runtime["fall_back"]

    @cached_property
    def _runtime(self) -> dict[str, int]:
        """Addresses of the functions that Python calls or names. Handlers find theirs by name, once this is loaded."""
        with self._lock:
            return self._loader.load(self._translated.object_file("runtime"), ("run", "fall_back"))

    @cached_property
    def _tiles(self) -> dict[str, int]:
        """Addresses of the functions of `runtime/tensor.c`, which few kernels need."""
        return self._loader.load(self._translated.object_file("tiles"), (_MOVE_TENSOR,))

    @cached_property
    def counting(self) -> dict[str, int]:
        """Addresses of the functions of `runtime/count.c`, which are loaded when they are first needed."""
        with self._lock:
            return self._loader.load(self._translated.object_file("counting"), ("count", "count_access", "observe"))

    @cached_property
    def tracing(self) -> dict[str, int]:
        """Addresses of the functions of `runtime/trace.c`, which are loaded when they are first needed."""
        names = ("trace", "trace_access", "trace_only", "record_access")
        with self._lock:
            return self._loader.load(self._translated.object_file("tracing"), names)

    @cached_property
    def races(self) -> dict[str, int]:
        """Addresses of the functions of `runtime/races.c`, which are loaded when they are first needed."""
        names = ("watch_access", "watch_signal", "watch_wait", "watch_barrier", "watch_end")
        with self._lock:
            return self._loader.load(self._translated.object_file("races"), names)

    def compiled(self, text: str, names: Sequence[str]) -> dict[str, int]:
        """Addresses of the functions of some other C, compiled once per machine.

        It has a loader of its own: one loader resolves a name by any of its objects, even by a static function.
        """
        key = hashlib.sha256(self._basis + text.encode()).hexdigest()
        with self._lock:
            found = self._cache.find(key)
            obj = found[0] if found else host.compile_module(Translation(text, host.triple()).result(), optimize=True)
            if not found:
                self._cache.add(obj, [key])
            self._other_loaders.append(host.Loader())
            return self._other_loaders[-1].load(obj, names)

    def addresses(self, shapes: Iterable[Shape]) -> dict[Shape, int]:
        """The address of the handler of each shape; `fall_back_address` for a form without a native handler."""
        wanted = list(dict.fromkeys(shapes))
        with self._lock:
            missing = [s for s in wanted if s not in self._without_handler and not self._is_loaded(s)]
            if missing:
                self._compile(missing)
            return {s: self._addresses.get(self._key(s), self.fall_back_address) for s in wanted}

    def _key(self, shape: Shape) -> str:
        if shape not in self._keys:
            self._keys[shape] = hashlib.sha256(self._basis + repr(shape).encode()).hexdigest()
        return self._keys[shape]

    def _is_loaded(self, shape: Shape) -> bool:
        key = self._key(shape)
        if key in self._addresses:
            return True
        found = self._cache.find(key)
        if found is None or not all(self._is_shared_loaded(name) for name in _shared_functions(found[0])):
            return False
        self._load(*found)
        return True

    def _is_shared_loaded(self, name: str) -> bool:
        """Load a function that handlers share from the cache, if need be. Return whether it is there."""
        if name in self._shared:
            return True
        found = self._cache.find(self._key_of(name))
        if found is None:
            return False
        self._loader.load(found[0], [name])
        self._shared.add(name)
        return True

    def _load_shared(self, function: Function) -> None:
        """Load a function that handlers share, from the cache or compiled."""
        from flydsl.simulator.native.generate import module_text

        if not self._is_shared_loaded(function.name):
            obj = host.compile_module(module_text([function]), optimize=True)
            self._loader.load(obj, [function.name])
            self._shared.add(function.name)
            self._cache.add(obj, [self._key_of(function.name)])

    def _key_of(self, name: str) -> str:
        return hashlib.sha256(self._basis + name.encode()).hexdigest()

    def _load(self, obj: bytes, keys: Sequence[str]) -> None:
        _ = self._runtime  # loads what the handlers call
        if _MOVE_TENSOR.encode() in obj:
            _ = self._tiles
        new = [key for key in keys if key not in self._addresses]
        addresses = self._loader.load(obj, [_function_name(key) for key in new])
        self._addresses.update({key: addresses[_function_name(key)] for key in new})

    @collection_paused()
    def _compile(self, shapes: Sequence[Shape]) -> None:
        from flydsl.simulator.native.generate import Handler, generate, module_text  # the cache mostly has them all

        handlers: dict[bool, dict[str, Handler]] = {False: {}, True: {}}  # with loops or not: by key
        for shape in shapes:
            key = self._key(shape)
            try:
                handler = generate(shape, _function_name(key))
            except NotImplementedError:  # the lock-step machine will say what is the matter, if it does not know either
                self._without_handler.add(shape)
            else:
                handlers[handler.has_loops][key] = handler
        for handler in (h for by_key in handlers.values() for h in by_key.values()):
            for function in handler.functions:
                self._load_shared(function)
        compiled = [
            (host.compile_module(module_text(by_key.values()), optimize=has_loops), list(by_key))
            for has_loops, by_key in handlers.items()
            if by_key
        ]
        for obj, keys in compiled:  # loading waits for the runtime, which clang translates meanwhile
            self._load(obj, keys)
            self._cache.add(obj, keys)


class _Translated:
    """The parts of the runtime as object files, from the cache or by clang."""

    def __init__(self, cache: HandlerCache, basis: bytes) -> None:
        self._cache, self._basis = cache, basis
        self._found: dict[str, bytes] = {}
        self._translations: dict[str, Translation] = {}

    def begin(self, name: str) -> None:
        """Start to translate a part in the background, unless it is on disk."""
        found = self._cache.find(self._key(name))
        if found:
            self._found[name] = found[0]
        else:
            self._translations[name] = Translation(source(name), host.triple())

    def object_file(self, name: str) -> bytes:
        if name not in self._translations and name not in self._found:
            self.begin(name)
        if name not in self._found:
            translation = self._translations.pop(name)
            self._found[name] = host.compile_module(translation.result(), optimize=True)
            self._cache.add(self._found[name], [self._key(name)])
        return self._found.pop(name)

    def _key(self, name: str) -> str:
        return hashlib.sha256(self._basis + name.encode()).hexdigest()


def _shared_functions(obj: bytes) -> set[str]:
    """The names of the functions that handlers in an object share with others: see `builder.lanes`."""
    return {name.decode() for name in _SHARED.findall(obj)}


def _function_name(key: str) -> str:
    return f"handler_{key[:40]}"


@cache
def _source_digest() -> str:
    """The digest of the simulator and of the listing reader, which decide what a handler does."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(path for folder, pattern in _SOURCES for path in (package / folder).rglob(pattern)):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def library() -> HandlerLibrary:
    """The library of this process."""
    return HandlerLibrary()
