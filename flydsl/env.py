"""Environment variables: the one place that reads `os.environ`, each time anew, so a notebook can change them.

| variable | default | meaning |
|---|---|---|
| `FLYDSL_COMPILE_OPT_LEVEL` | 2 | LLVM optimization level, 0 to 3 |
| `FLYDSL_COMPILE_BACKEND` | `rocm` | the backend that launchers are compiled by, one of `flyc.register_backend` |
| `FLYDSL_COMPILE_MAX_TRACED_OPS` | 200000 | how many operations a trace may have |
| `FLYDSL_LANGUAGE` | 0.5.0 | the release of FlyDSL that programs are for: 0.5.0, 0.4.2, 0.2.2 (`flydsl.language`) |
| `COMPILE_ONLY` | 0 | compile, launch nothing, return None |
| `ARCH` | | target architecture, such as `gfx950` |
| `FLYDSL_GPU_ARCH` | | architecture of the device, when it cannot or shall not be detected |
| `HSA_OVERRIDE_GFX_VERSION` | | the same in ROCm's form: `9.4.2` is gfx942 |
| `FLYDSL_DUMP_IR` | 0 | write every stage to `FLYDSL_DUMP_DIR/<launcher>/` |
| `FLYDSL_DUMP_DIR` | `~/.flydsl/debug` | where dumps go |
| `FLYDSL_DEBUG_DUMP_ASM` | 0 | write only the ISA there |
| `FLYDSL_DEBUG_AST_DIFF` | 0 | print what source rewriting changed |
| `FLYDSL_DEBUG_PRINT_ORIGIN_IR` | 0 | print the traced module |
| `FLYDSL_DEBUG_PRINT_AFTER_ALL` | 0 | print the module after each stage |
| `FLYDSL_DEBUG_ENABLE_DEBUG_INFO` | 0 | keep line tables in the HSACO |
| `FLYDSL_DEBUG_ENABLE_VERIFIER` | 1 | verify the module after each stage |
| `FLYDSL_DEBUG_LOG_LEVEL` | `WARNING` | what the log `flydsl` lets through: DEBUG, INFO, WARNING or ERROR |
| `FLYDSL_DEBUG_LOG_TO_CONSOLE` | 0 | write the log to stderr |
| `FLYDSL_DEBUG_LOG_TO_FILE` | | write the log to this file |
| `FLYDSL_INTERPRET` | 0 | run launches as Python, for debuggers: see `flydsl.interpreting` |
| `FLYDSL_RUNTIME_CACHE_DIR` | `~/.flydsl/cache` | where caches are kept |
| `FLYDSL_RUNTIME_ENABLE_CACHE` | 1 | keep compiled code there (what a process has compiled, it keeps anyway) |
| `FLYDSL_EXTRA_SOURCE_DIRS` | | nothing: FlyDSL needs it to notice that helpers changed, which is always noticed here |
| `FLYDSL_RUNTIME_RUN_ONLY` | 0 | compile nothing: what is not in the cache is an error |
| `FLYDSL_RUNTIME_KIND` | `rocm` | the kind of devices, one of `flydsl.runtime.device_runtime` |
| `FLYDSL_AUTOTUNE` | 0 | `flydsl.autotune` searches once more in each process, and writes what it chose |
| `FLYDSL_AUTOTUNE_CONFIG_DIR` | | where choices of launchers with an `artifact_name=` are written and read |
| `FLYDSL_PRINTF_BUFFER_BYTES` | 8388608 | how much the kernels of one launch can print |
| `FLYDSL_SIMULATOR_BACKEND` | `native` | how the simulator executes: `native` or `lockstep` |
| `FLYDSL_SIMULATOR_HOST` | `native` | the CPU features that it uses: `avx2` or `avx512`, `neon`, or the best there is |
| `FLYDSL_SIMULATOR_THREADS` | one per core | how many threads it uses; with 1, LLVM uses one process at a time |
| `FLYDSL_SIMULATOR_LDS` | `strict` | past the end of LDS: `strict` is an error, `hardware` reads 0 and stores nothing |
| `FLYDSL_SIMULATOR_PEER_PATIENCE_S` | 300 | for how many seconds a kernel may wait for other ranks; 0: for ever |

A variable FLYDSL_... that is not here is warned of at the next compilation.

Source: section 5 of the architecture guide.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flydsl.errors import ArgumentError, did_you_mean
from flydsl.system.interrupts import holding

# Of the table above. Python -OO drops it, and then there is no warning of others.
_NAMES = frozenset(re.findall(r"`(FLYDSL_\w+)` \|", __doc__ or ""))

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


_replaced: ContextVar[Mapping[str, str]] = ContextVar("flydsl_environment", default=MappingProxyType({}))
_unknown: set[str] = set()


def warn_of_unknown() -> None:
    """Warn of variables that begin like those of this package and are none, once each: they would change nothing."""
    for name in variables_now() if _NAMES else ():
        if name.startswith("FLYDSL_") and name not in _NAMES and name not in _unknown:
            _unknown.add(name)
            warnings.warn(
                f"there is no environment variable {name}, so it changes nothing: "
                f"{did_you_mean(name, sorted(_NAMES)) or 'flydsl/env.py describes all of them'}".rstrip(),
                stacklevel=1,
            )


_UNSET = "unset the variable for its default; flydsl/env.py describes all of them"


@contextmanager
def replaced(values: Mapping[str, str]) -> Iterator[None]:
    """Inside the `with` block variables have other values for this thread, as far as this package asks for them.

    `os.environ` stays as it is: it is the whole process's, which may compile for another architecture at the same time.
    """
    with holding(_replaced, {**_replaced.get(), **values}):
        yield


_of_process: dict[str, str] = {}
# Every launch asks for some variables. For one that is not set `os.environ` raises two exceptions inside, a microsecond
# each time; the dict behind it does not.
_environment: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]


def replace_everywhere(values: Mapping[str, str]) -> None:
    """Other values for every thread of this process, until the next call; none of them for an empty mapping."""
    _of_process.clear()
    _of_process.update(values)


def _value(name: str) -> str | None:
    """The value of a variable, None where it is not set."""
    given = _replaced.get()
    if name in given:
        return given[name]
    if name in _of_process:
        return _of_process[name]
    value = _environment.get(os.environ.encodekey(name))
    return None if value is None else os.environ.decodevalue(value)


def text(name: str, default: str = "") -> str:
    """The value of a variable, stripped."""
    value = _value(name)
    return (default if value is None else value).strip()


def flag(name: str, default: bool = False) -> bool:
    """A boolean variable. Raises ArgumentError for a word that is neither yes nor no."""
    value = _value(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ArgumentError(f"{name}={value!r} is neither true nor false", hint=f"set {name}=1 or {name}=0")


_CODE_VARIABLES = (
    "ARCH",
    "FLYDSL_GPU_ARCH",
    "HSA_OVERRIDE_GFX_VERSION",
    "FLYDSL_COMPILE_BACKEND",
    "FLYDSL_COMPILE_OPT_LEVEL",
    "FLYDSL_DEBUG_ENABLE_DEBUG_INFO",
    "FLYDSL_LANGUAGE",
)
_CODE_KEYS = tuple(map(os.environ.encodekey, _CODE_VARIABLES))


def code_settings() -> tuple[Any, ...]:
    """The variables that decide which code a compilation makes, as they stand: part of the key of a cache."""
    if _replaced.get() or _of_process:
        return tuple(None if value is None else os.environ.encodekey(value) for value in map(_value, _CODE_VARIABLES))
    return tuple(map(_environment.get, _CODE_KEYS))


def code_variables() -> dict[str, str]:
    """The variables that decide which code a compilation makes, those that are set, by name."""
    found = {name: _value(name) for name in _CODE_VARIABLES}
    return {name: value for name, value in found.items() if value is not None}


_COMPILE_ONLY = os.environ.encodekey("COMPILE_ONLY")


def compile_only() -> bool:
    """`COMPILE_ONLY`: compile, launch nothing."""
    return (_COMPILE_ONLY in _environment or bool(_replaced.get() or _of_process)) and flag("COMPILE_ONLY")


LANGUAGES = ("0.5.0", "0.4.2", "0.2.2")
_LANGUAGE = os.environ.encodekey("FLYDSL_LANGUAGE")


def language() -> str:
    """`FLYDSL_LANGUAGE`: the release of FlyDSL that programs are written for, 0.5.0, 0.4.2 or 0.2.2."""
    value = text("FLYDSL_LANGUAGE") or LANGUAGES[0]
    if value not in LANGUAGES:
        raise ArgumentError(f"FLYDSL_LANGUAGE={value!r} is none of {', '.join(LANGUAGES)}", hint=_UNSET)
    return value


def is_language_0_2_2() -> bool:
    """True if operators follow FlyDSL 0.2.2. Every operator on two types asks for it."""
    return (_LANGUAGE in _environment or bool(_replaced.get() or _of_process)) and language() == "0.2.2"


def variables() -> dict[Any, Any]:
    """The whole environment as it stands; to compare, not to change."""
    return _environment


def variables_now() -> dict[str, str]:
    """All variables by name."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in _environment.items()}


