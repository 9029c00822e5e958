"""A folder of files that save time: private to one user, each whole or absent, and not more than a size in total.

What lies there is executed, on the simulator or by the host, so nothing is read that somebody else could have written.
Nothing there is needed, either: a folder that cannot be used, a full disk, or a file that is gone only costs time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import threading
from pathlib import Path

_MAX_FILE_BYTES = 1 << 26


class CacheFolder:
    """The folder, or nothing where there is no folder that only this user can write to.

    max_bytes: what all files may take. Beyond it the ones that were not used for the longest time go.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder if _is_private(folder) else None
        self._max_bytes = max_bytes

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is no such file, or one that this user did not write."""
        if self._folder is None:
            return None
        try:
            # Whatever stands in the file's place: a named pipe would have no end, a link could lead anywhere.
            descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _content(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def write(self, name: str, content: bytes) -> bool:
        """Put a file there, in the place of one of this name. False where that is not possible."""
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
        self._prune(self._folder)
        return True

    def link(self, name: str, target: str) -> None:
        """Let a name stand for another file of the folder, whatever it stood for before."""
        if self._folder is None:
            return
        temporary = self._folder / f".link-{os.getpid()}-{threading.get_ident()}"
        try:
            os.symlink(target, temporary)
            os.replace(temporary, self._folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def target(self, name: str) -> str | None:
        """The file that a name stands for."""
        if self._folder is None:
            return None
        try:
            return os.readlink(self._folder / name)
        except OSError:
            return None

    def _prune(self, folder: Path) -> None:
        """Remove the oldest files, a quarter more than needed, so that it is not needed again at once."""
        try:
            files = [(entry.stat(follow_symlinks=False), entry.path) for entry in os.scandir(folder)]
        except OSError:  # another process is at it
            return
        total = sum(status.st_size for status, _ in files)
        if total <= self._max_bytes:
            return
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if total <= self._max_bytes * 3 // 4:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= status.st_size


def _content(descriptor: int) -> bytes | None:
    """What is in an open file that this user alone can have written."""
    status = os.fstat(descriptor)
    if not _is_own(status) or not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
        return None
    with contextlib.suppress(OSError):
        os.utime(descriptor)  # it was used now
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read()


def _is_private(folder: Path) -> bool:
    """Make the folder if need be. False unless it is this user's, and nobody else's to write."""
    try:
        _make(folder)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_own(status)


def _make(folder: Path) -> None:
    """The folder, and those that it is in where they are missing: nobody else's, whatever the umask says."""
    if not folder.is_dir():
        _make(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
