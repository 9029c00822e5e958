"""Tiled copies: a copy instruction repeated over the threads and values of a tile."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from flydsl import layout as algebra
from flydsl.atoms.copy import CopyOp
from flydsl.errors import LayoutError
from flydsl.layout import Layout, Tile
from flydsl.layout.layout import of_modes


@dataclass(frozen=True)
class TiledCopy:
    """A tiled copy: the way in which the threads of a block together copy a tile.

    op: the instruction, for elements of `value_bits` bits.
    layout_tv: (thread, value) -> element of the tile, the leftmost mode of the tile fastest.
    tile: the extents that it covers.

    The terms are CuTe's; source: CuTe, "TiledCopy" (media/docs/cpp/cute/0x_gemm_tutorial.md).
    """

    op: CopyOp
    value_bits: int
    layout_tv: Layout
    tile: Tile

    def __post_init__(self) -> None:
        values = algebra.size(algebra.get(self.layout_tv, 1))
        if self.op.bits % self.value_bits or values % self.values_per_call:
            raise LayoutError(
                f"{self.op} moves {self.op.bits} bits, and a thread holds {values} values of {self.value_bits} bits "
                f"in {self.layout_tv}",
                hint="the values of one thread must be a whole number of copies",
            )
        elements, reached = self._elements, algebra.cosize(self.layout_tv)
        if elements is not None and isinstance(reached, int) and reached > elements:
            raise LayoutError(
                f"threads and values in {self.layout_tv} reach element {reached - 1} of a tile of {self.tile}, "
                f"which has {elements}",
                hint="tile and layout go together: make_layout_tv gives both",
            )

    @property
    def _elements(self) -> int | None:
        """The size of the tile, or None if a mode's length is left open."""
        extents = [_extent(mode) for mode in self.tile.modes]
        return prod(extents) if all(isinstance(extent, int) for extent in extents) else None  # type: ignore[arg-type]

    @property
    def values_per_call(self) -> int:
        """Number of elements that one thread moves with one instruction."""
        return self.op.bits // self.value_bits

    @property
    def threads(self) -> int:
        """Number of threads that take part."""
        size = algebra.size(algebra.get(self.layout_tv, 0))
        assert isinstance(size, int)
        return size

    def partition(self, layout: Layout, reads: bool = False) -> Layout:
        """A tensor's layout as (thread, (values of a call, calls), rest of mode 0, rest of mode 1, ...).

        reads: what the threads read, which differs from what they hold afterwards where the instruction transposes.
        A tile that does not divide the layout reaches past it: see `flydsl.layout.divide`.
        """
        try:
            tiles, rest = algebra.zipped_divide(layout, self.tile)
        except LayoutError as error:
            raise LayoutError(
                f"a copy in tiles of {self.tile} does not fit {layout}: {error.message}",
                hint="take a tile that divides the tensor, or pad the tensor to whole tiles",
            ) from None
        by_thread = algebra.composition(tiles, self._thread_and_value(reads))
        rests = list(rest) if isinstance(rest.extents, tuple) else [rest]
        modes = [*by_thread, *rests]
        return algebra.make_layout(tuple(mode.extents for mode in modes), tuple(mode.strides for mode in modes))

    def retile(self, layout: Layout) -> Layout:
        """A fragment's layout (values of an MMA call, calls...) as ((values of a call, calls), rest...) of this copy.

        The fragment's values are the thread's part of the tile in the order in which an MMA holds them. Raises
        LayoutError where the copy does not move whole calls of the MMA.
        """
        values = algebra.size(algebra.get(layout, 0))
        held = algebra.size(algebra.get(self.layout_tv, 1))
        if not isinstance(values, int) or not isinstance(held, int) or held % values:
            raise LayoutError(
                f"a thread holds {held} values of this copy, in {self.layout_tv}, which must be a multiple of the "
                f"{values} in mode 0 of the fragment {layout}",
                hint="retile a fragment of the tiled MMA that the copy was made from",
            )
        extents = algebra.product_each(tuple(_extent(mode) for mode in self.tile.modes))
        by_element = algebra.composition(algebra.right_inverse(self.layout_tv), Layout(extents))
        calls = algebra.recast_layout(by_element, 1, self.threads * values)
        order = algebra.logical_product(Layout(values), algebra.right_inverse(calls))
        by_call = algebra.zipped_divide(order, self.values_per_call)
        modes = algebra.make_tile(values, *algebra.product_each(calls.extents))
        held, (_, *rest) = algebra.zipped_divide(layout, modes)
        return of_modes([algebra.composition(held, by_call), *rest])

    def _thread_and_value(self, reads: bool) -> Layout:
        """(thread, (values of a call, calls)) -> element of the tile, that a thread reads or holds afterwards."""
        split = algebra.make_tile(self.op.threads, self.values_per_call)
        held, (rest_thread, rest_value) = algebra.zipped_divide(self.layout_tv, split)
        atom_thread, atom_value = self._before_transposing(held) if reads and self.op.transposes else held
        threads, values = (atom_thread, rest_thread), (atom_value, rest_value)
        shape = tuple(tuple(mode.extents for mode in pair) for pair in (threads, values))
        stride = tuple(tuple(mode.strides for mode in pair) for pair in (threads, values))
        return algebra.coalesce(algebra.make_layout(shape, stride), (1, (1, 1)))

    def _before_transposing(self, held: Layout) -> Layout:
        """(thread, value) -> element that a thread reads, from that of what it holds afterwards."""
        in_order = Layout((self.op.threads, self.values_per_call), (self.values_per_call, 1))
        try:
            return algebra.composition(held, in_order)
        except LayoutError:
            raise LayoutError(
                f"{self.op}: the {self.values_per_call} values that a thread reads must be a pattern of "
                f"the values that it holds, got {held}",
                hint=f"{self.op.threads} threads in a row of the tile, and their values across it",
            ) from None


def _extent(mode: object) -> object:
    return algebra.size(mode) if isinstance(mode, Layout) else mode
