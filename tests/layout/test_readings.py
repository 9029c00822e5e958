"""One implementation, three readings: ints, types (Dynamic), and values computed at run time (here: a recorded tree).

Random layouts of ints get some of their leaves replaced by leaves that are known only at run time. Then the type of
the result must be what is left of the computed result when its values are forgotten, and the computed result,
evaluated, must be the function that the ints give.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from flydsl.errors import LayoutError
from flydsl.layout import (
    Basis,
    ComposedLayout,
    Dynamic,
    Layout,
    Swizzle,
    Tile,
    apply_swizzle,
    blocked_product,
    ceil_div,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    flat_divide,
    get_1d_coord,
    get_flat_coord,
    idx2crd,
    left_inverse,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    raked_product,
    recast_layout,
    right_inverse,
    shape_div,
    size,
    slice,
    slice_and_offset,
    tile_to_shape,
    tiled_divide,
    zipped_divide,
)

EVALUATE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.floordiv,
    "ceil_div": lambda a, b: -(-a // b),
    "mod": operator.mod,
    "and": operator.and_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}


class Computed(Dynamic):
    """A dynamic leaf that knows its value, and how many operations made it."""

    __slots__ = ("operations", "value")

    def __init__(self, width: int, divisibility: int, value: int, operations: int = 0) -> None:
        super().__init__(width, divisibility)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "operations", operations)

    def _combine(self, op: str, lhs: Any, rhs: Any, width: int, divisibility: int) -> Computed:
        a, b = evaluate(lhs), evaluate(rhs)
        value = EVALUATE[op](a, b)
        assert value % divisibility == 0, f"{a} {op} {b} = {value} is no multiple of {divisibility}"
        assert not (op in ("add", "mul", "xor") and type(lhs) is int), "an int belongs on the right"
        identity = {"add": 0, "sub": 0, "xor": 0, "shl": 0, "shr": 0, "mul": 1, "div": 1, "ceil_div": 1}.get(op)
        assert not (type(rhs) is int and rhs == identity), f"needless operation: x {op} {rhs}"
        assert not (op == "mul" and 0 in [x for x in (lhs, rhs) if type(x) is int]), "needless multiplication by 0"
        done = sum(x.operations for x in (lhs, rhs) if isinstance(x, Computed))
        return Computed(width, divisibility, value, done + 1)


def over_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The value with a function applied to each leaf."""
    if isinstance(value, tuple):
        return tuple(over_leaves(function, x) for x in value)
    if isinstance(value, Layout):
        return Layout(over_leaves(function, value.shape), over_leaves(function, value.stride))
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, function(value.offset), over_leaves(function, value.outer))
    if isinstance(value, Tile):
        return Tile(over_leaves(function, value.modes))
    if isinstance(value, Basis):
        return Basis(function(value.coefficient), value.modes)
    return function(value) if isinstance(value, (int, Dynamic)) else value


def evaluate(value: Any) -> Any:
    return over_leaves(lambda leaf: leaf.value if isinstance(leaf, Computed) else leaf, value)


MOST_POINTS = 50


def erase(value: Any) -> Any:
    return over_leaves(
        lambda leaf: Dynamic(leaf.width, leaf.divisibility) if isinstance(leaf, Computed) else leaf, value
    )


