"""FlyDSL's decorators for library functions, which give operations their caller's line. Here every operation has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flydsl.expr.flydsl_names.names import unknown_name

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["dsl_loc_tracing", "traced_op"]


def dsl_loc_tracing(function: _F) -> _F:
    """Return the function itself: an operation has the line of the innermost function outside of this package."""
    return function


traced_op = dsl_loc_tracing

__getattr__ = unknown_name("flydsl.expr.meta", globals())
