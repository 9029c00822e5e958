"""Temporary files and folders, with a clear error if there is no room for them."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from flydsl.errors import CompileError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}


class NoRoomError(CompileError):
    """A temporary file cannot be made or written."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"no temporary file can be written in {_place()}, which compiling needs: {reason}",
            hint="make room there, or set TMPDIR to another folder",
        )


def _place() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "any folder"


def temporary_file() -> IO[bytes]:
    """An open file without a name. Raises NoRoomError."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise NoRoomError(str(error)) from error


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed afterwards. Raises NoRoomError, also if a file cannot be written into it."""
    try:
        made = tempfile.TemporaryDirectory(prefix="flydsl-", ignore_cleanup_errors=True)
    except OSError as error:
        raise NoRoomError(str(error)) from error
    with made as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.errno in _NO_ROOM or str(error.filename).startswith(folder):
                raise NoRoomError(str(error)) from error
            raise  # about another file
