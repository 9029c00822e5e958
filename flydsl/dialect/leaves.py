"""The leaves of int tuples and layouts: which are known at run time only, and others in their place."""

from __future__ import annotations

from typing import Any

from flydsl import layout as algebra


def dynamic_leaves(value: Any) -> list[algebra.Dynamic]:
    """The dynamic leaves of an int tuple or a layout (shape before stride), in order."""
    if isinstance(value, algebra.Layout):
        return dynamic_leaves(value.extents) + dynamic_leaves(value.strides)
    if isinstance(value, algebra.ComposedLayout):
        return [leaf for part in algebra.composed_parts(value) for leaf in dynamic_leaves(part)]
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in dynamic_leaves(item)]
    return [value] if isinstance(value, algebra.Dynamic) else []


def with_leaves(value: Any, leaves: list[Any]) -> Any:
    """An int tuple with other leaves in place of its dynamic ones, which must be as many.

    >>> print(with_leaves(algebra.parse("(?,4)"), [7]))
    (7, 4)
    """
    remaining = iter(leaves)

    def replace(item: Any) -> Any:
        if isinstance(item, tuple):
            return tuple(map(replace, item))
        return next(remaining) if isinstance(item, algebra.Dynamic) else item

    return replace(value)


def erase_values(value: Any) -> Any:
    """The symbolic form of a leaf, int tuple or layout whose dynamic leaves carry values."""
    if isinstance(value, algebra.Layout):
        return algebra.make_layout(erase_values(value.extents), erase_values(value.strides))
    if isinstance(value, algebra.ComposedLayout):
        return algebra.make_composed_layout(*map(erase_values, algebra.composed_parts(value)))
    if isinstance(value, tuple):
        return tuple(map(erase_values, value))
    return algebra.Dynamic(value.width, value.divisibility) if isinstance(value, algebra.Dynamic) else value


def is_static(value: Any) -> bool:
    """True if an int tuple, layout or tile has no dynamic leaves."""
    return not dynamic_leaves(value)
