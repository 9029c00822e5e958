"""Names without a value: what is left of a name that only one branch, or only a loop's body, assigns."""

from __future__ import annotations

from typing import Any, NoReturn

from flydsl.dialect.location import user_location
from flydsl.errors import TraceError
from flydsl.expr.tree import describe


class Undefined:
    """Stands for a name that has no value here. Any use of it is an error that says why.

    reason: a whole sentence; hint: what to do about it.
    """

    def __init__(self, reason: str, hint: str) -> None:
        self._reason = reason
        self._hint = hint

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        raise TraceError(self._reason, at=user_location(), hint=self._hint)

    def __getattr__(self, name: str) -> NoReturn:
        self._fail()

    def __repr__(self) -> str:
        return f"a name without a value ({self._reason})"

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __index__ = __float__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = _fail
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __invert__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __enter__ = __exit__ = _fail


class _Unset:
    """What a function will return while that is not decided; with any value it makes that value."""

    def __repr__(self) -> str:
        return "nothing yet"


UNSET = _Unset()


def unassigned(name: str) -> Undefined:
    """A name that nothing has assigned yet."""
    return Undefined(f"{name!r} has no value here: it is not assigned before", f"assign {name} first")


def assigned_in_loop(name: str, before: Any, after: Any) -> Undefined:
    """A name that a runtime loop, which may run zero times, assigns without carrying it.

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
    """A name that one branch of a runtime `if` assigns and the other leaves without a value."""
    return Undefined(
        f"{name!r} is assigned in one branch of a runtime `if` only, so it has no value after it",
        f"assign {name} before the `if`, or in both branches",
    )
