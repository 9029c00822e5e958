"""Split values into leaves that are one SSA value each, to pass them into and out of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from types import SimpleNamespace
from typing import Any

from mlir import ir

from flydsl.errors import TraceError
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import Numeric, as_numeric, bare_like, is_python_number
from flydsl.expr.tracing.operands import FlyValue, as_dsl_value, as_ir_value

Container = list | tuple | dict | SimpleNamespace


@dataclass(frozen=True)
class Tree:
    """A value split into leaves.

    leaves: Python numbers, scalars, vectors and fly values, each one SSA value in the program.
    structure: equal for two values that differ in their leaves only.
    rebuild: a function that makes the value of other leaves.
    """

    leaves: list[Any]
    structure: Any
    rebuild: Callable[[Sequence[Any]], Any]


class Opaque:
    """A Python object that is not a value of the program. It equals one that holds the same or an equal object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Opaque) or type(other.value) is not type(self.value):
            return False
        if other.value is self.value:
            return True
        try:
            return (other.value == self.value) is True
        except TraceError:  # its class compares runtime values
            return False

    __hash__ = None  # type: ignore[assignment]


def flatten(value: Any) -> Tree:
    """Split a value: numbers, vectors and fly values are leaves, containers are nested.

    >>> flatten((1, [2.0, {"x": 3}])).leaves
    [1, 2.0, 3]
    """
    if is_leaf(value):
        return Tree([value], "leaf", lambda leaves: leaves[0])
    if not isinstance(value, Container):
        if is_own_object(value):
            return _object_tree(value)
        record = _record_tree(value) if is_dataclass(value) and not isinstance(value, type) else None
        return record or Tree([], Opaque(value), lambda leaves: value)
    keys, items = parts(value)
    trees = [flatten(item) for item in items]

    def rebuild(leaves: Sequence[Any]) -> Any:
        remaining: Iterator[Any] = iter(leaves)
        return with_parts(value, [tree.rebuild([next(remaining) for _ in tree.leaves]) for tree in trees])

    structure = (type(value), keys, [tree.structure for tree in trees])
    return Tree([leaf for tree in trees for leaf in tree.leaves], structure, rebuild)


def is_own_object(value: Any) -> bool:
    """True for an object of a program's own class that follows the protocol of `DslType`."""
    if isinstance(value, Container | type) or is_leaf(value):
        return False
    kind = type(value)  # asked of the class: a variable without a value answers any other question with an error
    return all(hasattr(kind, name) for name in ("__extract_to_ir_values__", "__construct_from_ir_values__"))


def _object_tree(value: Any) -> Tree:
    """An object's values as leaves; one without values stays as it is."""
    kind = type(value)
    leaves = [as_dsl_value(leaf) for leaf in value.__extract_to_ir_values__()]
    if not leaves:
        return Tree([], Opaque(value), lambda others: value)
    return Tree(
        leaves, (kind, len(leaves)), lambda others: kind.__construct_from_ir_values__(list(map(as_ir_value, others)))
    )


def _record_tree(value: Any) -> Tree | None:
    """A dataclass's object with its fields as parts; None if they hold no values of the program."""
    names = [field.name for field in fields(value) if hasattr(value, field.name)]
    trees = [flatten(getattr(value, name)) for name in names]
    leaves = [leaf for tree in trees for leaf in tree.leaves]
    if all(map(is_python_number, leaves)):
        return None

    def rebuild(others: Sequence[Any]) -> Any:
        remaining, made = iter(others), copy(value)
        for name, tree in zip(names, trees, strict=True):
            object.__setattr__(made, name, tree.rebuild([next(remaining) for _ in tree.leaves]))
        return made

    return Tree(leaves, (type(value), names, [tree.structure for tree in trees]), rebuild)


def is_leaf(value: Any) -> bool:
    """True if a value is one SSA value in the program."""
    return is_python_number(value) or isinstance(value, Numeric | Vector | FlyValue | ir.Value)


