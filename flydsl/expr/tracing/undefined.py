"""A placeholder for names that have no value."""

from __future__ import annotations

from typing import Any, NoReturn

from flydsl.dialect.location import trace_error


class Undefined:
    """Placeholder for a name that has no value. Any use of it raises an error that explains why.

    reason: a whole sentence; hint: what to do about it. text: as which it prints, instead of the error.
    """

    def __init__(self, reason: str, hint: str, text: str | None = None) -> None:
        self._reason = reason
        self._hint = hint
        self._text = text

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        """Raise TraceError."""
        raise trace_error(self._reason, self._hint)

    def _printed(self, *_: Any) -> str:
        return self.fail() if self._text is None else self._text

    def __getattr__(self, name: str) -> NoReturn:
        self.fail()

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __index__ = __float__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = fail
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __invert__ = fail
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __divmod__ = __rdivmod__ = __pos__ = __abs__ = __int__ = fail
    __round__ = __trunc__ = __floor__ = __ceil__ = __eq__ = __ne__ = fail
    # A message that names the value is this error instead.
    __repr__ = __str__ = __format__ = _printed
    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __enter__ = __exit__ = fail


def refuse_undefined(value: Any) -> None:
    """Raise TraceError if a name has no value."""
    if isinstance(value, Undefined):
        value.fail()
