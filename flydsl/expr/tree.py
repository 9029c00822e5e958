"""Values of a program as a flat list of SSA values, and back: what crosses the edge of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from flydsl.expr.numeric import Numeric, as_numeric
from flydsl.expr.typing import FlyValue
from flydsl.expr.vector import Vector


@dataclass(frozen=True)
class Tree:
    """A value taken apart.

    leaves: scalars, vectors and fly values, each one SSA value.
    structure: in words, what two values must have in common to be alike, apart from the leaves' types.
    rebuild: the value again, from other SSA values.
    """

    leaves: list[Any]
    structure: str
    rebuild: Callable[[Sequence[ir.Value]], Any]


def flatten(value: Any) -> Tree:
    """Take a value apart. Tuples and lists are nested; what is no runtime value is part of the structure.

    >>> flatten((1, [2.0, "x"])).structure
    "(scalar, [scalar, 'x'])"
    """
    if isinstance(value, tuple | list):
        return _sequence(value)
    if isinstance(value, bool | int | float):
        value = as_numeric(value)
    if isinstance(value, Numeric):
        return Tree([value], "scalar", lambda values: value.dtype.of(values[0]))
    if isinstance(value, Vector):
        return Tree([value], "vector", lambda values: Vector(values[0], value.dtype))
    if isinstance(value, FlyValue):
        kind = type(value)
        return Tree([value], kind.__name__, lambda values: kind(values[0]))  # type: ignore[call-arg]
    return Tree([], repr(value), lambda values: value)


def _sequence(value: tuple[Any, ...] | list[Any]) -> Tree:
    parts = [flatten(item) for item in value]
    opening, closing = "()" if isinstance(value, tuple) else "[]"

    def rebuild(values: Sequence[ir.Value]) -> Any:
        items, position = [], 0
        for part in parts:
            items.append(part.rebuild(values[position : position + len(part.leaves)]))
            position += len(part.leaves)
        return tuple(items) if isinstance(value, tuple) else items

    structure = f"{opening}{', '.join(part.structure for part in parts)}{closing}"
    return Tree([leaf for part in parts for leaf in part.leaves], structure, rebuild)


def leaf_value(leaf: Any) -> ir.Value:
    """The SSA value of a leaf; a static scalar becomes a constant."""
    return leaf.value if isinstance(leaf, FlyValue) else leaf.ir_value()


def leaf_type(leaf: Any) -> ir.Type:
    """The MLIR type of a leaf."""
    return leaf.dtype.ir_type if isinstance(leaf, Numeric) else leaf.value.type
