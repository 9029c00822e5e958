"""Values that are one thing in some lanes and another in others."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl import layout as algebra
from flydsl.interpreter.elements import Array
from flydsl.interpreter.leaves import LaneLeaf, numbers_of
from flydsl.layout import ComposedLayout, Layout


def chosen(mask: Array, then: Any, otherwise: Any) -> Any:
    """A value where a mask holds, else another of its type: an array, a fly value, or a structure of them."""
    if then is otherwise:
        return then
    if isinstance(then, np.ndarray):
        return np.where(mask.reshape(len(mask), *[1] * (then.ndim - 1)), then, otherwise)
    if hasattr(then, "select"):
        return then.select(mask, otherwise)
    if isinstance(then, dict):
        return {name: chosen(mask, then[name], otherwise.get(name, then[name])) for name in then}
    if isinstance(then, Layout | ComposedLayout):
        return chosen_layout(mask, then, otherwise)
    return chosen_tuple(mask, then, otherwise)


def chosen_tuple(mask: Array, then: Any, otherwise: Any) -> Any:
    """The same of int tuples and structures."""
    if isinstance(then, tuple):
        return tuple(chosen_tuple(mask, a, b) for a, b in zip(then, otherwise, strict=True))
    if isinstance(then, np.ndarray):
        return chosen(mask, then, otherwise)
    if then is otherwise or (isinstance(then, int) and isinstance(otherwise, int) and then == otherwise):
        return then
    width = max(leaf.width if isinstance(leaf, LaneLeaf) else 32 for leaf in (then, otherwise))
    return LaneLeaf(np.where(mask, numbers_of(then, width), numbers_of(otherwise, width)), width)


def chosen_layout(mask: Array, then: Layout | ComposedLayout, otherwise: Layout | ComposedLayout) -> Any:
    """The same of layouts of one form."""
    if isinstance(then, ComposedLayout) and isinstance(otherwise, ComposedLayout):
        inner, offset, outer = algebra.composed_parts(then)
        _, other_offset, other_outer = algebra.composed_parts(otherwise)
        moved = chosen_tuple(mask, offset, other_offset)
        return algebra.make_composed_layout(inner, moved, chosen_layout(mask, outer, other_outer))
    assert isinstance(then, Layout)
    assert isinstance(otherwise, Layout)
    extents = chosen_tuple(mask, then.extents, otherwise.extents)
    return algebra.make_layout(extents, chosen_tuple(mask, then.strides, otherwise.strides))
