"""The steps of an operation as data: intermediate layouts with names, from which a text or a picture can be built.

Every step is computed by the operations themselves, so the steps are those that really happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flydsl.layout.coalesce import coalesce, of_flat_modes
from flydsl.layout.complement import complement
from flydsl.layout.composed import ComposedLayout, as_layout
from flydsl.layout.composition import composition
from flydsl.layout.construct import make_ordered_layout
from flydsl.layout.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from flydsl.layout.int_tuple import int_tuple_div, product_each
from flydsl.layout.inverse import left_inverse, right_inverse
from flydsl.layout.layout import Layout, modes_of, of_modes
from flydsl.layout.measure import cosize, size
from flydsl.layout.product import (
    blocked_product,
    flat_product,
    logical_product,
    padded,
    padded_operands,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from flydsl.layout.text import Inadmissible, operation, shown, to_text
from flydsl.layout.tile import Tile, as_tiler


@dataclass(frozen=True)
class Step:
    """One intermediate value: its name, the value, and a short description."""

    name: str
    value: Any
    note: str

    def __str__(self) -> str:
        return f"{self.name} = {to_text(self.value)}  ({self.note})"


@dataclass(frozen=True)
class Explanation:
    """An operation with its operands, its steps in order, and its result."""

    operation: str
    operands: tuple[Any, ...]
    steps: tuple[Step, ...]
    result: Any

    def __str__(self) -> str:
        call = f"{self.operation}({', '.join(map(to_text, self.operands))})"
        return "\n".join([call, *(f"  {step}" for step in self.steps), f"  result = {to_text(self.result)}"])

    __repr__ = __str__


Steps = Iterator[Step]


def _in_mode(mode: int, steps: Steps) -> Steps:
    for step in steps:
        yield Step(f"mode {mode}: {step.name}", step.value, step.note)


def _by_mode(steps_of: Callable[[Layout, Any], Steps], a: Layout, tile: Tile) -> Steps:
    for i, (mode, tiler) in enumerate(zip(modes_of(a), tile.tilers, strict=False)):
        if tiler is not None:
            yield from _in_mode(i, steps_of(mode, tiler))


def _coalesce(a: Layout, profile: Any = None) -> Steps:
    yield Step("size", size(a), "coalescing keeps it, and the function of an int")


def _composition(a: Layout, b: Any) -> Steps:
    tiler = Tile(tuple(b)) if isinstance(b, (tuple, list)) else b
    if isinstance(tiler, Tile):
        yield from _by_mode(_composition, a, tiler)
        return
    yield Step("A coalesced", coalesce(a), "the same function of an int in fewer modes")
    b = as_layout(tiler)
    if len(b) > 1:
        for i, mode in enumerate(modes_of(b)):
            yield Step(f"A o B[{i}]", composition(a, mode), f"A at the positions of {mode}")


def _complement(a: Layout, bound: Any = None) -> Steps:
    extents, strides = a.flat_modes()
    order = sorted((i for i in range(len(strides)) if strides[i] != 0), key=strides.__getitem__)
    ordered = of_flat_modes([extents[i] for i in order], [strides[i] for i in order])
    yield Step("A in order", ordered, "the modes that move, by stride")
    for count, i in enumerate(order):
        below = of_flat_modes([extents[j] for j in order[:count]], [strides[j] for j in order[:count]])
        yield Step(f"below {strides[i]}", complement(below, strides[i]), f"left out below {extents[i]}:{strides[i]}")
    yield Step("bound", cosize(a) if bound is None else bound, "the complement ends here")


def _inverse(a: Layout) -> Steps:
    yield Step("A coalesced", coalesce(a), "the same function of an int in fewer modes")


def _logical_divide(a: Layout, b: Any) -> Steps:
    tiler = as_tiler(b)
    if isinstance(tiler, Tile):
        yield from _by_mode(_logical_divide, a, tiler)
    elif tiler is not None:
        rest = complement(tiler, size(a))
        yield Step("B*", rest, f"the complement of B below the size of A, {size(a)}")
        yield Step("(B,B*)", of_modes([tiler, rest]), "the elements of A in their new order")
        yield Step("A o B", composition(a, tiler), "a tile")
        yield Step("A o B*", composition(a, rest), "where the tiles begin")


def _arranged_divide(a: Layout, b: Any) -> Steps:
    yield from _logical_divide(a, b)
    yield Step("logical_divide", logical_divide(a, b), "mode by mode (tile, rest)")


def _logical_product(a: Layout, b: Any) -> Steps:
    tiler = as_tiler(b)
    if isinstance(tiler, Tile):
        yield from _by_mode(_logical_product, a, tiler)
    elif tiler is not None:
        room = complement(a, size(a) * cosize(tiler))
        yield Step("A*", room, "the complement of A: where repetitions can go")
        yield Step("A* o B", composition(room, tiler), "where those of B go")


def _arranged_product(a: Layout, b: Any) -> Steps:
    yield from _logical_product(a, b)
    yield Step("logical_product", logical_product(a, b), "(block, repetitions)")


def _paired_product(a: Layout, b: Any) -> Steps:
    block, tiler = padded_operands(a, as_layout(b))
    yield Step("A padded", block, "to the common rank")
    yield Step("B padded", tiler, "to the common rank")
    yield from _logical_product(block, tiler)


def _tile_to_shape(block: Layout, shape: Any, order: Any = None) -> Steps:
    extents = product_each(shape if isinstance(shape, (tuple, list)) else (shape,))
    atom = padded(block, len(extents))
    counts = int_tuple_div(extents, tuple(map(size, modes_of(atom))))
    ranks = tuple(range(len(counts))) if order is None else order
    repeats = make_ordered_layout(counts, ranks if isinstance(ranks, (tuple, list)) else (ranks,))
    yield Step("A padded", atom, "to the rank of the shape")
    yield Step("B", repeats, "how often A fits each mode, in the given order")
    yield from _logical_product(atom, repeats)


_EXPLAINED: dict[str, tuple[Callable[..., Any], Callable[..., Steps]]] = {
    "coalesce": (coalesce, _coalesce),
    "composition": (composition, _composition),
    "complement": (complement, _complement),
    "right_inverse": (right_inverse, _inverse),
    "left_inverse": (left_inverse, _inverse),
    "logical_divide": (logical_divide, _logical_divide),
    "zipped_divide": (zipped_divide, _arranged_divide),
    "tiled_divide": (tiled_divide, _arranged_divide),
    "flat_divide": (flat_divide, _arranged_divide),
    "logical_product": (logical_product, _logical_product),
    "zipped_product": (zipped_product, _arranged_product),
    "tiled_product": (tiled_product, _arranged_product),
    "flat_product": (flat_product, _arranged_product),
    "blocked_product": (blocked_product, _paired_product),
    "raked_product": (raked_product, _paired_product),
    "tile_to_shape": (tile_to_shape, _tile_to_shape),
}


def _outer(layout: object) -> Layout:
    return layout.outer if isinstance(layout, ComposedLayout) else as_layout(layout)


@operation
def explain(op: str | Callable[..., Any], *operands: Any) -> Explanation:
    """The steps of an operation on layouts, as data.

    op: the operation or its name. operands: its operands. For a composed layout, the outer layout's steps are shown.
    Raises LayoutError for an operation that has no steps to show, and if the operation itself does.

    >>> explain("logical_divide", Layout(24, 2), Layout(4, 3))
    logical_divide(24:2, 4:3)
      B* = (3,2):(1,12)  (the complement of B below the size of A, 24)
      (B,B*) = (4,(3,2)):(3,(1,12))  (the elements of A in their new order)
      A o B = 4:6  (a tile)
      A o B* = (3,2):(2,24)  (where the tiles begin)
      result = (4,(3,2)):(6,(2,24))
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", shown(op))
    if name not in _EXPLAINED:
        raise Inadmissible(f"{name} has no steps to show", hint=f"these have: {', '.join(_EXPLAINED)}")
    function, steps_of = _EXPLAINED[name]
    result = function(*operands)  # first, so that what is inadmissible is refused under its own name
    return Explanation(name, operands, tuple(steps_of(_outer(operands[0]), *operands[1:])), result)
