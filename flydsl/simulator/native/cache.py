"""Compiled handlers on disk, shared by all kernels and processes.

A *pack* is an object file with some handlers; its name is the hash of its content. For every handler there is an
*entry*, a symbolic link to the pack, named by what the handler was made from. Both appear at once, so that another
process sees the whole of them or nothing. A pack is checked when it is read; what is not as it should be is compiled
anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from flydsl.system.disk_cache import CacheFolder

_MAGIC = b"flydsl-pack 1\n"
_MAX_BYTES = 256 << 20


class HandlerCache:
    """The handlers in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = CacheFolder(folder, _MAX_BYTES)

    def find(self, key: str) -> tuple[bytes, list[str]] | None:
        """The object with the handler of this key, and the keys of all handlers in it."""
        pack_name = self._folder.target(key)
        if pack_name is None or len(pack_name) != 64 or not pack_name.isalnum():
            return None
        pack = self._folder.read(pack_name)
        if pack is None or hashlib.sha256(pack).hexdigest() != pack_name or not pack.startswith(_MAGIC):
            return None
        keys, _, obj = pack[len(_MAGIC) :].partition(b"\n\n")
        names = keys.decode("ascii").split("\n")
        return (obj, names) if key in names else None

    def add(self, obj: bytes, keys: Iterable[str]) -> None:
        """Store an object with the handlers of these keys. It replaces an entry that `find` did not accept."""
        names = list(keys)
        pack = _MAGIC + "\n".join(names).encode() + b"\n\n" + obj
        pack_name = hashlib.sha256(pack).hexdigest()
        if self._folder.write(pack_name, pack):
            for key in names:
                self._folder.link(key, pack_name)