def as_function(value: Any) -> Any:
    """A layout as its size and what it maps some ints to."""
    if isinstance(value, tuple):
        return tuple(map(as_function, value))
    if isinstance(value, (Layout, ComposedLayout)):
        count = size(value)
        return count, [value(i) for i in range(0, count, -(-count // MOST_POINTS))]
    return value


def mode_sizes(layout: Layout) -> list[Any]:
    return [size(mode) for mode in layout]


def is_inverse(side: Callable[..., Any], inverse: Layout, layout: Layout) -> bool:
    first, second = (layout, inverse) if side is left_inverse else (inverse, layout)
    return all(second(first(i)) == i for i in range(min(size(first), MOST_POINTS)))


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


class Maker:
    """Random operands. `hidden(x)` replaces leaves by ones whose value is only computed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def extent(self) -> int:
        return self.random.choice([1, 2, 2, 3, 4, 4, 6, 8])

    def shape(self, depth: int = 2) -> Any:
        if depth == 0 or self.random.random() < 0.4:
            return self.extent()
        return tuple(self.shape(depth - 1) for _ in range(self.random.randint(1, 3)))

    def layout(self, depth: int = 2) -> Layout:
        """A layout without overlap: contiguous in some order, some strides spread."""
        shape = self.shape(depth)
        extents = make_layout(shape)
        order = over_leaves(lambda _: self.random.randint(0, 9), extents.shape)
        factor = self.random.choice([1, 1, 2, 3])
        layout = make_ordered_layout(shape, order)
        return Layout(layout.shape, over_leaves(lambda d: d * factor, layout.stride))

    def part(self, whole: int) -> int:
        return self.random.choice(divisors(whole))

    def tile(self, layout: Layout) -> Tile:
        modes: list[Any] = [self.part(size(mode)) for mode in layout]
        return Tile(tuple(None if self.random.random() < 0.1 else m for m in modes))

    def hide(self, value: int, chance: float = 0.4) -> Any:
        if value < 1 or self.random.random() > chance:
            return value
        return Computed(self.random.choice([32, 64]), self.random.choice(divisors(value)), value)

    def hidden(self, value: Any, chance: float = 0.4) -> Any:
        return over_leaves(lambda leaf: self.hide(leaf, chance), value)

    def strides_hidden(self, layout: Layout) -> Layout:
        return Layout(layout.shape, self.hidden(layout.stride))

    def shape_hidden(self, layout: Layout) -> Layout:
        return Layout(self.hidden(layout.shape), layout.stride)

    def coord(self, shape: Any) -> Any:
        if not isinstance(shape, tuple) or self.random.random() < 0.3:
            return self.random.randrange(size(shape))
        return tuple(self.coord(s) for s in shape)

    def open_coord(self, shape: Any) -> Any:
        if self.random.random() < 0.3:
            return None
        return tuple(self.open_coord(s) for s in shape) if isinstance(shape, tuple) else self.coord(shape)


def _inner(make: Maker, a: Layout) -> Layout:
    extent = make.part(size(a))
    return Layout(extent, make.part(size(a) // extent))


CASES: dict[str, tuple[Callable[..., Any], Callable[[Maker, Layout], tuple[Any, ...]]]] = {
    "coalesce": (coalesce, lambda m, a: (m.hidden(a),)),
    "composition": (composition, lambda m, a: (m.hidden(a, 0.3), _inner(m, a))),
    "composition of dynamic extents": (composition, lambda m, a: (m.strides_hidden(a), m.shape_hidden(_inner(m, a)))),
    "composition by mode": (composition, lambda m, a: (m.hidden(a, 0.3), m.tile(a))),
    "complement": (complement, lambda m, a: (m.shape_hidden(a), m.hide(cosize(a) * 6))),
    "right_inverse": (right_inverse, lambda m, a: (m.hidden(a, 0.2),)),
    "left_inverse": (left_inverse, lambda m, a: (m.shape_hidden(a),)),
    "logical_divide": (logical_divide, lambda m, a: (m.hidden(a), m.tile(a))),
    "logical_divide by layout": (logical_divide, lambda m, a: (m.hidden(a, 0.3), _inner(m, a))),
    "zipped_divide": (zipped_divide, lambda m, a: (m.hidden(a), m.tile(a))),
    "zipped_divide by dynamic tile": (zipped_divide, lambda m, a: (m.strides_hidden(a), m.hidden(m.tile(a)))),
    "tiled_divide": (tiled_divide, lambda m, a: (m.hidden(a), m.tile(a))),
    "flat_divide": (flat_divide, lambda m, a: (m.hidden(a), m.tile(a))),
    "logical_product": (logical_product, lambda m, a: (m.shape_hidden(a), m.layout(1))),
    "logical_product by dynamic": (logical_product, lambda m, a: (a, m.shape_hidden(Layout(m.extent(), 1)))),
    "blocked_product": (blocked_product, lambda m, a: (m.shape_hidden(a), m.layout(1))),
    "raked_product": (raked_product, lambda m, a: (a, m.shape_hidden(m.layout(1)))),
    "slice": (slice, lambda m, a: (m.hidden(a), m.hidden(m.open_coord(a.shape)))),
    "slice_and_offset": (slice_and_offset, lambda m, a: (m.hidden(m.open_coord(a.shape)), m.hidden(a))),
    "crd2idx": (crd2idx, lambda m, a: (m.hidden(m.coord(a.shape)), m.hidden(a))),
    "crd2idx of composed": (
        crd2idx,
        lambda m, a: (m.hidden(m.coord(a.shape)), ComposedLayout(Swizzle(2, 1, 3), m.hide(5), m.hidden(a))),
    ),
    "crd2idx of identity": (
        crd2idx,
        lambda m, a: (m.hidden(m.coord(a.shape)), make_identity_layout(m.hidden(a.shape))),
    ),
    "idx2crd": (idx2crd, lambda m, a: (m.hide(m.random.randrange(cosize(a))), m.hidden(a))),
    "get_1d_coord": (get_1d_coord, lambda m, a: (m.hide(m.random.randrange(cosize(a))), m.hidden(a))),
    "get_flat_coord": (get_flat_coord, lambda m, a: (m.hide(m.random.randrange(cosize(a))), m.hidden(a))),
    "size": (size, lambda m, a: (m.hidden(a),)),
    "cosize": (cosize, lambda m, a: (m.hidden(a),)),
    "recast_layout narrower": (recast_layout, lambda m, a: (m.shape_hidden(a), 16, 8)),
    "recast_layout wider": (recast_layout, lambda m, a: (m.hidden(a), 8, 16)),
    "make_layout": (make_layout, lambda m, a: (m.hidden(a.shape),)),
    "make_ordered_layout": (
        make_ordered_layout,
        lambda m, a: (m.hidden(a.shape), over_leaves(lambda _: m.random.randint(0, 3), a.shape)),
    ),
    "make_layout_like": (make_layout_like, lambda m, a: (m.shape_hidden(a),)),
    "ceil_div": (ceil_div, lambda m, a: (m.hidden(a.shape), m.hide(m.part(size(a))))),
    "shape_div": (shape_div, lambda m, a: (m.hidden(a.shape), m.part(size(a)))),
    "apply_swizzle": (apply_swizzle, lambda m, a: (m.hide(size(a)), Swizzle(2, 1, m.random.choice([-2, 3])))),
    "tile_to_shape": (tile_to_shape, lambda m, a: (a, m.hidden(tuple(size(x) * m.extent() for x in a), 0.6))),
}

ROUNDS = 200
FEWEST_DECIDED = 10  # of ROUNDS; the others are refused because they are not decided before run time


def attempt(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    try:
        return function(*operands)
    except LayoutError:
        return None


def is_dynamic(value: Any) -> bool:
    found: list[bool] = []
    over_leaves(lambda leaf: (found.append(isinstance(leaf, Dynamic)), leaf)[1], value)
    return any(found)


@pytest.mark.parametrize("name", CASES)
def test_types_and_values_agree_with_ints(name: str) -> None:
    function, operands_of = CASES[name]
    make = Maker(seed=len(name))
    decided = 0
    for _ in range(ROUNDS):
        operands = operands_of(make, make.layout())
        of_types = attempt(function, erase(operands))
        of_values = attempt(function, operands)
        assert (of_types is None) == (of_values is None), f"one reading refuses {operands}"
        if of_types is None:
            continue
        assert erase(of_values) == of_types, f"{function.__name__}{operands}"
        of_ints = attempt(function, evaluate(operands))
        if of_ints is None:
            continue  # what the ints show not to fit is not known to misfit before run time
        evaluated = evaluate(of_values)
        if function in (left_inverse, right_inverse):  # less is known, so what is found may be another one
            assert is_inverse(function, evaluated, evaluate(operands[0]))
        else:
            assert as_function(evaluated) == as_function(of_ints), f"{function.__name__}{evaluate(operands)}"
        if function in (logical_divide, zipped_divide):
            assert mode_sizes(evaluated) == mode_sizes(of_ints)
        decided += is_dynamic(operands)
    assert decided >= FEWEST_DECIDED, f"only {decided} of {ROUNDS} were decided"
