"""Places in the user's source: of a frame on the stack, of a function, of an error on its way out.

A frame is the user's if its code is neither in this package, nor in the workbench, nor in Python's library. Python 3.11
and later also give columns, which error messages turn into carets.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, TracebackType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The workbench calls launchers for its user, whose line is the one that counts.
PACKAGES = (_PACKAGE, os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "workbench") + os.sep)
_library_paths: tuple[str, ...] = (*PACKAGES, "<frozen ")
_MOST_SOURCE_BYTES = 1 << 24
_NOTEBOOK_CELL = re.compile(r"(ipykernel_\d+[/\\]\d+\.py|<ipython-input-.*>)$")
_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_MAGIC_CALL = re.compile(rf"get_ipython\(\)\.run_(cell|line)_magic\({_QUOTED}, {_QUOTED}")
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
TRACER = "_trace_launcher"  # the function of this package that calls what is traced
_MADE = {("<string>", f"__{name}__") for name in ("init", "eq", "lt", "le", "gt", "ge", "hash")}  # of a dataclass


def treat_as_library(path: str) -> None:
    """Treat code below a folder, or in a file, as a library's: errors are at the user's line that called it."""
    global _library_paths
    path += os.sep if os.path.isdir(path) else ""
    if path and path not in _library_paths:
        _library_paths = (*_library_paths, path)
        _is_users.clear()


# The answers of `is_user_frame` by the id of a code object, which is kept so that the id is not used again.
_is_users: dict[int, tuple[CodeType, bool]] = {}
_opened_folders: set[str] = set()


def open_folder(file: str | os.PathLike[str]) -> None:
    """Allow source lines from the folder of a file that the user opens to be shown, where that file names them."""
    _opened_folders.add(os.path.dirname(os.path.realpath(file)))


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's Python source. `line` counts from 1; columns count UTF-8 bytes from 0, as Python's do.

    is_claimed: whether the place comes from a file, which anyone may have written. Then its line is shown only if the
    source is loaded in this process, or lies in a folder from which the user opened something: no file may reveal the
    contents of others.
    """

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    is_claimed: bool = field(default=False, compare=False)

    @property
    def source_line(self) -> str | None:
        """The text of the line, or None if the source is not available."""
        if self.file not in linecache.cache and not _is_readable(self.file):
            return None
        if self.is_claimed and not _is_known(self.file):
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
        """The source line and carets under it; under all of it if the columns are unknown."""
        text = self.source_line
        if text is None:
            return []
        magic = _magic(text)
        if magic is not None:
            return [f"    {magic}", "    " + "^" * len(magic)]
        shown = text.strip()
        indent = len(text) - len(text.lstrip())
        start = max(_characters(text, self.column or 0) - indent, 0)
        end = len(shown) if self.end_column is None else max(_characters(text, self.end_column) - indent, start + 1)
        return [f"    {shown}", "    " + " " * start + "^" * max(min(end, len(shown)) - start, 1)]


def _magic(text: str) -> str | None:
    """A notebook's magic as its user typed it, if this is IPython's call of one; else None."""
    found = _MAGIC_CALL.match(text)
    if found is None:
        return None
    try:
        name, options = (ast.literal_eval(word) for word in found.groups()[1:3])
    except (ValueError, SyntaxError):
        return None
    return f"{'%%' if found[1] == 'cell' else '%'}{name} {options}".strip()


def _is_readable(file: str) -> bool:
    """True if the file may be a source file: the name can come from a listing made elsewhere."""
    try:
        status = os.stat(file)
    except OSError:
        return True  # linecache knows other places, too
    except ValueError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_SOURCE_BYTES


def _is_known(file: str) -> bool:
    """True for the source of something in this process, and for what lies in a folder that the user opened."""
    if file in linecache.cache or any(getattr(module, "__file__", None) == file for module in [*sys.modules.values()]):
        return True
    real = os.path.realpath(file)
    return any(real.startswith(folder + os.sep) for folder in _opened_folders)


def _characters(text: str, column: int) -> int:
    """A column of UTF-8 bytes as one of characters."""
    return len(text.encode()[:column].decode(errors="ignore"))


class _Places:
    """The locations of the instructions of a code object, which is kept so that its id is not used again."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._positions: list[tuple[int | None, int | None, int | None, int | None]] = []
        if sys.version_info >= (3, 11):
            self._positions = list(code.co_positions())
        self.locations: dict[int, SourceLocation] = {}

    def locate(self, instruction: int, line: int | None) -> SourceLocation:
        """The place of an instruction, given as the offset of its code, in a line."""
        file = self._code.co_filename
        position = self._positions[instruction // 2] if instruction // 2 < len(self._positions) else None
        if position is None or position[0] is None:
            return SourceLocation(file, line or 0)
        if position[0] != position[1]:  # a loop, or an expression of several lines
            return SourceLocation(file, position[0], position[2])
        return SourceLocation(file, position[0], position[2], position[3])


_places: dict[int, _Places] = {}


def user_frame() -> FrameType | None:
    """The innermost frame outside this package on the Python stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        answer = _is_users.get(id(frame.f_code))  # for every traced operation, so without a call for each frame
        if answer[1] if answer else is_user_frame(frame):
            return frame
        frame = frame.f_back
    return None


