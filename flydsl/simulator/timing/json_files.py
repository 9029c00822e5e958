"""Reading JSON that another program wrote: an unexpected value is an error that names the file, the place and it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flydsl.errors import ArgumentError

_MAX_SHOWN = 80


def read_json(file: Path) -> Any:
    """The content of a file. ArgumentError if it is no JSON."""
    try:
        return json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"{file} is not JSON: {error}", hint="was rocprofv3 ended before it had written it?"
        ) from error


def optional_object(file: Path) -> dict[str, Any]:
    """The object in a file; an empty one where there is no such file."""
    return as_object(file, read_json(file)) if file.is_file() else {}


def as_object(file: Path, value: Any) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise malformed(file, "the file", "an object", value)
    return value


def as_list(file: Path, where: str, value: Any) -> list[Any]:
    """The value, which must be a list. where: it is in the file."""
    if not isinstance(value, list):
        raise malformed(file, where, "a list", value)
    return value


def field(file: Path, content: Any, name: str, kind: type) -> Any:
    """A field of an object, which must be a list or a dict."""
    found = as_object(file, content).get(name)
    if not isinstance(found, kind):
        raise malformed(file, name, "a list" if kind is list else "an object", found)
    return found


def whole(file: Path, where: str, value: Any) -> int:
    """The value, which must be a whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise malformed(file, where, "a whole number, 0 or more", value)
    return value


def malformed(file: Path, where: str, wanted: str, found: Any) -> ArgumentError:
    """The error for a value that is not what it should be."""
    text = repr(found)
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return ArgumentError(f"{file}: {where} is {shown}", hint=f"it should be {wanted}")
