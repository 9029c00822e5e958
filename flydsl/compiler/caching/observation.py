"""The inputs of a trace besides the values of Python's names: environment variables, files, and imported modules.

An artifact on disk holds as long as these are what they were. Seen is what goes through `os.environ` and `open`, in a
library's functions too. Not seen are files that are only asked whether they exist, and files that C code opens.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flydsl import env

_ABSENT: tuple[int, int] = (-1, -1)
_MOST_BYTES = 1 << 24


@dataclass(eq=False)  # those of two threads remain two while they have seen the same
class Observation:
    """The inputs of a trace, with the values that it found.

    variables: None for one that was not set. names: of all variables, where something went through them.
    files: by absolute path, their time of change in ns and size in bytes; -1 for a file that there was not.
    contents: the digests of those that there were, which a new copy of a file has, too.
    """

    variables: dict[str, str | None] = field(default_factory=dict)
    names: list[str] | None = None
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)

    def still_holds(self) -> bool:
        """True if a trace would read the same now."""
        now = env.variables_now()
        return (
            all(now.get(name) == value for name, value in self.variables.items())
            and (self.names is None or self.names == sorted(now))
            and all(self._is_as_it_was(path, state) for path, state in self.files.items())
        )

    def _is_as_it_was(self, path: str, state: tuple[int, int]) -> bool:
        now = file_state(path)
        return now == state or (
            now[1] == state[1] != _ABSENT[1] and path in self.contents and content_digest(path) == self.contents[path]
        )

    def to_data(self) -> list[Any]:
        """Itself as plain data, for `from_data`."""
        unchanged = (path for path, state in self.files.items() if file_state(path) == state)
        contents = {path: digest for path in unchanged if (digest := content_digest(path)) is not None}
        return [self.variables, self.names, {path: list(state) for path, state in self.files.items()}, contents]

    @staticmethod
    def from_data(data: Any) -> Observation:
        """The observation that `to_data` wrote. Raises TypeError or ValueError for other data."""
        variables, names, files, contents = data
        states = {path: (time, size) for path, (time, size) in files.items()}
        return Observation(dict(variables), names, states, dict(contents))

    def note_variable(self, name: str | None) -> None:
        """Note the reading of a variable, or of all names."""
        now = env.variables_now()
        if name is None:
            self.names = sorted(now)
        else:
            self.variables.setdefault(name, now.get(name))

    def note_file(self, file: Any) -> None:
        """Note the reading of a file, as `open` was asked for it."""
        if isinstance(file, str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(file))
            self.files.setdefault(path, file_state(path))


def file_state(path: str) -> tuple[int, int]:
    """The time of change in ns and the size in bytes of a file; -1 and -1 if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return _ABSENT
    return status.st_mtime_ns, status.st_size


def content_digest(path: str) -> str | None:
    """The digest of the content of a file; None if it is not a file that can be read, or a large one."""
    try:
        if not stat.S_ISREG((status := os.stat(path)).st_mode) or status.st_size > _MOST_BYTES:
            return None
        with _open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return None


@contextmanager
def observed() -> Iterator[Observation]:
    """Yield an observation that is complete when the `with` block ends. What other threads read is noted with it."""
    found = Observation()
    before = set(sys.modules)
    with env.watched(found.note_variable), _watched_files(found):
        yield found
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and name.partition(".")[0] not in sys.stdlib_module_names:
            found.note_file(file)


_open = builtins.open
_watchers: list[Observation] = []
_watching = threading.Lock()


@contextmanager
def _watched_files(found: Observation) -> Iterator[None]:
    """Have `open` note what it opens. `pathlib` opens through `io`, everything else through the builtin."""
    with _watching:
        _watchers.append(found)
        builtins.open = io.open = _noted_open
    try:
        yield
    finally:
        with _watching:
            _watchers.remove(found)
            if not _watchers:
                builtins.open = io.open = _open


def _noted_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    if not {"w", "x"} & set(mode):
        for watcher in tuple(_watchers):
            watcher.note_file(file)
    return _open(file, mode, *args, **kwargs)


# An error that `open` raises is the user's: no frame of this package may stand between them.
_noted_open.__code__ = _noted_open.__code__.replace(co_filename="<frozen io>")
