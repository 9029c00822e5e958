"""Compiled code on disk, named by everything that it was made from: the LLVM IR, the target, LLVM, and this package.

So an entry cannot be out of date, whatever happens to the kernels, their surroundings or the passes. The cache serves
compilations without an artifact on disk: those that the workbench shows, and those of changed sources that give the
same LLVM IR. `FLYDSL_RUNTIME_ENABLE_CACHE=0` turns it off.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from flydsl import env
from flydsl.codegen.llvm_process import llvm_library
from flydsl.system.disk_cache import RecordFolder, remembered_digest

_MAX_BYTES = 256 << 20


def key(*inputs: Any) -> str:
    """The cache name of what is made from these texts and numbers."""
    return hashlib.sha256(repr((_toolchain(), *inputs)).encode()).hexdigest()


def find(name: str, fields: tuple[str, ...]) -> dict[str, Any] | None:
    """The fields stored under a name; None unless all of them are intact."""
    content = _folder().find(name) if env.cache_enabled() else None
    return content if content is not None and tuple(content) == fields else None


def add(name: str, content: dict[str, str | bytes]) -> None:
    """Store texts and bytes under a name."""
    if env.cache_enabled():
        _folder().add(name, content)


def _folder() -> RecordFolder:
    return RecordFolder(env.cache_dir() / "code", _MAX_BYTES)


@functools.cache
def _toolchain() -> tuple[Any, ...]:
    """The library that LLVM is in, and how this package uses it."""
    library = llvm_library()
    status = library.stat()
    state = str(library), status.st_size, status.st_mtime_ns
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
    return _digest_of(library, state), hashlib.sha256(sources).hexdigest()


def _digest_of(library: Path, state: tuple[Any, ...]) -> str:
    def digest() -> str:
        if (written := recorded_digest(library, distribution("llvmlite"))) is not None:
            return written
        found = hashlib.sha256()
        with open(library, "rb") as file:
            while part := file.read(1 << 22):
                found.update(part)
        return found.hexdigest()

    return remembered_digest(env.cache_dir(), state, digest) if env.cache_enabled() else repr(state)


def recorded_digest(file: Path, package: Distribution) -> str | None:
    """The SHA-256 of a file that the installer of its package wrote down; None without one, or if the file is newer.

    Reading LLVM's library instead takes a quarter of a second. RECORD is the last file that installers write.
    """
    places = {Path(entry.locate()): entry for entry in package.files or ()}
    entry = places.get(file)
    record = next((place for place in places if place.name == "RECORD"), None)
    if entry is None or entry.hash is None or entry.hash.mode != "sha256" or record is None:
        return None
    status = file.stat()
    if status.st_size != entry.size or status.st_mtime_ns > record.stat().st_mtime_ns:
        return None
    return base64.urlsafe_b64decode(entry.hash.value + "=").hex()