def user_frames(outermost: str) -> Iterator[FrameType]:
    """The frames outside this package on the Python stack, innermost first, as far as the function of that name."""
    frame = user_frame()
    while frame is not None and frame.f_code.co_name != outermost:
        if is_user_frame(frame):
            yield frame
        frame = frame.f_back


def is_user_frame(frame: FrameType) -> bool:
    """True for a frame of the user's code: not a library's, nor what Python makes for a dataclass or a named tuple."""
    code = frame.f_code
    answer = _is_users.get(id(code))
    if answer is None:
        file = code.co_filename
        is_made = (file, code.co_name) in _MADE or str(frame.f_globals.get("__name__")).startswith("namedtuple_")
        is_library = file.startswith(_library_paths) or in_standard_library(file) or is_made
        answer = _is_users[id(code)] = (code, not is_library)
    return answer[1]


def lines_of_callers() -> str:
    """The lines that led to the user's innermost function: " (called from line 46)"; "" in a kernel."""
    frame, lines = user_frame(), []
    while frame is not None and (caller := frame.f_back) is not None and is_user_frame(caller):
        if not frame.f_code.co_name.startswith("<"):  # a comprehension, or a lambda, is at its caller's line
            lines.append(str(caller.f_lineno))
        frame = caller
    return f" (called from line {', from line '.join(lines)})" if lines else ""


def in_standard_library(file: str) -> bool:
    """True for a file of Python's own."""
    return file.startswith(_STANDARD_LIBRARY) and "-packages" not in file


def user_location() -> SourceLocation | None:
    """The innermost place outside this package on the Python stack."""
    frame = user_frame()
    return None if frame is None else location_of(frame.f_code, frame.f_lasti, frame.f_lineno)


def line_outside_of(package: str) -> SourceLocation | None:
    """The user's innermost place outside of a Python package; if there is none, the innermost place."""
    frame = user_frame()
    while frame is not None and (_is_within(frame, package) or not is_user_frame(frame)):
        frame = frame.f_back
    return user_location() if frame is None else location_of(frame.f_code, frame.f_lasti, frame.f_lineno)


def _is_within(frame: FrameType, package: str) -> bool:
    name = frame.f_globals.get("__package__") or ""
    return bool(package) and f"{name}.".startswith(f"{package}.")


def location_of(code: CodeType, instruction: int, line: int | None) -> SourceLocation:
    """The place of an instruction of a code object, given as the offset of its code, in a line."""
    places = _places.get(id(code))
    if places is None:
        places = _places[id(code)] = _Places(code)
    found = places.locations.get(instruction)
    if found is None:
        found = places.locations[instruction] = places.locate(instruction, line)
    return found


def definition_location(code: CodeType) -> SourceLocation:
    """The name after a function's `def`, below its decorators; the function's first line if its source is unknown."""
    first = SourceLocation(code.co_filename, code.co_firstlineno)
    named = re.compile(rf"\s*(?:async\s+)?def\s+({re.escape(code.co_name)})\b")
    at = first
    while (text := at.source_line) is not None:
        if found := named.match(text):
            start, end = (len(text[:place].encode()) for place in found.span(1))
            return SourceLocation(at.file, at.line, start, end)
        at = SourceLocation(at.file, at.line + 1)
    return first


def steps_of(error: BaseException) -> Iterator[TracebackType]:
    """The steps of an error's traceback, outermost first."""
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def innermost_place(error: BaseException) -> SourceLocation | None:
    """The user's innermost line that an error passed through."""
    users = [step for step in steps_of(error) if is_user_frame(step.tb_frame)]
    return location_of(users[-1].tb_frame.f_code, users[-1].tb_lasti, users[-1].tb_lineno) if users else None


def source_lines(code: CodeType) -> tuple[list[str], int]:
    """(the lines, the number of the first) of a function, as `inspect.getsourcelines` returns them.

    Reads the file itself if it can: `inspect` first asks every loaded module for its file, which takes 12 ms if torch
    is loaded. Raises OSError if the source is not available.
    """
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if code.co_firstlineno > len(lines):
        return inspect.getsourcelines(code)
    return _block(lines, code), code.co_firstlineno


def _block(lines: list[str], code: CodeType) -> list[str]:
    """The lines of a function, mostly by the last line of its code: `inspect.getblock` reads every token."""
    first = code.co_firstlineno - 1
    indent, after = _indent(lines[first]), min(_last_line(code), len(lines))
    if after <= first or _indent(lines[after - 1]) <= indent:  # a body in its first line, or the end of a string
        return inspect.getblock(lines[first:])
    while after < len(lines) and (_is_empty(lines[after]) or _indent(lines[after]) > indent):
        after += 1
    return lines[first:after]


def _last_line(code: CodeType) -> int:
    """The last line of the instructions of a function and of those inside it; 0 where instructions have no lines."""
    if sys.version_info < (3, 11):
        return 0
    own = max((end or 0 for _, end, _, _ in code.co_positions()), default=0)
    return max(own, *(_last_line(const) for const in code.co_consts if isinstance(const, CodeType)), 0)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_empty(line: str) -> bool:
    """True for a line without code."""
    return not line.strip() or line.lstrip().startswith("#")
