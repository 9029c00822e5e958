"""A folder of compiled artifacts under keys of one's own: FlyDSL's `JitCacheManager`.

Launchers keep theirs by themselves, in `flydsl.compiler.caching.artifact_cache`; this is for programs that keep some
elsewhere.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.caching import saved
from flydsl.errors import ArgumentError, FlyError
from flydsl.system.disk_cache import RecordFolder

__all__ = ["CacheInfo", "JitCacheManager"]

_MAX_BYTES = 1 << 30
_PLAIN = (str, bytes, int, float, bool, type(None))


class CacheInfo(NamedTuple):
    """Counts of a cache's reads: `hits` found something, `misses` nothing. currsize: entries in memory."""

    hits: int
    misses: int
    maxsize: None
    currsize: int


class JitCacheManager:
    """Artifacts, and plain data, in a folder and in memory, by key. The folder is read as data, never as code.

    cache_dir: a folder that only this user can write to; it is made when it is missing.
    """

    def __init__(self, cache_dir: str | Path) -> None:
        self.cache_dir = Path(cache_dir)
        self.memory_cache: dict[str, Any] = {}
        self._hits = self._misses = 0
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def get(self, cache_key: str) -> Any:
        """The artifact of a key, set here or by another process; None if there is none, or if it is not intact."""
        if cache_key not in self.memory_cache:
            record = self._folder().find(_name(cache_key))
            found = None if record is None or record.get("key") != cache_key else _of_record(record)
            if found is None:
                self._misses += 1
                return None
            self.memory_cache[cache_key] = found
        self._hits += 1
        return self.memory_cache[cache_key]

    def set(self, cache_key: str, value: Any) -> None:
        """Keep an artifact, a number, text or bytes under a key. Raises ArgumentError for anything else."""
        if isinstance(value, CompiledArtifact):
            record: dict[str, Any] = {"key": cache_key, "artifact": saved.to_bytes(value)}
        elif isinstance(value, _PLAIN):
            record = {"key": cache_key, "value": value}
        else:
            raise ArgumentError(
                f"JitCacheManager keeps artifacts and plain data, not {type(value).__name__}",
                hint="an artifact is what flyc.compile returns",
            )
        self.memory_cache[cache_key] = value
        self._folder().add(_name(cache_key), record)

    @contextmanager
    def compile_lock(self, cache_key: str) -> Iterator[None]:
        """Inside the `with` block no other thread of the process has the lock of this key."""
        with self._guard:
            lock = self._locks.setdefault(cache_key, threading.Lock())
        with lock:
            yield

    def load_all(self) -> int:
        """Read everything in the folder into memory. Return how many entries there are."""
        folder = self._folder()
        for path in self.cache_dir.glob("*.artifact") if self.cache_dir.is_dir() else ():
            record = folder.find(path.name)
            if record is not None and isinstance(key := record.get("key"), str) and key not in self.memory_cache:
                found = _of_record(record)
                if found is not None:
                    self.memory_cache[key] = found
        return len(self.memory_cache)

    def cache_info(self) -> CacheInfo:
        """Counts of what `get` found, and of the entries in memory."""
        return CacheInfo(self._hits, self._misses, None, len(self.memory_cache))

    def _folder(self) -> RecordFolder:
        return RecordFolder(self.cache_dir, _MAX_BYTES)


def _name(cache_key: str) -> str:
    return f"{hashlib.sha256(cache_key.encode()).hexdigest()[:32]}.artifact"


def _of_record(record: dict[str, Any]) -> Any:
    content = record.get("artifact")
    if content is None:
        return record.get("value")
    try:
        return saved.from_bytes(content, "the cached artifact")
    except FlyError:  # of another version
        return None
