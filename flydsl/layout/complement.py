"""Complement: the indices that a layout leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.layout.coalesce import of_flat_modes
from flydsl.layout.composed import as_layout
from flydsl.layout.int_tuple import check_numbers, normal_form, product_leaf
from flydsl.layout.layout import Layout
from flydsl.layout.leaf import Leaf, ceil_div_leaf
from flydsl.layout.measure import cosize_of
from flydsl.layout.text import Inadmissible, operation


@operation
def complement(layout: Layout, cosize_hi: object = None) -> Layout:
    """The layout of the indices below `cosize_hi` that `layout` leaves out, in increasing order.

    Its image and that of `layout` share only index 0. Together they reach every index below cosize_hi if the strides of
    `layout` divide one another. cosize_hi: an int, or a shape for its product; by default the cosize of
    the layout. Raises LayoutError if the layout overlaps itself, or a stride is only known at run time.

    >>> complement(Layout(4, 2), 24)
    (2,3):(1,8)
    """
    of = as_layout(layout)
    if cosize_hi is None:
        return complement_of(of, cosize_of(of))
    bound = normal_form(cosize_hi)
    check_numbers(bound)
    return complement_of(of, product_leaf(bound))


def complement_of(layout: Layout, bound: Leaf) -> Layout:
    """The complement below a bound."""
    if type(bound) is int and bound < 1:
        raise Inadmissible(f"a complement must have a positive bound, got {bound}", hint="pass a positive size")
    extents, strides = layout.flat_modes()
    gaps: list[Leaf] = []
    steps: list[Leaf] = []
    reached: Leaf = 1
    for i in _by_stride(strides):
        if strides[i] == 0:
            continue
        if type(reached) is not int:
            raise Inadmissible(
                f"whether the stride {strides[i]} passes the modes before it is not known before run time",
                hint="use a static stride, or a complement of the static modes only",
            )
        gap = strides[i] // reached
        if gap == 0:
            raise Inadmissible(
                f"the layout overlaps itself: {extents[i]}:{strides[i]} begins below {reached}",
                hint="make each stride pass the indices that the modes before it cover",
            )
        if gap > 1:
            gaps.append(gap)
            steps.append(reached)
        reached = strides[i] * extents[i]
    rest = ceil_div_leaf(bound, reached)
    if type(rest) is not int or rest > 1:
        gaps.append(rest)
        steps.append(reached)
    return of_flat_modes(gaps, steps)


def _by_stride(strides: tuple[Any, ...]) -> Sequence[int]:
    """The numbers of the modes, sorted by stride, smallest first."""
    for stride in strides:
        if type(stride) is not int or stride < 0:
            raise Inadmissible(
                f"a stride must be at least 0 and known before run time, got {stride}",
                hint="use static strides that are not negative",
            )
    return sorted(range(len(strides)), key=strides.__getitem__) if len(strides) > 1 else range(len(strides))