def opt_level() -> int:
    """`FLYDSL_COMPILE_OPT_LEVEL`, 0 to 3."""
    value = text("FLYDSL_COMPILE_OPT_LEVEL", "2")
    if value not in {"0", "1", "2", "3"}:
        raise ArgumentError(f"FLYDSL_COMPILE_OPT_LEVEL={value!r} is not one of 0, 1, 2, 3", hint=_UNSET)
    return int(value)


def debug_info() -> bool:
    """`FLYDSL_DEBUG_ENABLE_DEBUG_INFO`: whether line tables stay in the HSACO."""
    return flag("FLYDSL_DEBUG_ENABLE_DEBUG_INFO")


def max_traced_ops() -> int:
    """`FLYDSL_COMPILE_MAX_TRACED_OPS`, at least 1."""
    value = text("FLYDSL_COMPILE_MAX_TRACED_OPS", "200000")
    if not value.isdigit() or int(value) < 1:
        raise ArgumentError(
            f"FLYDSL_COMPILE_MAX_TRACED_OPS must be a number of operations, at least 1, got {value!r}", hint=_UNSET
        )
    return int(value)


def dump_dir() -> Path:
    """`FLYDSL_DUMP_DIR`, with `~` expanded."""
    return Path(text("FLYDSL_DUMP_DIR") or "~/.flydsl/debug").expanduser()


