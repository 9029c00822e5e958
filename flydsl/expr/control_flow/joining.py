"""Join the two values of a name after a branch or loop: check that their types match, and find where they differ.

A Python number takes the other value's type, as it does next to an operator. All other values keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.errors import ArgumentError
from flydsl.expr.control_flow.tree import Container, Tree, describe, flatten, is_leaf, is_same_leaf, leaf_type, typed
from flydsl.expr.numeric import Boolean, Float32, Int64, Numeric, as_numeric, is_python_number
from flydsl.expr.tracing.operands import FlyValue


class Mismatch(Exception):
    """Raised for two values that cannot be joined.

    a, b: their types in words. matters: whether a number, a vector or a container is among them. Other Python values,
    and views of memory, may differ as long as they are not used afterwards. of_containers: whether both are a list, a
    dict or a set, with different elements.
    """

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = describe(a), describe(b)
        if self.a == self.b:
            self.a, self.b = _precisely(a), _precisely(b)
        self.matters = _matters(a) or _matters(b)
        self.of_containers = type(a) is type(b) and isinstance(a, list | dict | set)


def _precisely(value: Any) -> str:
    leaves = [typed(leaf) for leaf in flatten(value).leaves]
    return ", ".join(leaf.dtype.__name__ if isinstance(leaf, Numeric) else repr(leaf) for leaf in leaves)


def _matters(value: Any) -> bool:
    return isinstance(value, Container) or (is_leaf(value) and not isinstance(value, FlyValue))


class Join:
    """The differences between joined values, each a pair of leaves of one type."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []

    def of(self, a: Any, b: Any) -> Callable[[Sequence[Any]], Any]:
        """Join two values. Returns a function from the results, one leaf for each of `pairs`, to the joined value.

        Raises Mismatch.
        """
        if a is b:
            return lambda results: a
        left, right = flatten(a), flatten(b)
        if left.structure != right.structure:
            raise Mismatch(a, b)
        leaves: list[Callable[[Sequence[Any]], Any]] = []
        for x, y in zip(left.leaves, right.leaves, strict=True):
            pair = _of_one_type(x, y)
            if pair is None:
                raise Mismatch(a, b)
            leaves.append(self._leaf(x, *pair))
        return lambda results: left.rebuild([leaf(results) for leaf in leaves])

    def _leaf(self, original: Any, x: Any, y: Any) -> Callable[[Sequence[Any]], Any]:
        if is_same_leaf(x, y):
            return lambda results: original
        position = len(self.pairs)
        self.pairs.append((x, y))
        return lambda results: results[position]


def matched(before: Tree, value: Any, after: Any) -> list[Any]:
    """The leaves of `after`, converted to the types of those in `before`, the tree of `value`. Raises Mismatch."""
    tree = flatten(after)
    if tree.structure != before.structure:
        raise Mismatch(value, after)
    leaves = [_as(typed(old), new) for old, new in zip(before.leaves, tree.leaves, strict=True)]
    if any(leaf is None for leaf in leaves):
        raise Mismatch(value, after)
    return leaves


def _of_one_type(x: Any, y: Any) -> tuple[Any, Any] | None:
    """Two leaves converted to one type, or None if they have none in common."""
    if is_python_number(x) and is_python_number(y):
        a, b = as_numeric(x), as_numeric(y)
        if a.dtype is not b.dtype and Boolean not in (a.dtype, b.dtype):
            common = Float32 if a.is_float or b.is_float else Int64
            a, b = common(a), common(b)
        return (a, b) if a.dtype is b.dtype else None
    if is_python_number(x):
        x = _as(typed(y), x)
        return None if x is None else (x, typed(y))
    y = _as(typed(x), y)
    return None if y is None else (typed(x), y)


def _as(old: Any, new: Any) -> Any:
    """A leaf converted to the type of another, or None if its type is different."""
    if is_python_number(new):
        return _number_as(old, new)
    new = typed(new)
    if type(new) is not type(old) or leaf_type(new) != leaf_type(old):
        return None
    return new if isinstance(new, FlyValue) or new.dtype is old.dtype else None


def _number_as(old: Any, number: Any) -> Any:
    """A Python number as a scalar's type, or None if the number would change."""
    if not isinstance(old, Numeric) or isinstance(number, bool) is not (old.dtype is Boolean):
        return None
    if as_numeric(number).is_float and not old.is_float:
        return None
    try:
        return old.dtype.exactly(number)
    except ArgumentError:
        return None
