"""A tile in LDS: padding its rows, and how many times a wave's access to it takes turns at the banks.

A wave accesses a tile in vectors along the mode that lies side by side in memory. Lane 0 has the first vector; the
lanes go on either ACROSS the vectors (the next row of a row-major tile, as matrix instructions want their operands) or
ALONG them (as a copy writes rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from flydsl.arch import ARCHS, Arch, conflict_ways
from flydsl.errors import ArchError, ArgumentError, LayoutError
from flydsl.layout import ComposedLayout, Layout, cosize, flatten, make_layout
from workbench.layouts.grid import AnyLayout, Grid

ACROSS, ALONG = "across", "along"
OPS = tuple(sorted({op for arch in ARCHS for op in arch.lds_phases}, key=lambda op: (op[0], int(op.split("_b")[1]))))

_BYTE_BITS = 8

Cell = tuple[int, int]


@dataclass(frozen=True)
class Tally:
    """What an access costs on one architecture.

    ways: turns of the slowest phase; 1 without a conflict. turns: of all phases. phases: how many there are, which is
    the fewest turns. unknown: why there is nothing to say; empty where there is.
    """

    arch: Arch
    ways: int = 0
    turns: int = 0
    phases: int = 0
    unknown: str = ""


@dataclass(frozen=True)
class LdsAccess:
    """One LDS instruction of a wave on a tile.

    tile: coordinate -> offset in elements of `element_bits` bits. op: as in `flydsl.arch.conflict_ways`, "read_b128"
    for example. order: ACROSS or ALONG.
    """

    tile: AnyLayout
    op: str
    element_bits: int
    order: str = ACROSS

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ArgumentError(f"{self.op!r} is no LDS access of known cost", hint=f"one of {', '.join(OPS)}")
        if self.order not in (ACROSS, ALONG):
            raise ArgumentError(f"lanes go {ACROSS} or {ALONG}, not {self.order!r}")
        if self.bits % self.element_bits:
            raise ArgumentError(
                f"{self.op} takes no whole number of elements of {self.element_bits} bits", hint="take a wider access"
            )

    @property
    def bits(self) -> int:
        """What one lane accesses."""
        return int(self.op.split("_b")[1])

    @property
    def elements(self) -> int:
        """Elements that one lane accesses."""
        return self.bits // self.element_bits

    @cached_property
    def vectors(self) -> list[tuple[Cell, ...]]:
        """The cells (row, column) of every vector of the tile, in the order in which lanes take them.

        Raises LayoutError where the tile is no whole number of vectors.
        """
        is_row_major = _is_row_major(self.tile)
        length, lines = (self._grid.width, self._grid.height)[:: 1 if is_row_major else -1]
        if length % self.elements:
            raise LayoutError(
                f"{self.op} takes {self.elements} elements of {self.element_bits} bits side by side, and {self.tile} "
                f"has {length} of them",
                hint="take a narrower access",
            )
        starts = [(line, start) for start in range(0, length, self.elements) for line in range(lines)]
        if self.order == ALONG:
            starts.sort()
        return [
            tuple((line, at) if is_row_major else (at, line) for at in range(start, start + self.elements))
            for line, start in starts
        ]

    def addresses(self, lanes: int) -> list[int | None]:
        """The byte address of each lane's vector; None for lanes for which the tile has none left.

        Raises LayoutError where a vector's elements do not lie side by side, or do not begin at a multiple of its size.
        """
        found: list[int | None] = [self._address(cells) for cells in self.vectors[:lanes]]
        return found + [None] * (lanes - len(found))

    def tally(self, arch: Arch) -> Tally:
        """What the access costs on an architecture. Raises LayoutError as `addresses` does."""
        addresses = self.addresses(arch.wave_size)
        try:
            phases = conflict_ways(arch, self.op, addresses)
        except ArchError as error:
            return Tally(arch, unknown=error.message)
        busy = [phase.ways for phase in phases if phase.ways]
        return Tally(arch, max(busy), sum(busy), len(busy))

    def slowest_phase(self, arch: Arch) -> list[Cell]:
        """The cells that the lanes of the slowest phase access. Raises ArchError where the phases are not known."""
        phases = conflict_ways(arch, self.op, self.addresses(arch.wave_size))
        slowest = max(phases, key=lambda phase: phase.ways)
        return [cell for lane in slowest.lanes if lane < len(self.vectors) for cell in self.vectors[lane]]

    @cached_property
    def _grid(self) -> Grid:
        return Grid.of(self.tile)

    def _address(self, cells: tuple[Cell, ...]) -> int:
        offsets = [int(self._grid.offsets[cell]) for cell in cells]
        first = offsets[0]
        where = f"{self.op} at {self._grid.coordinate(*cells[0])}"
        if offsets != list(range(first, first + len(offsets))):
            found = ", ".join(map(str, offsets))
            raise LayoutError(
                f"{where} finds its {self.elements} elements at the offsets {found}, not side by side",
                hint=f"take a narrower access; swizzles of base {self.elements.bit_length() - 1} and more keep them so",
            )
        if first < 0 or first * self.element_bits % self.bits:
            raise LayoutError(
                f"{where} begins at byte {first * self.element_bits / _BYTE_BITS:g}, which is no multiple of its "
                f"{self.bits // _BYTE_BITS} bytes",
                hint=f"make the padding a multiple of {self.elements} elements",
            )
        return first * self.element_bits // _BYTE_BITS


def padded(layout: Layout, elements: int) -> Layout:
    """A tile with its rows (of a column-major one: its columns) so many elements further apart.

    Raises LayoutError where the layout has no rows of one length.

    >>> padded(Layout((16, 64), (64, 1)), 8), padded(Layout((64, 16), (1, 64)), 8)
    ((16,64):(72,1), (64,16):(1,72))
    """
    if elements == 0:
        return layout
    modes = list(layout)
    if len(modes) != 2:
        raise LayoutError(f"padding goes between the rows of a layout of rank 2, and {layout} has rank {len(modes)}")
    line, other = modes[::-1] if _is_row_major(layout) else modes
    if not _strides(other):
        return layout  # a single row
    length = min(_strides(other))
    if length <= 0 or any(stride % length for stride in _strides(other)) or _last(line) >= length:
        raise LayoutError(f"{layout} has no rows of one length to pad")
    stretched = make_layout(other.shape, _stretched(other.stride, length, elements))
    pair = (stretched, line) if _is_row_major(layout) else (line, stretched)
    return make_layout(tuple(mode.shape for mode in pair), tuple(mode.stride for mode in pair))


def _last(line: Layout) -> int:
    """The largest offset in a line."""
    last = cosize(line) - 1
    assert isinstance(last, int)
    return last


def _stretched(stride: object, length: int, padding: int) -> object:
    if isinstance(stride, tuple):
        return tuple(_stretched(part, length, padding) for part in stride)
    assert isinstance(stride, int)
    return stride // length * (length + padding)


def _is_row_major(layout: AnyLayout) -> bool:
    """Whether the elements of a row lie side by side, rather than those of a column. A layout of rank 1 is one row."""
    first, *others = layout.outer if isinstance(layout, ComposedLayout) else layout
    return _finest(others) <= _finest([first]) or not others


def _finest(modes: list[Layout]) -> float:
    """The smallest step between elements."""
    return min((stride for mode in modes for stride in _strides(mode) if stride > 0), default=inf)


def _strides(mode: Layout) -> list[int]:
    """The strides of a mode's leaves that have more than one element."""
    pairs = zip(_flat(mode.shape), _flat(mode.stride), strict=True)
    return [stride for extent, stride in pairs if extent != 1]


def _flat(tree: object) -> tuple[int, ...]:
    leaves = flatten(tree)
    return leaves if isinstance(leaves, tuple) else (leaves,)
