"""The file that keeps the results of a sweep as they come: a line of JSON each, read as data, only ever added to.

A line has a key, the digest of all that its result depends on, so that one file can have the results of several sweeps,
and a result of a kernel that has changed since is not taken for that of the present one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from flydsl.errors import FlyError

_TEXTS = ("arch", "error", "note")


class JournalError(FlyError, OSError):
    """The file cannot be read or written."""


class Journal:
    """A file of results. `kept` has those that were there, by key.

    A line that a killed process wrote half is left out, and its point runs again. Raises JournalError.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            text = self.path.read_text("utf-8", "replace") if self.path.exists() else ""
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise JournalError(
                f"path={str(path)!r}: {error.strerror}", hint="pass a file that can be written"
            ) from error
        self._starts_line = text.endswith("\n") or not text
        self.kept: dict[str, dict[str, Any]] = {}
        for line in text.splitlines():
            if (found := _outcome(line)) is not None:
                self.kept.setdefault(*found)

    def add(self, key: str, about: dict[str, Any], outcome: dict[str, Any]) -> None:
        """Write a result, in one piece. about: what it is of, for readers."""
        line = json.dumps({"key": key, **about, **outcome}) + "\n"
        data = line.encode() if self._starts_line else b"\n" + line.encode()
        try:
            written = os.write(self._file, data)
        except OSError as error:
            raise JournalError(f"{self.path} takes no more results: {error.strerror}") from error
        self._starts_line = written == len(data)
        if not self._starts_line:
            raise JournalError(f"{self.path} takes no more results: the disk is full")

    def close(self) -> None:
        """No more is written."""
        os.close(self._file)


def _outcome(line: str) -> tuple[str, dict[str, Any]] | None:
    """The key and the result of a line; None if it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("key"), str):
        return None
    values = found.get("values")
    if not isinstance(values, dict) or not all(isinstance(value, int | float | str) for value in values.values()):
        return None
    if not all(isinstance(found.get(name), str | None) for name in _TEXTS) or not isinstance(found.get("arch"), str):
        return None
    return found["key"], {"values": values, **{name: found.get(name) for name in _TEXTS}}
