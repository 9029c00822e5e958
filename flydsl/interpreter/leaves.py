"""A reading of the layout algebra: leaves that carry the number of every lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.interpreter.elements import Array
from flydsl.layout import Dynamic


class LaneLeaf(Dynamic):
    """A dynamic leaf with its number in each lane; (1,) where all lanes have the same."""

    __slots__ = ("lanes",)

    lanes: Array

    def __init__(self, lanes: Array, width: int, divisibility: int = 1) -> None:
        super().__init__(width, divisibility)
        object.__setattr__(self, "lanes", lanes)

    def _combine(self, op: str, lhs: Any, rhs: Any, width: int, divisibility: int) -> LaneLeaf:
        a, b = (numbers_of(leaf, width) for leaf in (lhs, rhs))
        return LaneLeaf(_OPERATIONS[op](a, b), width, divisibility)

    def __str__(self) -> str:
        first = int(self.lanes.flat[0])
        return str(first) if (self.lanes == first).all() else f"{first}.."

    __repr__ = __str__


def numbers_of(leaf: Any, width: int = 64) -> Array:
    """The numbers of a leaf, as integers of a width."""
    given = leaf.lanes if isinstance(leaf, LaneLeaf) else np.array([leaf])
    return given.astype(np.int32 if width == 32 else np.int64, copy=False)


def _quotient(a: Array, b: Array) -> Array:
    """The quotient; by zero, which the layout of an empty tensor has, the dividend."""
    return a // np.where(b == 0, 1, b)


_OPERATIONS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _quotient,
    "ceil_div": lambda a, b: -_quotient(-a, b),
    "mod": lambda a, b: a % np.where(b == 0, 1, b),
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}
