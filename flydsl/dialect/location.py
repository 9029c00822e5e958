"""The user's source line as an MLIR location.

Every operation carries the innermost frame that is not part of this package: the line of the kernel, or of a helper
function that the kernel calls. Python 3.11 and later also give columns, which error messages turn into carets.
"""

from __future__ import annotations

import os
import re
import sys
from types import CodeType, FrameType

from mlir import ir

from flydsl.errors import ArgumentError, SourceLocation, TraceError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The workbench calls launchers for its user, whose line is the one that counts.
_NOT_THE_USERS: tuple[str, ...] = (
    _PACKAGE,
    os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "workbench") + os.sep,
    "<frozen ",
)
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_MADE = ("<string>", "__init__")  # of a dataclass


def leave_out(folder: str) -> None:
    """Take the frames of a package, by its folder, for those of a library between the user and this one."""
    global _NOT_THE_USERS
    if folder + os.sep not in _NOT_THE_USERS:
        _NOT_THE_USERS = (*_NOT_THE_USERS, folder + os.sep)


class _Places:
    """The locations of the instructions of a code object, which it keeps: so no other has its id."""

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
_mlir_locations: dict[SourceLocation, ir.Location] = {}


def user_frame() -> FrameType | None:
    """The innermost frame outside this package on the Python stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def is_users(frame: FrameType) -> bool:
    """True if a frame is of code outside this package, except Python's: its library's, or a dataclass's."""
    code = frame.f_code
    file = code.co_filename
    return not (file.startswith(_NOT_THE_USERS) or in_standard_library(file) or (file, code.co_name) == _MADE)


def in_standard_library(file: str) -> bool:
    """True for a file of Python's own."""
    return file.startswith(_STANDARD_LIBRARY) and "-packages" not in file


def user_location() -> SourceLocation | None:
    """The innermost place outside this package on the Python stack."""
    frame = user_frame()
    return None if frame is None else location_of(frame.f_code, frame.f_lasti, frame.f_lineno)


def argument_error(message: str, hint: str | None = None) -> ArgumentError:
    """The error that an operand at the user's line does not suit; see `FlyError` for message and hint."""
    return ArgumentError(message, at=user_location(), hint=hint)


def trace_error(message: str, hint: str | None = None) -> TraceError:
    """The error that the user's line cannot be traced; see `FlyError` for message and hint."""
    return TraceError(message, at=user_location(), hint=hint)


def line_that_calls(package: str) -> SourceLocation | None:
    """The innermost place of the user's outside of a package of Python's; where there is none, the innermost place."""
    frame = user_frame()
    while frame is not None and (_is_within(frame, package) or not is_users(frame)):
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
    """The name behind a function's `def`, below its decorators; the function's first line if its source is unknown."""
    first = SourceLocation(code.co_filename, code.co_firstlineno)
    named = re.compile(rf"\s*(?:async\s+)?def\s+({re.escape(code.co_name)})\b")
    at = first
    while (text := at.source_line) is not None:
        if found := named.match(text):
            start, end = (len(text[:place].encode()) for place in found.span(1))
            return SourceLocation(at.file, at.line, start, end)
        at = SourceLocation(at.file, at.line + 1)
    return first


def mlir_location(at: SourceLocation | None) -> ir.Location:
    """`at` as an MLIR file location; columns count from 1 there. Needs a current MLIR context."""
    if at is None:
        return ir.Location.unknown()
    found = _mlir_locations.get(at)
    if found is None:
        found = _mlir_locations[at] = _to_mlir(at)
    return found


def _to_mlir(at: SourceLocation) -> ir.Location:
    if at.column is None:
        return ir.Location.file(at.file, at.line, 0)
    if at.end_column is None:
        return ir.Location.file(at.file, at.line, at.column + 1)
    return ir.Location.file(at.file, at.line, at.column + 1, at.line, at.end_column + 1)


def source_location(location: ir.Location) -> SourceLocation | None:
    """The first file position in an MLIR location, looking into fused, call-site and named ones."""
    if location.is_a_file():
        if location.start_line == 0:
            return None
        column = location.start_col - 1 if location.start_col else None
        end = location.end_col - 1 if column is not None and location.end_col > location.start_col else None
        return SourceLocation(location.filename, location.start_line, column, end)
    for inner in _inner(location):
        found = source_location(inner)
        if found is not None:
            return found
    return None


def _inner(location: ir.Location) -> list[ir.Location]:
    if location.is_a_fused():
        return list(location.locations)
    if location.is_a_callsite():
        return [location.callee, location.caller]
    if location.is_a_name():
        return [location.child_loc]
    return []
