"""Coalesce: the same function of an int, in as few modes as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.layout.composed import AnyLayout, as_layout, layout_operation
from flydsl.layout.int_tuple import AnyTuple, LayoutLike, normal_form
from flydsl.layout.layout import Layout, modes_of, of_modes, unchecked_layout
from flydsl.layout.leaf import Leaf
from flydsl.layout.text import Inadmissible, to_text


def of_flat_modes(extents: Sequence[Leaf], strides: Sequence[Any]) -> Layout:
    """The layout of flat modes: 1:0 if there are none, a leaf if there is one."""
    if len(extents) > 1:
        return unchecked_layout(tuple(extents), tuple(strides))
    return unchecked_layout(extents[0], strides[0]) if extents else unchecked_layout(1, 0)


def _is_single_leaf(shape: AnyTuple) -> bool:
    while type(shape) is tuple and len(shape) == 1:
        shape = shape[0]
    return type(shape) is not tuple


def coalesced(layout: Layout) -> Layout:
    """Coalesce without a profile. A single leaf keeps its parentheses."""
    extents, strides = layout.flat_modes()
    if len(extents) == 1 and _is_single_leaf(layout.extents):
        return layout
    return of_flat_modes(extents, strides)


def _coalesced_by(layout: Layout, profile: AnyTuple) -> Layout:
    if type(profile) is not tuple:
        return coalesced(layout)
    modes = modes_of(layout)
    if len(profile) > len(modes):
        raise Inadmissible(
            f"the profile {to_text(profile)} has more modes than {layout}", hint="omit modes of the profile"
        )
    return of_modes([_coalesced_by(m, p) for m, p in zip(modes, profile, strict=False)] + modes[len(profile) :])


@layout_operation
def coalesce(layout: AnyLayout, profile: object = None) -> LayoutLike:
    """The same function of an int, in as few modes as possible: `coalesce(L)(i) == L(i)`.

    profile: with a tuple, each mode is coalesced separately, following its nesting; modes beyond it are unchanged.

    >>> coalesce(Layout((2, (1, 6)), (1, (7, 2))))
    12:1
    >>> coalesce(Layout((2, (1, 6)), (1, (7, 2))), (1, 1))
    (2,6):(1,2)
    """
    return _coalesced_by(as_layout(layout), normal_form(profile))
