"""Answers that are both attributes and methods, as releases of FlyDSL have them."""

from __future__ import annotations


class Truth(int):
    """True or False, which may also be called: `x.is_static` and `x.is_static()` are the same.

    >>> TRUE == True, TRUE(), FALSE(), bool(FALSE)
    (True, True, False, False)
    """

    __slots__ = ()

    def __call__(self) -> bool:
        return self == 1

    def __repr__(self) -> str:
        return str(self == 1)

    __str__ = __repr__


TRUE, FALSE = Truth(1), Truth(0)
