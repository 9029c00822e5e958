"""The user's source line as an MLIR location.

Every operation carries the innermost frame that is not part of this package: the line of the kernel, or of a helper
function that the kernel calls. Python 3.11 and later also give columns, which error messages turn into carets.
"""

from __future__ import annotations

from mlir import ir

from flydsl.errors import ArgumentError, TraceError
from flydsl.errors.places import SourceLocation, user_location

_mlir_locations: dict[SourceLocation, ir.Location] = {}


def argument_error(message: str, hint: str | None = None) -> ArgumentError:
    """The error that an operand at the user's line does not suit; see `FlyError` for message and hint."""
    return ArgumentError(message, at=user_location(), hint=hint)


def trace_error(message: str, hint: str | None = None) -> TraceError:
    """The error that the user's line cannot be traced; see `FlyError` for message and hint."""
    return TraceError(message, at=user_location(), hint=hint)


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
        return SourceLocation(location.filename, location.start_line, column, end, is_claimed=True)
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
