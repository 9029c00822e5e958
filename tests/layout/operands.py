"""Random operands of every operation of the algebra, in which some leaves are known only at run time."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

from flydsl.layout import (
    Basis,
    ComposedLayout,
    Dynamic,
    Layout,
    Swizzle,
    Tile,
    append,
    apply_swizzle,
    blocked_product,
    ceil_div,
    coalesce,
    complement,
    composed_get_inner,
    composed_get_offset,
    composed_get_outer,
    composition,
    coprofile,
    coshape,
    cosize,
    crd2idx,
    dice,
    flat_divide,
    flat_product,
    get,
    get_1d_coord,
    get_flat_coord,
    get_leaves,
    get_shape,
    get_stride,
    group,
    idx2crd,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
    left_inverse,
    logical_divide,
    logical_product,
    make_composed_layout,
    make_fragment_layout_like,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    prepend,
    raked_product,
    recast_layout,
    right_inverse,
    select,
    shape_div,
    size,
    slice,
    slice_and_offset,
    take,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
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
        assert value % divisibility == 0, f"{a} {op} {b} = {value} is not a multiple of {divisibility}"
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
        return ComposedLayout(*(over_leaves(function, part) for part in (value.inner, value.offset, value.outer)))
    if isinstance(value, Tile):
        return Tile(over_leaves(function, value.modes))
    if isinstance(value, Basis):
        return Basis(function(value.coefficient), value.modes)
    return function(value) if isinstance(value, (int, Dynamic)) else value


def evaluate(value: Any) -> Any:
    return over_leaves(lambda leaf: leaf.value if isinstance(leaf, Computed) else leaf, value)


def erase(value: Any) -> Any:
    return over_leaves(
        lambda leaf: Dynamic(leaf.width, leaf.divisibility) if isinstance(leaf, Computed) else leaf, value
    )


def is_dynamic(value: Any) -> bool:
    found: list[Any] = []
    over_leaves(lambda leaf: (found.append(leaf), leaf)[1] if isinstance(leaf, Dynamic) else leaf, value)
    return bool(found)


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

    def first_tile(self, layout: Layout) -> Tile:
        """A tile of one mode."""
        return Tile((self.part(size(layout[0])),))

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

    def composed(self, layout: Layout) -> ComposedLayout:
        swizzle = self.random.choice([Swizzle(2, 0, 2), Swizzle(1, 1, -2), Swizzle(2, 1, 3)])
        return ComposedLayout(swizzle, self.hide(self.random.randint(0, 9)), self.hidden(layout))

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
    "logical_divide of the first mode": (logical_divide, lambda m, a: (m.hidden(a), m.first_tile(a))),
    "composition of the first mode": (composition, lambda m, a: (m.hidden(a), m.first_tile(a))),
    "zipped_divide of the first mode": (zipped_divide, lambda m, a: (m.hidden(a), m.first_tile(a))),
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
    "coshape": (coshape, lambda m, a: (m.hidden(a),)),
    "coprofile": (coprofile, lambda m, a: (m.hidden(a),)),
    "recast_layout narrower": (recast_layout, lambda m, a: (m.shape_hidden(a), 16, 8)),
    "recast_layout wider": (recast_layout, lambda m, a: (m.hidden(a), 8, 16)),
    "make_layout": (make_layout, lambda m, a: (m.hidden(a.shape),)),
    "make_ordered_layout": (
        make_ordered_layout,
        lambda m, a: (m.hidden(a.shape), over_leaves(lambda _: m.random.randint(0, 3), a.shape)),
    ),
    "make_layout_like": (make_layout_like, lambda m, a: (m.shape_hidden(a),)),
    "make_fragment_layout_like": (make_fragment_layout_like, lambda m, a: (m.shape_hidden(a),)),
    "ceil_div": (ceil_div, lambda m, a: (m.hidden(a.shape), m.hide(m.part(size(a))))),
    "shape_div": (shape_div, lambda m, a: (m.hidden(a.shape), m.part(size(a)))),
    "apply_swizzle": (apply_swizzle, lambda m, a: (m.hide(size(a)), Swizzle(2, 1, m.random.choice([-2, 3])))),
    "tile_to_shape": (tile_to_shape, lambda m, a: (a, m.hidden(tuple(size(x) * m.extent() for x in a), 0.6))),
    "zipped_product": (zipped_product, lambda m, a: (m.shape_hidden(a), m.layout(1))),
    "tiled_product": (tiled_product, lambda m, a: (m.shape_hidden(a), m.layout(1))),
    "flat_product": (flat_product, lambda m, a: (m.shape_hidden(a), m.layout(1))),
    "append": (append, lambda m, a: (m.hidden(a), m.hidden(m.layout(1)))),
    "prepend to a tuple": (prepend, lambda m, a: (m.hidden(a.shape), m.hidden(m.shape()))),
    "get": (get, lambda m, a: (m.hidden(a), m.random.randrange(len(a)))),
    "get from a tuple": (get, lambda m, a: (m.hidden(a.shape), m.random.randrange(len(a)))),
    "get_shape": (get_shape, lambda m, a: (m.hidden(a),)),
    "get_stride": (get_stride, lambda m, a: (m.hidden(a),)),
    "get_leaves": (get_leaves, lambda m, a: (m.hidden(a.shape),)),
    "select": (select, lambda m, a: (m.hidden(a), [m.random.randrange(len(a)), 0])),
    "take": (take, lambda m, a: (m.hidden(a), 0, m.random.randint(1, len(a)))),
    "group": (group, lambda m, a: (m.hidden(a), 0, m.random.randint(1, len(a)))),
    "dice": (dice, lambda m, a: (m.hidden(a), m.open_coord(a.shape))),
    "dice of a tuple": (dice, lambda m, a: (m.hidden(a.shape), m.open_coord(a.shape))),
    "coalesce by mode": (coalesce, lambda m, a: (m.hidden(a), (1,) * len(a))),
    "composition after swizzle": (composition, lambda m, a: (Swizzle(2, 1, 3), m.hidden(a))),
    "make_composed_layout": (make_composed_layout, lambda m, a: (Swizzle(2, 0, 2), m.hide(9), m.hidden(a))),
    "make_composed_layout of layouts": (
        make_composed_layout,
        lambda m, a: (Layout(cosize(a), m.hide(3, 0.8)), 0, m.hidden(a)),
    ),
    "make_identity_layout": (make_identity_layout, lambda m, a: (m.hidden(a.shape),)),
    "int_tuple_add": (int_tuple_add, lambda m, a: (m.hidden(a.shape), m.hidden(a.stride))),
    "int_tuple_sub": (int_tuple_sub, lambda m, a: (m.hidden(a.stride), m.hidden(a.shape))),
    "int_tuple_mul": (int_tuple_mul, lambda m, a: (m.hidden(a.shape), m.hidden(a.stride))),
    "int_tuple_div": (int_tuple_div, lambda m, a: (m.hidden(a.stride), m.hidden(a.shape))),
    "int_tuple_mod": (int_tuple_mod, lambda m, a: (m.hidden(a.stride), m.hidden(a.shape))),
    "int_tuple_product": (int_tuple_product, lambda m, a: (m.hidden(a.shape),)),
    "int_tuple_product_each": (int_tuple_product_each, lambda m, a: (m.hidden(a.shape),)),
    "int_tuple_product_like": (int_tuple_product_like, lambda m, a: (m.hidden(a.shape), (1,) * len(a))),
    "slice of composed": (slice, lambda m, a: (m.composed(a), m.hidden(m.open_coord(a.shape)))),
    "zipped_divide of composed": (zipped_divide, lambda m, a: (m.composed(a), m.tile(a))),
    "coalesce of composed": (coalesce, lambda m, a: (m.composed(a),)),
    "composition of composed": (composition, lambda m, a: (m.composed(a), m.tile(a))),
    "size of composed": (size, lambda m, a: (m.composed(a),)),
    "composed_get_inner": (
        composed_get_inner,
        lambda m, a: (ComposedLayout(Layout(cosize(a), m.hide(3, 0.8)), 0, m.hidden(a)),),
    ),
    "composed_get_offset": (composed_get_offset, lambda m, a: (m.composed(a),)),
    "composed_get_outer": (composed_get_outer, lambda m, a: (m.composed(a),)),
}
