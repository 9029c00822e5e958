"""Inadmissible operands: a LayoutError that names operation, operands and mode, and never anything else."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

import flydsl.layout
from flydsl.errors import LayoutError
from flydsl.layout import Basis, ComposedLayout, CoordSwizzle, Dynamic, Layout, Swizzle, Tile, parse

pytestmark = pytest.mark.slow

REFUSED = [
    ("composition", ["(4,8):(1,8)", "2:5"], "the stride 5 and the extent 4"),
    ("composition", ["(10,4):(1,20)", "8:3"], "the stride 3 and the extent 10"),
    ("composition", ["(4,8):(1,8)", "6:1"], "6 is not a multiple of the 4 elements"),
    ("composition", ["(4,8):(1,8)", "[2|2|2]"], "has 3 modes"),
    ("composition", ["(2,2):(0,1)", "(2,2):(1,1)"], "add up to more than the 2 elements"),
    ("composition", ["(4,8):(1,8)", "2:-1"], "the stride -1"),
    ("composition", ["8:1", "(2,2):(1E0,1E1)"], "1E0"),
    ("logical_divide", ["(16,(3,3)):(1,(3,1))", "[4|4]"], "in mode 1: 4 is not a multiple of the 3 elements"),
    ("zipped_divide", ["64:1", "[32|4]"], "[32|4] has 2 modes"),
    ("logical_divide", ["(?,?):(1,?)", "64:1"], "not known before run time"),
    ("composition", ["(4,8):(8,1)", "?:1"], "whether ? is a multiple of the 4 elements"),
    ("complement", ["(4,4):(1,2)", "32"], "4:2 begins below 4"),
    ("complement", ["4:?", "32"], "at least 0 and known before run time, got ?"),
    ("complement", ["(?,4):(1,8)", "32"], "not known before run time"),
    ("complement", ["4:1", "0"], "positive bound, got 0"),
    ("left_inverse", ["(2,4):(1,1)"], "not one-to-one"),
    ("left_inverse", ["(2,4):(2,5)"], "the stride 2 does not divide the stride 5"),
    ("left_inverse", ["4:-1"], "at least 0 and known before run time, got -1"),
    ("right_inverse", ["S<2,0,2> o 0 o 16:1"], "composed with a swizzle"),
    ("crd2idx", ["(1,2)", "4:1"], "the coordinate (1,2) does not fit 4"),
    ("crd2idx", ["(*,2)", "(4,2):(1,4)"], "*"),
    ("idx2crd", ["(1,2)", "(4,2):(1,4)"], "(1,2)"),
    ("idx2crd", ["3", "(4,2):(1E0,1E1)"], "1E0"),
    ("slice", ["(4,2):(1,4)", "(1,2,*)"], "(1,2,*)"),
    ("cosize", ["(4,2):(1E0,1E1)"], "coordinates"),
    ("shape_div", ["(6,4)", "4"], "6 and 4"),
    ("ceil_div", ["8", "0"], "divided by zero"),
    ("int_tuple_add", ["(1,2)", "(1,(2,3))"], "not congruent"),
    ("int_tuple_div", ["(1,2)", "(1,0)"], "zero"),
    ("tile_to_shape", ["(8,4):(1,8)", "16"], "2 modes"),
    ("make_ordered_layout", ["(8,4)", "(0,1,2)"], "(0,1,2)"),
    ("make_layout", ["(4,8)", "1"], "not congruent"),
    ("make_layout", ["(4,0)", "(1,4)"], "positive"),
    ("make_layout", ["(4,*)", "(1,4)"], "extent must be a positive integer, got *"),
    ("blocked_product", ["(2,2):(1,1)", "4:1"], "overlaps itself"),
]


@pytest.mark.parametrize(("name", "operands", "why"), REFUSED)
def test_the_error_names_operation_operands_and_reason(name: str, operands: list[str], why: str) -> None:
    arguments = [parse(text) for text in operands]
    with pytest.raises(LayoutError) as caught:
        getattr(flydsl.layout, name)(*arguments)
    message = str(caught.value)
    assert message.startswith(f"{name}({', '.join(operands)})")
    assert why in message


@pytest.mark.parametrize("value", [True, 1.5, "4", object(), float("nan"), {1: 2}])
def test_only_integers_are_leaves(value: Any) -> None:
    with pytest.raises(LayoutError, match="cannot be a leaf"):
        flydsl.layout.make_shape(4, (2, value))


def test_numpy_integers_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    layout = Layout((numpy.int64(4), 8), (numpy.int32(1), 4))
    assert layout == Layout((4, 8), (1, 4))
    assert type(layout.extents[0]) is int
    with pytest.raises(LayoutError):
        Layout(numpy.array([4, 8]), 1)


def test_what_has_no_steps_is_not_explained() -> None:
    with pytest.raises(LayoutError, match="no steps"):
        flydsl.layout.explain("size", Layout(4, 1))


ARITY = {
    **dict.fromkeys(["flatten", "has_none", "product", "product_each", "left_inverse", "right_inverse"], (1, 1)),
    **dict.fromkeys(
        ["make_fragment_layout_like", "make_identity_layout", "make_layout_like", "cosize", "size", "depth", "rank"],
        (1, 1),
    ),
    **dict.fromkeys(["get_shape", "get_stride", "make_int_tuple", "Tile", "parse", "to_text"], (1, 1)),
    **dict.fromkeys(["coalesce", "complement", "make_layout", "Layout"], (1, 2)),
    **dict.fromkeys(["composition", "dice", "slice", "get_1d_coord", "get_flat_coord", "idx2crd", "crd2idx"], (2, 2)),
    **dict.fromkeys(["slice_and_offset", "flat_divide", "logical_divide", "tiled_divide", "zipped_divide"], (2, 2)),
    **dict.fromkeys(["flat_product", "logical_product", "tiled_product", "zipped_product"], (2, 2)),
    **dict.fromkeys(["blocked_product", "raked_product", "ceil_div", "shape_div", "product_like"], (2, 2)),
    **dict.fromkeys(["int_tuple_add", "int_tuple_sub", "int_tuple_mul", "int_tuple_div", "int_tuple_mod"], (2, 2)),
    **dict.fromkeys(["make_ordered_layout", "append", "prepend", "select", "apply_swizzle", "make_layout_tv"], (2, 2)),
    **dict.fromkeys(["make_coord", "make_shape", "make_stride", "make_tile"], (0, 3)),
    "tile_to_shape": (2, 3),
    "explain": (2, 2),
    **dict.fromkeys(["make_composed_layout", "ComposedLayout", "Swizzle", "group", "take", "recast_layout"], (3, 3)),
    "get": (1, 3),
    "CoordSwizzle": (5, 5),
}
BINARY = ["composition", "complement", "logical_divide", "flat_product", "raked_product", "tile_to_shape", "nothing"]
ODD_LEAVES = [0, -1, -4, 10**30, 2**31, 10**5000, None, Dynamic(), Dynamic(64, 8), Basis(1, (0,)), True, 1.5, "x"]
COORDINATES = CoordSwizzle(1, 0, (0,), 2, (1,))
CALLS = 15_000


class Wild:
    """Arguments of every sort, mostly of the wrong one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def leaf(self) -> Any:
        return self.random.choice(ODD_LEAVES if self.random.random() < 0.3 else [1, 2, 3, 4, 8, 12, 16])

    def tree(self, depth: int = 3) -> Any:
        if depth == 0 or self.random.random() < 0.4:
            return self.leaf()
        kind = list if self.random.random() < 0.1 else tuple
        return kind(self.tree(depth - 1) for _ in range(self.random.randint(0, 3)))

    def like(self, tree: Any) -> Any:
        return tuple(map(self.like, tree)) if isinstance(tree, (tuple, list)) else self.leaf()

    def layout(self) -> Any:
        shape = self.tree(2)
        try:
            layout = Layout(shape, self.like(shape) if self.random.random() < 0.5 else None)
            if self.random.random() < 0.9:
                return layout
            return ComposedLayout(
                self.random.choice([Swizzle(2, 1, 3), COORDINATES, Layout((4, 8), (8, 1))]), 0, layout
            )
        except LayoutError:
            return Layout(4, 1)

    def deep(self) -> Any:
        tree: Any = 1
        for _ in range(self.random.choice([31, 32, 33, 5000])):
            tree = (tree,)
        return tree

    def tile(self) -> Any:
        try:
            return Tile(tuple(self.random.choice([self.leaf, self.layout])() for _ in range(self.random.randint(0, 3))))
        except LayoutError:
            return Tile((4,))

    def argument(self) -> Any:
        kinds = [self.layout] * 10 + [self.tree] * 4 + [self.tile] * 2 + [self.leaf] * 3
        return self.random.choice([*kinds, lambda: Swizzle(2, 1, 3), lambda: COORDINATES, self.deep])()

    def text(self) -> str:
        return "".join(self.random.choice("(),:?*{}[]|E019oCS<> -div=i64") for _ in range(self.random.randint(0, 20)))


def test_nothing_but_layout_errors() -> None:
    wild = Wild(seed=3)
    admitted = 0
    for _ in range(CALLS):
        name = wild.random.choice(list(ARITY))
        arguments = [wild.argument() for _ in range(wild.random.randint(*ARITY[name]))]
        if name == "parse":
            arguments = [wild.text()]
        elif name == "explain":
            arguments = [wild.random.choice(BINARY), *arguments[:2]]
        with contextlib.suppress(LayoutError):
            getattr(flydsl.layout, name)(*arguments)
            admitted += 1
    assert admitted > CALLS / 10


def test_a_basis_divided_by_zero() -> None:
    with pytest.raises(LayoutError, match="1E0 divided by zero"):
        Basis(1, (0,)) // 0