def cache_dir() -> Path:
    """`FLYDSL_RUNTIME_CACHE_DIR`, with `~` expanded."""
    return Path(text("FLYDSL_RUNTIME_CACHE_DIR") or "~/.flydsl/cache").expanduser()


SIMULATOR_BACKENDS = ("native", "lockstep")


def autotune_config_dir() -> Path | None:
    """The folder of choices of autotuned launchers, or None."""
    folder = text("FLYDSL_AUTOTUNE_CONFIG_DIR")
    return Path(folder).expanduser().resolve() if folder else None


def simulator_backend() -> str:
    """`FLYDSL_SIMULATOR_BACKEND`: native or lockstep."""
    value = text("FLYDSL_SIMULATOR_BACKEND", "native")
    if value not in SIMULATOR_BACKENDS:
        raise ArgumentError(f"FLYDSL_SIMULATOR_BACKEND={value!r} is neither native nor lockstep", hint=_UNSET)
    return value


def simulator_lds_is_strict() -> bool:
    """`FLYDSL_SIMULATOR_LDS`: strict or hardware."""
    value = text("FLYDSL_SIMULATOR_LDS", "strict")
    if value not in ("strict", "hardware"):
        raise ArgumentError(f"FLYDSL_SIMULATOR_LDS must be strict or hardware, got {value!r}", hint=_UNSET)
    return value == "strict"


def simulator_host() -> str:
    """`FLYDSL_SIMULATOR_HOST`: native, or the name of a tier (`simulator.native.host`)."""
    return text("FLYDSL_SIMULATOR_HOST") or "native"


def printf_buffer_bytes() -> int:
    """`FLYDSL_PRINTF_BUFFER_BYTES`, at least 1024."""
    value = text("FLYDSL_PRINTF_BUFFER_BYTES", str(8 << 20))
    if not value.isdigit() or not 1024 <= int(value) < 1 << 32:
        raise ArgumentError(
            f"FLYDSL_PRINTF_BUFFER_BYTES must be a number of bytes, at least 1024, got {value!r}", hint=_UNSET
        )
    return int(value)


def cache_enabled() -> bool:
    """`FLYDSL_RUNTIME_ENABLE_CACHE`: whether compiled code is kept on disk."""
    return flag("FLYDSL_RUNTIME_ENABLE_CACHE", default=True)


_watchers: list[Callable[[str | None], None]] = []
_watching = threading.Lock()


@contextmanager
def watched(note: Callable[[str | None], None]) -> Iterator[None]:
    """Inside the `with` block `note` receives the name of every variable that anything reads from `os.environ`.

    It receives None when something goes through the names of all variables.
    """
    with _watching:
        if not _watchers:
            _watch(True)
        _watchers.append(note)
    try:
        yield
    finally:
        with _watching:
            _watchers.remove(note)
            if not _watchers:
                _watch(False)


_Environment: Any = type(os.environ)
_get, _iterate = _Environment.__getitem__, _Environment.__iter__


def _watch(on: bool) -> None:
    """Every way to read the environment from Python goes through these two methods."""
    _Environment.__getitem__ = _noted_get if on else _get
    _Environment.__iter__ = _noted_iterate if on else _iterate


def _noted_get(environment: Any, name: Any) -> Any:
    if isinstance(name, str | bytes):
        for note in tuple(_watchers):
            note(os.fsdecode(name))
    return _get(environment, name)


def _noted_iterate(environment: Any) -> Iterator[Any]:
    for note in tuple(_watchers):
        note(None)
    return _iterate(environment)


@contextmanager
def default(name: str, value: str) -> Iterator[None]:
    """Set a variable inside the `with` block, unless it is set or the value is empty; for libraries that read it."""
    if not value or name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)


def peer_patience_s() -> float:
    """`FLYDSL_SIMULATOR_PEER_PATIENCE_S`, at least 0; 0 for no limit."""
    value = text("FLYDSL_SIMULATOR_PEER_PATIENCE_S", "300")
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ArgumentError(f"FLYDSL_SIMULATOR_PEER_PATIENCE_S must be a number of seconds, got {value!r}", hint=_UNSET)
    return seconds


def simulator_threads() -> int | None:
    """`FLYDSL_SIMULATOR_THREADS`, at least 1; None where it is not set."""
    value = text("FLYDSL_SIMULATOR_THREADS")
    if not value:
        return None
    if not value.isdigit() or int(value) < 1:
        raise ArgumentError(
            f"FLYDSL_SIMULATOR_THREADS must be a number of threads, at least 1, got {value!r}", hint=_UNSET
        )
    return int(value)
