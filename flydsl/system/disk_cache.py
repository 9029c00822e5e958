"""A private, size-bounded cache folder; files are written atomically.

Its content is executed, on the simulator or by the host, so files that another user could have written are not read.
Nothing in it is needed: a folder that cannot be used, a full disk, or a missing file only costs time.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import random
import stat
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack

_MAX_FILE_BYTES = 1 << 26
_MAX_RECORD_BYTES = 1 << 28
_COMPRESSION = 1  # to a third, in less than half a millisecond; higher levels save little more
_BLOCK_BYTES = 4096
# How often the folder is pruned while max_bytes are written. Looking at ten thousand files takes a tenth of a second:
# too long for each write.
_LOOKS = 64
_chance = random.Random()  # of its own: the user's numbers stay what they are
_DIGEST_BYTES = 32
_MAX_DIGESTS_BYTES = 1 << 20
# The owners that are trusted: root, and root as a user's container sees it.
_TRUSTED = (0, 65534)
_LOCK = ".lock-"
_LOCK_LOOKS_S, _LONGEST_WAIT_S = 0.02, 60.0


class CacheFolder:
    """A cache folder. It holds nothing if there is no folder that only this user can write to.

    max_bytes: the size of all files, approximately. Beyond it, the files that have not been used for the longest time
    are removed. A write checks that with a probability in proportion to its size, so that processes need not count.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder if _is_private(folder) else None
        self._max_bytes = max_bytes

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it is missing, or if this user did not write it."""
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
        """Write a file, replacing one of this name. Return False if that is not possible."""
        if self._folder is None or len(content) > min(_MAX_FILE_BYTES, self._max_bytes):
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
        if _chance.random() * self._max_bytes < _LOOKS * (len(content) + _BLOCK_BYTES):
            self._prune(self._folder)
        return True

    def link(self, name: str, target: str) -> None:
        """Make a name stand for another file of the folder, replacing what it stood for before."""
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
        """The file that a name stands for; None if it stands for none."""
        if self._folder is None:
            return None
        try:
            found = os.readlink(self._folder / name)
        except OSError:
            return None
        with contextlib.suppress(OSError):  # a folder that may only be read
            os.utime(self._folder / name, follow_symlinks=False)  # it was used now
        return found

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Be the only process inside the `with` block of this name. Yields True if it had to wait for another one.

        After a minute the block is entered all the same: work that is done twice only costs time.
        """
        descriptor = self._lock_file(name)
        if descriptor is None:
            yield False
            return
        try:
            waited = not _locked(descriptor)
            end = time.monotonic() + _LONGEST_WAIT_S
            while waited and not _locked(descriptor) and time.monotonic() < end:
                time.sleep(_LOCK_LOOKS_S)
            yield waited
        finally:
            with contextlib.suppress(OSError):
                os.unlink(f"{self._folder}/{_LOCK}{name}")
            os.close(descriptor)

    def _lock_file(self, name: str) -> int | None:
        if self._folder is None:
            return None
        try:
            return os.open(
                f"{self._folder}/{_LOCK}{name}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        except OSError:
            return None

    def _prune(self, folder: Path) -> None:
        """Remove the oldest files, a quarter more than needed, so that the next removal is not due at once."""
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


class RecordFolder:
    """A cache folder of records: dicts with text keys, of numbers, text, bytes, lists and dicts. They are read as data.

    max_bytes: what all records may take.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._files = CacheFolder(folder, max_bytes)

    def find(self, name: str) -> dict[str, Any] | None:
        """The record stored under a name; None unless it is intact."""
        data = self._files.read(name)
        content = None if data is None else _decompressed(data)
        return None if content is None else unpacked(content)

    def add(self, name: str, record: dict[str, Any]) -> bool:
        """Store a record under a name. Return False if that is not possible."""
        return self._files.write(name, zlib.compress(packed(record), _COMPRESSION))

    def alone(self, name: str) -> contextlib.AbstractContextManager[bool]:
        """See `CacheFolder.alone`."""
        return self._files.alone(name)


def remembered_digest(folder: Path, state: Any, compute: Callable[[], str]) -> str:
    """The digest of contents that are as slow to read as their `state`, such as times of change, is quick to compare.

    A new installation has other times and the same contents: what is named by the digest is found again.
    """
    name = hashlib.sha256(repr(state).encode()).hexdigest()
    records = RecordFolder(folder / "digests", _MAX_DIGESTS_BYTES)
    known = (records.find(name) or {}).get("digest")
    if isinstance(known, str):
        return known
    digest = compute()
    records.add(name, {"digest": digest})
    return digest


def _decompressed(data: bytes) -> bytes | None:
    """The content of a compressed file; None for anything else."""
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(data, _MAX_RECORD_BYTES)
    except zlib.error:
        return None
    return content if reader.eof else None


def _locked(descriptor: int) -> bool:
    """Lock a file, if no other process has it. The lock ends with the process."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def packed(record: dict[str, Any]) -> bytes:
    """A record as bytes, with their digest in front."""
    content: bytes = msgpack.packb(record)
    return hashlib.sha256(content).digest() + content


def unpacked(data: bytes) -> dict[str, Any] | None:
    """The record that `packed` wrote; None for bytes that it did not write."""
    content = memoryview(data)[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != data[:_DIGEST_BYTES]:
        return None
    try:
        record = msgpack.unpackb(content)
    except ValueError:  # msgpack's errors, too
        return None
    return record if isinstance(record, dict) else None


def _content(descriptor: int) -> bytes | None:
    """The content of an open file that only this user can have written; None otherwise."""
    status = os.fstat(descriptor)
    if not _is_own(status) or not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
        return None
    with contextlib.suppress(OSError):
        os.utime(descriptor)  # it was used now
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read()


def _is_private(folder: Path) -> bool:
    """Create the folder if needed. Return True if it is this user's, and no other user can write to it."""
    try:
        _make(folder)
        status = folder.lstat()
    except OSError:
        return False
    if not (stat.S_ISDIR(status.st_mode) and _is_own(status)):
        return False
    replaceable = _replaceable(folder)
    if replaceable is not None:
        _warn_of(folder, replaceable)
    return replaceable is None


def _replaceable(folder: Path) -> Path | None:
    """A folder around this one in which other users can put another in its place; None if there is none.

    As ssh does it: each is this user's or root's, and others cannot write to it, unless it is sticky, as /tmp is.
    """
    for parent in folder.resolve().parents:
        status = parent.stat()
        others_write = stat.S_IWOTH | (0 if status.st_gid == os.getgid() else stat.S_IWGRP)
        if status.st_uid not in (os.getuid(), *_TRUSTED) or (
            status.st_mode & others_write and not status.st_mode & stat.S_ISVTX
        ):
            return parent
    return None


@functools.cache
def _warn_of(folder: Path, replaceable: Path) -> None:
    warnings.warn(
        f"nothing is cached in {folder}: other users can replace what is in {replaceable}, and what is cached is run; "
        "chmod go-w it, or set FLYDSL_RUNTIME_CACHE_DIR to a folder of your own",
        stacklevel=2,
    )


def _make(folder: Path) -> None:
    """Create the folder and its missing parents, accessible to this user only, whatever the umask."""
    if not folder.is_dir():
        _make(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & 0o022
