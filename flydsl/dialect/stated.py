"""Result types that the text states, where inference would give a type with more detail.

FlyDSL infers less in some places: `int_tuple_mod` of known numbers is `(?,?)` there, a pointer that has moved has lost
its alignment. And it has other parentheses around single modes, and other strides of modes of size 1. Such a type is
as true, and stays as it is written.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from flydsl import layout as algebra
from flydsl.dialect.inference import single_leaf
from flydsl.dialect.leaves import is_static
from flydsl.dialect.types import (
    AnyLayout,
    ComposedLayoutType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    PointerType,
    fly_type,
)
from flydsl.errors import LayoutError


def admits(stated: ir.Type, inferred: ir.Type) -> bool:
    """True if the text may state this type for a value of the inferred type."""
    if stated == inferred:
        return True
    kind, better = fly_type(stated), fly_type(inferred)
    return kind is not None and better is not None and _admits(kind, better)


def _admits(stated: FlyType, inferred: FlyType) -> bool:
    if isinstance(stated, IntTupleType) and isinstance(inferred, IntTupleType):
        return _less_known(stated.value, inferred.value)
    if isinstance(stated, MemRefType) and isinstance(inferred, MemRefType):
        same_memory = (stated.element, stated.space) == (inferred.element, inferred.space)
        return same_memory and _same_layout(stated.layout, inferred.layout)
    if isinstance(stated, PointerType) and isinstance(inferred, PointerType):
        return stated.aligned(1).body == inferred.aligned(1).body and not (
            inferred.known_alignment % stated.known_alignment
        )
    layouts = (LayoutType, ComposedLayoutType)
    return (
        isinstance(stated, layouts) and isinstance(inferred, layouts) and _same_layout(stated.layout, inferred.layout)
    )


def _same_layout(stated: AnyLayout, inferred: AnyLayout) -> bool:
    if isinstance(stated, algebra.ComposedLayout) and isinstance(inferred, algebra.ComposedLayout):
        (a, m, first), (b, n, second) = algebra.composed_parts(stated), algebra.composed_parts(inferred)
        return str(a) == str(b) and _less_known(m, n) and _same_layout(first, second)
    if not (isinstance(stated, algebra.Layout) and isinstance(inferred, algebra.Layout)):
        return False
    if is_static(stated) and is_static(inferred):
        return _same_function(stated, inferred)
    strides = (_without_unit_modes(part.extents, part.strides) for part in (stated, inferred))
    return _less_known(stated.extents, inferred.extents) and _less_known(*strides)


def _same_function(stated: algebra.Layout, inferred: algebra.Layout) -> bool:
    """True if two layouts give the same index for each coordinate that is one number."""
    try:
        merged = [algebra.coalesce(layout) for layout in (stated, inferred)]
    except LayoutError:
        return False
    flat = [(algebra.get_leaves((layout.extents,)), algebra.get_leaves((layout.strides,))) for layout in merged]
    return flat[0] == flat[1]


def as_stated(value: Any, stated: Any) -> Any:
    """A layout or int tuple with the parentheses of its stated type, which `admits` has accepted.

    value: perhaps with SSA leaves. stated: as the type says it, with `?`.
    """
    if is_static(stated):
        return stated
    if isinstance(stated, algebra.Layout):
        return algebra.make_layout(as_stated(value.extents, stated.extents), as_stated(value.strides, stated.strides))
    if isinstance(stated, algebra.ComposedLayout):
        (inner, offset, rest), (*_, stated_rest) = algebra.composed_parts(value), algebra.composed_parts(stated)
        return algebra.make_composed_layout(inner, offset, as_stated(rest, stated_rest))
    if not isinstance(stated, tuple):
        return single_leaf(value)
    parts = value if isinstance(value, tuple) and len(value) == len(stated) else (value,)
    return tuple(map(as_stated, parts, stated))


def _without_unit_modes(shape: Any, stride: Any) -> Any:
    """Strides with 0 in modes that have only one coordinate."""
    if isinstance(shape, tuple):
        return tuple(map(_without_unit_modes, shape, stride))
    return 0 if shape == 1 else stride


def _less_known(stated: Any, inferred: Any) -> bool:
    """True if a tuple equals another one, or has `?` where it differs. Parentheses around one element do not count."""
    stated, inferred = single_leaf(stated), single_leaf(inferred)
    if isinstance(stated, tuple) or isinstance(inferred, tuple):
        both = isinstance(stated, tuple) and isinstance(inferred, tuple) and len(stated) == len(inferred)
        return both and all(map(_less_known, stated, inferred))
    if not isinstance(stated, algebra.Dynamic):
        return bool(stated == inferred)
    if isinstance(inferred, algebra.Dynamic):
        return stated.width == inferred.width and inferred.divisibility % stated.divisibility == 0
    return isinstance(inferred, int) and inferred % stated.divisibility == 0
