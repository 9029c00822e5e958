"""Products: a layout repeated over the positions of another, in several arrangements of the modes."""

from __future__ import annotations

from flydsl.layout.complement import complement_of
from flydsl.layout.composed import AnyLayout, as_layout, layout_operation
from flydsl.layout.composition import composed
from flydsl.layout.construct import make_ordered_layout
from flydsl.layout.int_tuple import AnyTuple, LayoutLike, product_leaf
from flydsl.layout.layout import (
    Layout,
    checked_shape,
    modes_of,
    of_modes,
    unchecked_layout,
    unit_strides_zeroed,
    unwrapped,
)
from flydsl.layout.leaf import Leaf, ceil_div_leaf
from flydsl.layout.measure import cosize_of, size_of
from flydsl.layout.text import Inadmissible
from flydsl.layout.tile import Tile, as_tiler, by_mode

Pair = tuple[Layout, Layout]


@layout_operation
def logical_product(a: AnyLayout, b: object) -> LayoutLike:
    """A repeated at the positions of B: `(A, composition(complement(A, size(A)*cosize(B)), B))`.

    a: Layout or ComposedLayout. b: a Layout, an extent n (for n:1), or a Tile of them, which works mode by mode.
    Raises LayoutError where A overlaps itself, or B does not fit what A leaves out.

    >>> logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))
    ((2,2),(2,3)):((4,1),(2,8))
    """
    return _multiplied(as_layout(a), as_tiler(b))


@layout_operation
def zipped_product(a: AnyLayout, b: object) -> LayoutLike:
    """The product as (blocks, repetitions). With a Tile each gathers its modes; modes beyond the tile come last.

    >>> zipped_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    ((2,5),(3,4)):((5,1),(10,30))
    """
    return of_modes(list(_block_and_repeats(as_layout(a), as_tiler(b))))


@layout_operation
def tiled_product(a: AnyLayout, b: object) -> LayoutLike:
    """The product as the block in one mode and each mode of the repetition.

    >>> tiled_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    ((2,5),3,4):((5,1),10,30)
    """
    block, repeats = _block_and_repeats(as_layout(a), as_tiler(b))
    return of_modes([block, *modes_of(repeats)])


@layout_operation
def flat_product(a: AnyLayout, b: object) -> LayoutLike:
    """The product with the modes of block and repetition side by side.

    >>> flat_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    (2,5,3,4):(5,1,10,30)
    """
    block, repeats = _block_and_repeats(as_layout(a), as_tiler(b))
    return of_modes(modes_of(block) + modes_of(repeats))


@layout_operation
def blocked_product(a: AnyLayout, b: object) -> LayoutLike:
    """The product mode by mode, whole blocks side by side: mode i is (block i, repetition i).

    The operand of lower rank is padded with modes 1:0.

    >>> blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    return _paired_product(*padded_operands(as_layout(a), as_layout(b)), raked=False)


@layout_operation
def raked_product(a: AnyLayout, b: object) -> LayoutLike:
    """The product mode by mode, blocks interleaved: mode i is (repetition i, block i).

    >>> raked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3)))
    ((3,2),(4,5)):((10,5),(30,1))
    """
    return _paired_product(*padded_operands(as_layout(a), as_layout(b)), raked=True)


def _multiplied(a: Layout, tiler: Layout | Tile | None) -> Layout:
    if isinstance(tiler, Tile):
        multiplied, beyond = by_mode(a, tiler, _multiplied)
        return of_modes(multiplied + beyond)
    return a if tiler is None else of_modes(list(_product(a, tiler)))


def _block_and_repeats(a: Layout, tiler: Layout | Tile | None) -> Pair:
    if isinstance(tiler, Tile):
        pairs, beyond = by_mode(a, tiler, _block_and_repeats)
        if len(a) == len(pairs) == 1:
            return pairs[0]
        return of_modes([block for block, _ in pairs]), of_modes([repeats for _, repeats in pairs] + beyond)
    return (a, unchecked_layout(1, 0)) if tiler is None else _product(a, tiler)


def _product(a: Layout, tiler: Layout) -> Pair:
    """The block, with stride 0 in its modes of size 1, and the layout of its repetitions."""
    block = unwrapped(a)
    return unit_strides_zeroed(block), composed(_room(block, cosize_of(tiler)), tiler)[0]


def _room(block: Layout, count: Leaf) -> Layout:
    """The layout of the indices that a block leaves out, for `count` repetitions.

    Where its strides are no multiples of each other, the indices below size * count have less room than that. They end
    in a gap inside the block then, which must not be taken for the repetitions after it.
    """
    room = complement_of(block, size_of(block) * count)
    size = size_of(room)
    is_short = isinstance(size, int) and isinstance(count, int) and size < count
    return complement_of(block, cosize_of(block) * count) if is_short else room


def padded_operands(a: Layout, b: Layout) -> Pair:
    """Both operands, padded to the higher rank of the two."""
    rank = max(len(a), len(b))
    return padded(a, rank), padded(b, rank)


def padded(layout: Layout, rank: int) -> Layout:
    """The layout with modes 1:0 appended up to a rank."""
    missing = rank - len(layout)
    return of_modes(modes_of(layout) + [unchecked_layout(1, 0)] * missing) if missing > 0 else layout


def _paired_product(block: Layout, tiler: Layout, raked: bool) -> Layout:
    """The product of operands of the same rank, mode by mode."""
    rank = len(block)
    part, repeats = _product(block, unwrapped(tiler))
    pairs = zip(modes_of(part), modes_of(repeats), strict=True) if rank > 1 else [(part, repeats)]
    modes = [of_modes([y, x] if raked else [x, y]) for x, y in pairs]
    return of_modes(modes) if rank > 1 else modes[0]


@layout_operation
def tile_to_shape(block: AnyLayout, shape: object, order: object = None) -> LayoutLike:
    """The block repeated until it covers a shape: a blocked product whose repetitions vary in the given order.

    order: one int for each mode of the shape, the smallest varying fastest; by default the leftmost mode.
    The result has the modes of the shape, each (block, repetitions); of an int it is that pair.
    Where the block does not divide the shape, the last repetition reaches past it.

    >>> tile_to_shape(Layout((8, 4), (1, 8)), (16, 12), (1, 0))
    ((8,2),(4,3)):((1,96),(8,32))
    """
    extents = _mode_sizes(checked_shape(shape))
    atom = padded(as_layout(block), len(extents))
    if len(atom) > len(extents):
        raise Inadmissible(
            f"the block {atom} has {len(atom)} modes, the shape {len(extents)}",
            hint="give a block with as many modes as the shape",
        )
    counts = tuple(map(ceil_div_leaf, extents, _mode_sizes(atom.extents)))
    ranks = tuple(range(len(counts))) if order is None else order
    repeats = make_ordered_layout(counts, ranks if isinstance(ranks, (tuple, list)) else (ranks,))
    covered = _paired_product(atom, repeats, raked=False)
    return of_modes([covered]) if len(extents) == 1 and isinstance(shape, (tuple, list)) else covered


def _mode_sizes(shape: AnyTuple) -> list[Leaf]:
    return [product_leaf(mode) for mode in (shape if type(shape) is tuple else (shape,))]
