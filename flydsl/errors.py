"""Every error a user can meet: what went wrong, where, and what to do.

A `FlyError` carries a message, the place in the user's source that caused it and a hint. Its text is complete on
its own (message, file and line, the source line with a caret, hint), so it reads the same in a terminal, in a log
and in a notebook, where IPython shows that text in place of the stack of compiler frames.
"""

from __future__ import annotations

import difflib
import linecache
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_MOST_SOURCE_BYTES = 1 << 24
_NOTEBOOK_CELL = re.compile(r"(ipykernel_\d+[/\\]\d+\.py|<ipython-input-.*>)$")


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's Python source. `line` counts from 1; columns count UTF-8 bytes from 0, as Python's do."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None

    @property
    def source_line(self) -> str | None:
        """The text of the line, or None if the source is not available."""
        if self.file not in linecache.cache and not _is_readable(self.file):
            return None
        text = linecache.getline(self.file, self.line)
        return text.rstrip("\n") if text else None

    @property
    def file_label(self) -> str:
        """The file as a user knows it: `cell` for a notebook cell, whatever temporary file it was compiled from."""
        return "cell" if self.is_in_cell else self.file

    @property
    def is_in_cell(self) -> bool:
        """True for a notebook's cell, whose file is named after the process."""
        return _NOTEBOOK_CELL.search(self.file) is not None

    def __str__(self) -> str:
        return f"{self.file_label}:{self.line}"

    def excerpt(self) -> list[str]:
        """The source line and, where the columns are known, a caret line under it."""
        text = self.source_line
        if text is None:
            return []
        shown = text.strip()
        lines = [f"    {shown}"]
        if self.column is not None:
            indent = len(text) - len(text.lstrip())
            start = max(_characters(text, self.column) - indent, 0)
            end = len(shown) if self.end_column is None else max(_characters(text, self.end_column) - indent, start + 1)
            lines.append("    " + " " * start + "^" * max(min(end, len(shown)) - start, 1))
        return lines


def _is_readable(file: str) -> bool:
    """True if the file may be a source file: the name can come from a listing that somebody sent."""
    try:
        status = os.stat(file)
    except OSError:
        return True  # linecache knows other places, too
    except ValueError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_SOURCE_BYTES


def _characters(text: str, column: int) -> int:
    """A column of UTF-8 bytes as one of characters."""
    return len(text.encode()[:column].decode(errors="ignore"))


class FlyError(Exception):
    """The base of all errors that flydsl raises on purpose.

    message: what went wrong, with the values that disagree.
    at: the place in the user's source, where one is known.
    hint: what to do about it.
    package: of Python's, which refuses what its caller gave it; "" where the user's innermost line is the cause.
    """

    package = ""

    def __init__(self, message: str, *, at: SourceLocation | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint

    def located(self, at: SourceLocation | None) -> FlyError:
        """Set the place, unless the error already has a more precise one."""
        if self.at is None:
            self.at = at
        return self

    def __str__(self) -> str:
        lines = [self.message]
        if self.at is not None:
            lines.append(f"  at {self.at}")
            lines.extend(self.at.excerpt())
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: what a notebook shows instead of the stack."""
        return f"{type(self).__name__}: {self}".splitlines()


class LayoutError(FlyError, ValueError):
    """Operands that an operation of the layout algebra does not accept."""


class TraceError(FlyError):
    """Python in a kernel or launcher that cannot be turned into device code."""


class ArgumentError(FlyError, TypeError, ValueError):
    """An argument whose type or value a kernel, a launcher or an operation does not accept."""


class LaunchError(FlyError, ValueError):
    """A launch configuration that no device accepts."""


class ArchError(FlyError, ValueError):
    """An unknown architecture, or one that does not have what was asked of it."""


class CompileError(FlyError):
    """A stage of the pipeline failed."""


class DeviceError(FlyError, RuntimeError):
    """The device runtime reported a failure."""


class SimulatorError(DeviceError):
    """The simulated program did something that hardware would not survive, or that the simulator does not support."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The beginning of a hint: the known word with the same beginning as an unknown one, or the closest; empty if none.

    >>> did_you_mean("gfx924", ["gfx90a", "gfx942"])
    'did you mean gfx942? '
    """
    words = list(known)
    close = [other for other in words if word and other.startswith(word)]
    close = close or difflib.get_close_matches(word.lower(), words, n=1)
    return f"did you mean {close[0]}? " if close else ""
