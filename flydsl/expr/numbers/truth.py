"""Answers that are both attributes and methods, as releases of FlyDSL have them."""

from __future__ import annotations

from typing import cast


class Truth(int):
    """True or False, which may also be called: `x.is_static` and `x.is_static()` are the same."""

    __slots__ = ()

    def __call__(self) -> bool:
        return self == 1

    def __repr__(self) -> str:
        return str(self == 1)

    __str__ = __repr__


_TRUE, _FALSE = Truth(1), Truth(0)


def truth(answer: bool) -> bool:
    """The answer, which may be called, too. To the type checker it is a bool, from which no class can be derived.

    >>> truth(True), truth(False)()
    (True, False)
    """
    return cast("bool", _TRUE if answer else _FALSE)
