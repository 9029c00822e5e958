"""Printing in the notation of the DSL, and the form every error of the algebra takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flydsl.errors import LayoutError

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST_OPERAND = 200


def to_text(value: object) -> str:
    """Print an int tuple, or any value of the algebra, in the notation of the DSL.

    >>> to_text((4, (2, None), (8,)))
    '(4,(2,*),(8))'
    """
    if isinstance(value, tuple):
        return f"({','.join(map(to_text, value))})"
    return "*" if value is None else str(value)


class Inadmissible(Exception):
    """Why an operation does not admit its operands. `@operation` turns it into a LayoutError that names them."""

    def __init__(self, why: str, *, hint: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint
        self.mode: tuple[int, ...] = ()

    def in_mode(self, mode: int) -> Inadmissible:
        """Say in which mode of the enclosing operand it happened."""
        self.mode = (mode, *self.mode)
        return self


def _shown(operand: object) -> str:
    try:
        text = to_text(operand)
    except (RecursionError, ValueError):  # ValueError: Python refuses to print ints of thousands of digits
        return f"<{type(operand).__name__}>"
    return text if len(text) <= _LONGEST_OPERAND else text[:_LONGEST_OPERAND] + "..."


def refusal(name: str, operands: tuple[object, ...], reason: Inadmissible) -> LayoutError:
    """The error a user sees: operation, operands, mode, reason and hint."""
    where = f" in mode {'.'.join(map(str, reason.mode))}" if reason.mode else ""
    return LayoutError(f"{name}({', '.join(map(_shown, operands))}){where}: {reason.why}", hint=reason.hint)


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a public operation: what it does not admit is raised as a LayoutError with its name and operands."""

    @wraps(function)
    def admitting(*operands: P.args, **options: P.kwargs) -> R:
        try:
            return function(*operands, **options)
        except Inadmissible as reason:
            raise refusal(function.__name__, (*operands, *options.values()), reason) from None

    return admitting
