"""Checks that a function of the workbench is given an object of the right kind."""

from __future__ import annotations

from typing import Any

from flydsl.errors import ArgumentError


def require(function: str, value: Any, kinds: type | tuple[type, ...], hint: str) -> None:
    """Raise ArgumentError for a value of another kind. hint: where one of the right kind is found."""
    if not isinstance(value, kinds):
        article = "an" if type(value).__name__[0] in "AEIOUaeiou" else "a"
        raise ArgumentError(f"{function}() does not take {article} {type(value).__name__}", hint=hint)
