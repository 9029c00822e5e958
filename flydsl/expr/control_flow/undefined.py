"""Names without a value: those that only one branch, or only a loop's body, assigns."""

from __future__ import annotations

from typing import Any

from flydsl.expr.control_flow.tree import describe
from flydsl.expr.tracing.undefined import Undefined


class _Unset:
    """Placeholder for a function's result until it is decided. Joined with a value it becomes that value."""

    def __repr__(self) -> str:
        return "nothing yet"


UNSET = _Unset()


def unassigned(name: str) -> Undefined:
    """The Undefined of a name that has not been assigned yet."""
    return Undefined(f"{name!r} has no value here: it is not assigned before", f"assign {name} first")


def assigned_in_loop(name: str, before: Any, after: Any) -> Undefined:
    """The Undefined of a name that a runtime loop, which may run zero times, assigns without carrying it.

    before, after: its values before the loop and after an iteration.
    """
    if isinstance(before, Undefined):
        return Undefined(
            f"{name!r} is first assigned inside a runtime loop, so it has no value outside of it",
            f"assign {name} before the loop",
        )
    return Undefined(
        f"{name!r} is {describe(before)} before a runtime loop and {describe(after)} after an iteration",
        f"give the value inside the loop another name than {name}",
    )


def assigned_in_one_branch(name: str) -> Undefined:
    """The Undefined of a name that only one branch of a runtime `if` assigns."""
    return Undefined(
        f"{name!r} is assigned in one branch of a runtime `if` only, so it has no value after it",
        f"assign {name} before the `if`, or in both branches",
    )
