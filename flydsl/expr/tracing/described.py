"""Functions that other functions make, one for each instruction or operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def described(function: _Function, name: str, doc: str | None) -> _Function:
    """A function that was made, with its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
