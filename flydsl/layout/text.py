"""Print values in the notation of the DSL, and format every error of the algebra."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from flydsl.errors import LayoutError

P = ParamSpec("P")
R = TypeVar("R")

_LONGEST_OPERAND = 200
_LONGEST_DECIMAL = 10**4000


def to_text(value: object) -> str:
    """Print an int tuple, or any value of the algebra, in the notation of the DSL.

    >>> to_text((4, (2, None), (8,)))
    '(4,(2,*),(8))'
    """
    try:
        return _text(value)
    except RecursionError:
        raise LayoutError("an int tuple nested too deep to print", hint="flatten it") from None


def _text(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_text, value))})"
    if type(value) is int and abs(value) > _LONGEST_DECIMAL:
        return hex(value)  # Python refuses to print thousands of decimal digits
    return "*" if value is None else str(value)


class Inadmissible(LayoutError):
    """The reason why an operation refuses its operands. `@operation` turns it into the LayoutError that names them."""

    mode: tuple[int, ...] = ()

    def in_mode(self, mode: int) -> Inadmissible:
        """Add the mode of the enclosing operation in which the error occurred."""
        self.mode = (mode, *self.mode)
        return self


def shown(operand: object) -> str:
    """An operand as errors show it: in the notation, with bounded length."""
    try:
        text = repr(operand) if isinstance(operand, str) else to_text(operand)
    except (RecursionError, ValueError):  # nested too deep, or numbers of thousands of digits
        return f"a {type(operand).__name__} too large to print"
    return text if len(text) <= _LONGEST_OPERAND else text[:_LONGEST_OPERAND] + "..."


def refusal(name: str, operands: tuple[object, ...], reason: Inadmissible | RecursionError) -> LayoutError:
    """The error a user sees: operation, operands, mode, reason and hint."""
    if isinstance(reason, RecursionError):
        reason = Inadmissible("the operands are nested too deep")
    where = f" in mode {'.'.join(map(str, reason.mode))}" if reason.mode else ""
    return LayoutError(f"{name}({', '.join(map(shown, operands))}){where}: {reason.message}", hint=reason.hint)


def operation(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a public operation: operands that it refuses raise a LayoutError with its name and operands."""

    @wraps(function)
    def admitting(*operands: P.args, **options: P.kwargs) -> R:
        try:
            return function(*operands, **options)
        except (Inadmissible, RecursionError) as reason:
            raise refusal(function.__name__, (*operands, *options.values()), reason) from None

    return admitting
