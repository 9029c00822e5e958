"""Whole artifacts on disk: what one process has compiled, another one neither traces nor compiles.

An artifact is named by everything that it was made from: arguments, Constexpr values, architecture, hints, the settings
of the environment, the versions of the tools, and the launcher with its surroundings (`fingerprint`). Beside it lies
what the trace read from outside (`observation`), which is compared when it is loaded. It is read as data; what is not
intact is compiled anew. `FLYDSL_RUNTIME_ENABLE_CACHE=0` turns this off.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flydsl import env
from flydsl.arch import Arch
from flydsl.compiler.arguments.argument import Argument
from flydsl.compiler.arguments.signature import Signature, annotations_of
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.caching.dependencies import Dependencies
from flydsl.compiler.caching.fingerprint import Fingerprint, UnknownStateError, tool_version
from flydsl.compiler.caching.observation import Observation, file_state
from flydsl.compiler.caching.stored import from_record, to_record
from flydsl.compiler.debugging.missing_waits import warn_of_missing_waits
from flydsl.compiler.hints import CompileHints
from flydsl.compiler.lowering.observers import observers_from_environment
from flydsl.errors import FlyError, SourceLocation
from flydsl.system.disk_cache import RecordFolder, remembered_digest
from flydsl.utils.logger import log

_MAX_BYTES = 256 << 20
_ROOT = Path(__file__).parents[2]
# The simulator has no part in what is compiled.
_WITHOUT_CODE = {"simulator", "__pycache__"}
_TOOLS = ("mlir.ir", "llvmlite", "ziglang")


class Place:
    """The place on disk of the artifact of one launcher for some arguments."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find(self, arguments: tuple[Argument, ...], signature: Signature) -> CompiledArtifact | None:
        """The artifact that lies there, if it is intact, and if all that its trace read is as it was.

        Of waits that it misses is warned as when it was compiled.
        """
        record = _folder().find(self._name)
        if record is None or not _still_holds(record):
            return None
        found = from_record(record, arguments, signature)
        if found is not None:
            warn_of_missing_waits(found.code)
        return found

    def alone(self) -> AbstractContextManager[bool]:
        """Let no other process compile the same inside; gives whether one did. Ranks start with the same launches."""
        return _folder().alone(self._name)

    def keep(self, artifact: CompiledArtifact, seen: Observation) -> None:
        """Put an artifact there. seen: by its trace."""
        _folder().add(self._name, {**to_record(artifact), "observation": seen.to_data()})


def place_of(
    function: Callable[..., Any],
    arguments: tuple[Argument, ...],
    arch: Arch,
    hints: CompileHints,
    dependencies: Dependencies,
) -> Place | None:
    """The place of a launcher's artifact; None if it is not to be kept.

    That is so if the cache is off, if the stages are to be printed or dumped, in a notebook's cell, whose file no other
    process has, or if an object that the launcher refers to cannot be compared with that of another process:
    the log says which one, at level INFO.
    """
    if not env.cache_enabled() or observers_from_environment() or env.flag("FLYDSL_DEBUG_AST_DIFF"):
        return None
    if SourceLocation(function.__code__.co_filename, 1).is_in_cell:
        return None
    found = Fingerprint(dependencies.attributes)
    try:
        found.add([argument.identity() for argument in arguments])
        found.add([arch.name, *vars(hints).values(), *env.code_settings(), env.max_traced_ops(), sys.version])
        found.add(function)
        found.add(annotations_of(function))
        digest = found.hexdigest()
    except UnknownStateError as error:
        log.info("%s is not kept on disk: %s", function.__name__, error)
        return None
    except FlyError:
        return None  # which the trace raises again
    return Place(hashlib.sha256(f"{tools_version()} {digest}".encode()).hexdigest())


def _folder() -> RecordFolder:
    return RecordFolder(env.cache_dir() / "artifacts", _MAX_BYTES)


def _still_holds(record: dict[str, Any]) -> bool:
    try:
        return Observation.from_data(record["observation"]).still_holds()
    except (KeyError, TypeError, ValueError):
        return False


@functools.cache
def tools_version(*_: object) -> str:
    """The digest of this package's files and of the tools that it uses: the same for every installation of them."""
    tools = {name: str(spec.origin) for name in _TOOLS if (spec := find_spec(name)) is not None}
    files = sorted(_files(str(_ROOT)))
    versions = [tool_version(name.partition(".")[0]) for name in _TOOLS]
    state = files, [(tool, file_state(tool)) for tool in tools.values()], versions

    def digest() -> str:
        found = hashlib.sha256(repr(versions).encode())
        inside = {path.removeprefix(str(_ROOT)): path for path, *_ in files}
        for name, path in (inside | tools).items():
            with open(path, "rb", buffering=0) as file:
                found.update(f"{name}\n".encode() + file.read())
        return found.hexdigest()

    return remembered_digest(env.cache_dir(), state, digest) if env.cache_enabled() else digest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """The path, time of change and size of each Python file in a folder and those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size
            elif entry.name not in _WITHOUT_CODE and entry.is_dir():
                yield from _files(entry.path)
