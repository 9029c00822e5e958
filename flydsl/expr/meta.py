"""What FlyDSL's library functions are decorated with, so that operations carry their caller's line; here they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["dsl_loc_tracing", "traced_op"]


def dsl_loc_tracing(function: _F) -> _F:
    """The function itself: an operation has the line of the innermost function that is not part of this package."""
    return function


traced_op = dsl_loc_tracing
