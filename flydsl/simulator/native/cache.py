"""Compiled handlers on disk, shared by all kernels and processes.

A *pack* is an object file with some handlers; its name is the hash of its content. For every handler there is an
*entry*, a symbolic link to the pack, named by what the handler was made from. Both appear at once, so that another
process sees the whole of them or nothing. A pack is checked when it is read; what is not as it should be is compiled
anew. Nothing here is needed: a folder that cannot be used only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

_MAGIC = b"flydsl-pack 1\n"
_MAX_FILE_BYTES = 1 << 26


class HandlerCache:
    """The folder, or nothing where there is no folder that only this user can write to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder if _is_private(folder) else None

    def find(self, key: str) -> tuple[bytes, list[str]] | None:
        """The object with the handler of this key, and the keys of all handlers in it."""
        pack_name = self._pack_of(key)
        pack = self._read(pack_name) if pack_name else None
        if pack is None or hashlib.sha256(pack).hexdigest() != pack_name or not pack.startswith(_MAGIC):
            return None
        keys, _, obj = pack[len(_MAGIC) :].partition(b"\n\n")
        names = keys.decode("ascii").split("\n")
        return (obj, names) if key in names else None

    def add(self, obj: bytes, keys: Iterable[str]) -> None:
        """Keep an object with the handlers of these keys."""
        names = list(keys)
        pack = _MAGIC + "\n".join(names).encode() + b"\n\n" + obj
        pack_name = hashlib.sha256(pack).hexdigest()
        if self._write(pack_name, pack):
            for key in names:
                self._link(key, pack_name)

    def _pack_of(self, key: str) -> str | None:
        if self._folder is None:
            return None
        try:
            name = os.readlink(self._folder / key)
        except OSError:
            return None
        return name if len(name) == 64 and name.isalnum() else None

    def _link(self, key: str, pack_name: str) -> None:
        """An entry that names another pack is one that `find` did not accept."""
        assert self._folder is not None
        temporary = self._folder / f".link-{os.getpid()}-{threading.get_ident()}"
        with contextlib.suppress(OSError):
            os.symlink(pack_name, temporary)
            os.replace(temporary, self._folder / key)

    def _read(self, name: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            descriptor = os.open(self._folder / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not _is_own(status) or not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
                return None
            try:
                return file.read()
            except OSError:
                return None

    def _write(self, name: str, content: bytes) -> bool:
        if self._folder is None:
            return False
        try:
            descriptor, temporary = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        except OSError:
            return False
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, self._folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return False
        return True


def _is_private(folder: Path) -> bool:
    """Make the folder if need be. False unless it is this user's, and nobody else's to write."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_own(status)


def _is_own(status: os.stat_result) -> bool:
    """Executing what others could have written would let them run code as this user."""
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
