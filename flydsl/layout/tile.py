"""Tiles: divisors and restrictions mode by mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flydsl.errors import LayoutError
from flydsl.layout.composed import as_layout
from flydsl.layout.layout import Immutable, Layout, modes_of, unwrapped
from flydsl.layout.text import Inadmissible, operation, shown, to_text

T = TypeVar("T")


class Tile(Immutable):
    """One tiler for each mode of a layout: an extent n (for the layout n:1), a Layout, None (nothing) or a Tile.

    >>> Tile((8, None, Layout(4, 2)))
    [8|*|4:2]
    """

    __slots__ = ("modes", "tilers")
    fields = ("modes",)

    modes: tuple[Any, ...]
    tilers: tuple[Layout | Tile | None, ...]  # the modes as operations take them: see as_tiler

    def __new__(cls, modes: tuple[Any, ...]) -> Tile:
        if not isinstance(modes, (tuple, list)):
            raise LayoutError(f"a tile takes a tuple of modes, got {shown(modes)}", hint="pass fx.make_tile(32, 8)")
        return make_tile(*modes)

    def __str__(self) -> str:
        return f"[{'|'.join(map(to_text, self.modes))}]"

    def __len__(self) -> int:
        """The rank."""
        return len(self.modes)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self.modes)

    def unpack(self) -> Any:
        """The modes, those of modes' own tiles as tuples; of a tile of one mode that mode.

        >>> make_tile(128, (8, 4)).unpack(), make_tile(256).unpack()
        ((128, (8, 4)), 256)
        """
        modes = tuple(mode.unpack() if isinstance(mode, Tile) else mode for mode in self.modes)
        return modes[0] if len(modes) == 1 else modes


@operation
def make_tile(*modes: object) -> Tile:
    """The tile with the given modes: extents, layouts, None, or tuples (tiles of the mode's own modes).

    >>> make_tile(8, 24), make_tile(None, Layout((4, 2), (1, 8)))
    ([8|24], [*|(4,2):(1,8)])
    """
    checked = tuple([Tile(tuple(m)) if isinstance(m, (tuple, list)) else m for m in modes])
    tile = object.__new__(Tile)
    object.__setattr__(tile, "modes", checked)
    object.__setattr__(tile, "tilers", tuple(map(as_tiler, checked)))
    return tile


def as_tiler(value: object) -> Layout | Tile | None:
    """A divisor: a Layout (one mode alone unwrapped), a Tile, None, an extent n (for n:1) or a tuple (for a Tile)."""
    if value is None:
        return None
    if type(value) is Layout:
        return unwrapped(value)
    if isinstance(value, (tuple, list)):
        return Tile(tuple(value))
    return value if isinstance(value, Tile) else as_layout(value)


def by_mode(
    a: Layout, tile: Tile, function: Callable[[Layout, Layout | Tile | None], T]
) -> tuple[list[T], list[Layout]]:
    """Apply a function to each mode of the tile and that mode of A. Return the results and A's further modes."""
    modes = modes_of(a)
    if len(tile) > len(modes):
        raise Inadmissible(
            f"the tile {tile} has {len(tile)} modes, {a} has {len(modes)}",
            hint="give a tile with at most as many modes; None keeps one whole",
        )
    results = []
    for i, tiler in enumerate(tile.tilers):
        try:
            results.append(function(modes[i], tiler))
        except Inadmissible as reason:
            raise reason.in_mode(i) from None
    return results, modes[len(results) :]