def parts(container: Container) -> tuple[Any, list[Any]]:
    """The key that identifies a container's parts (a length, or keys), and the parts."""
    if isinstance(container, dict):
        return list(container), list(container.values())
    if isinstance(container, SimpleNamespace):
        return list(vars(container)), list(vars(container).values())
    return len(container), list(container)


def with_parts(container: Container, items: list[Any]) -> Any:
    """A new container of the same kind with other parts."""
    if isinstance(container, dict):
        return dict(zip(container, items, strict=True))
    if isinstance(container, SimpleNamespace):
        made = container.__class__.__new__(container.__class__)
        vars(made).update(zip(vars(container), items, strict=True))
        return made
    if hasattr(container, "_fields"):
        return type(container)(*items)  # a named tuple
    return tuple(items) if isinstance(container, tuple) else items


def write_into(container: Any, new: Any) -> Any:
    """Copy the leaves of `new` into a container of its structure, in place if it is mutable. Returns the result."""
    if not isinstance(container, Container):
        return new
    keys, old_items = parts(container)
    items = [write_into(old, item) for old, item in zip(old_items, parts(new)[1], strict=True)]
    if isinstance(container, list):
        container[:] = items
    elif isinstance(container, dict | SimpleNamespace):
        target = container if isinstance(container, dict) else vars(container)
        target.update(zip(keys, items, strict=True))
    else:
        return with_parts(container, items)
    return container


# --- leaves ----------------------------------------------------------------------------------------------------------


def typed(leaf: Any) -> Any:
    """A leaf as a value of the DSL: a Python number or a bare `ir.Value` gets its type."""
    return leaf if isinstance(leaf, FlyValue) else as_numeric(leaf)


def leaf_value(leaf: Any) -> ir.Value:
    """The SSA value of a typed leaf; a static scalar becomes a constant."""
    return leaf.value if isinstance(leaf, FlyValue) else leaf.ir_value()


def leaf_type(leaf: Any) -> ir.Type:
    """The MLIR type of a typed leaf."""
    return leaf.dtype.ir_type if isinstance(leaf, Numeric) else leaf.value.type


def leaf_like(leaf: Any, value: ir.Value) -> Any:
    """A leaf of the same type as a typed one, with another SSA value."""
    if isinstance(leaf, Numeric):
        return bare_like(leaf.dtype.of(value), leaf)
    return bare_like(Vector(value, leaf.shape, leaf.dtype), leaf) if isinstance(leaf, Vector) else type(leaf)(value)


def is_same_leaf(a: Any, b: Any) -> bool:
    """True if two typed leaves of one type are the same value."""
    if isinstance(a, Numeric) and isinstance(b, Numeric) and (a.is_static or b.is_static):
        return a.is_static and b.is_static and repr(a.value) == repr(b.value)  # repr tells -0.0 from 0.0
    return bool(ir.Value.__eq__(a.value, b.value))  # `==` of a value with operators compares on the device


def describe(value: Any) -> str:
    """A value's type in words: `i32`, `vector<4xf32>`, `(i32, [f32])`, `None`.

    >>> describe((1, [2.0], None))
    '(i32, [f32], None)'
    """
    if is_leaf(value):
        leaf = typed(value)
        return repr(leaf) if isinstance(leaf, FlyValue) else _type_text(leaf)
    if not isinstance(value, Container):
        return repr(value)
    keys, items = parts(value)
    texts = [describe(item) for item in items]
    if isinstance(keys, list):
        return f"{{{', '.join(f'{key}: {text}' for key, text in zip(keys, texts, strict=True))}}}"
    return f"({', '.join(texts)})" if isinstance(value, tuple) else f"[{', '.join(texts)}]"


def _type_text(leaf: Any) -> str:
    if isinstance(leaf, Vector):
        return str(leaf.value.type)
    return leaf.dtype.mlir_name if leaf.dtype.signed or leaf.dtype.width == 1 else f"u{leaf.dtype.mlir_name}"
