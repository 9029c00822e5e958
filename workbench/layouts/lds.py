"""A tile in LDS: how many times the lanes of a wave take turns at its banks.

A wave accesses a tile in vectors along the mode that is contiguous in memory. Lane 0 has the first vector. The next
lanes continue either ACROSS the vectors (in the next row of a row-major tile, as matrix instructions read operands) or
ALONG them (as a copy writes rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flydsl.arch import ARCHS, COMPARED, Arch, conflict_ways
from flydsl.errors import ArchError, ArgumentError, LayoutError
from workbench.kit.html import escape, table, title
from workbench.layouts.grid import AnyLayout, Grid
from workbench.layouts.padding import is_row_major
from workbench.layouts.panel import Panel

ACROSS, ALONG = "across", "along"
OPS = tuple(sorted({op for arch in ARCHS for op in arch.lds_phases}, key=lambda op: (op[0], int(op.split("_b")[1]))))

_BYTE_BITS = 8
_MOST_LANES = max(arch.wave_size for arch in ARCHS)

Cell = tuple[int, int]


@dataclass(frozen=True)
class Tally:
    """The cost of an access on one architecture.

    ways: turns of the slowest phase; 1 without a conflict. turns: the sum over all phases. phases: their number, which
    is the minimum of turns. unknown: the reason if the cost is not known, otherwise empty.
    """

    arch: Arch
    ways: int = 0
    turns: int = 0
    phases: int = 0
    unknown: str = ""

    @property
    def verdict(self) -> str:
        """The conflicts in a word."""
        return self.unknown or ("none" if self.ways == 1 else f"{self.ways}-way")

    @property
    def cost(self) -> str:
        """The number of turns that the access takes; empty if unknown."""
        if self.unknown:
            return ""
        return f"{self.turns} turn{'s' if self.turns != 1 else ''}, at best {self.phases}"


@dataclass(frozen=True, repr=False)
class LdsAccess:
    """One LDS instruction of a wave on a tile, which shows what it costs on every architecture.

    tile: coordinate -> offset in elements of `element_bits` bits. op: as in `flydsl.arch.conflict_ways`, "read_b128"
    for example. order: ACROSS or ALONG.

    Raises ArgumentError for an unknown access, and LayoutError if a lane's elements are not contiguous, or not aligned
    to their size.

    >>> from flydsl.layout import make_layout
    >>> LdsAccess(make_layout((16, 64), (64, 1)), "read_b128", 16)
    read_b128: 8 elements of 16 bits by each lane of a wave
      gfx90a   4-way (32 turns, at best 8)
      gfx942   4-way (32 turns, at best 8)
      gfx950   4-way (16 turns, at best 4)
      gfx1201  8-way (32 turns, at best 4)
      gfx1250  the LDS banks of gfx1250 are not known
    """

    tile: AnyLayout
    op: str
    element_bits: int
    order: str = ACROSS

    def __post_init__(self) -> None:
        Panel(self.tile, element_bits=self.element_bits)  # refuses widths that elements do not have
        if self.op not in OPS:
            raise ArgumentError(f"{self.op!r} is not an LDS access of known cost", hint=f"one of {', '.join(OPS)}")
        if self.order not in (ACROSS, ALONG):
            raise ArgumentError(f"lanes go {ACROSS} or {ALONG}, not {self.order!r}")
        if self.bits % self.element_bits:
            raise ArgumentError(
                f"{self.op} must take a whole number of elements of {self.element_bits} bits",
                hint="take a wider access",
            )
        self.addresses(_MOST_LANES)

    @property
    def bits(self) -> int:
        """The width in bits of one lane's access."""
        return int(self.op.split("_b")[1])

    @property
    def elements(self) -> int:
        """Elements that one lane accesses."""
        return self.bits // self.element_bits

    @cached_property
    def vectors(self) -> list[tuple[Cell, ...]]:
        """The cells (row, column) of every vector of the tile, in the order in which lanes take them."""
        has_rows = is_row_major(self.tile)
        length, lines = (self._grid.width, self._grid.height)[:: 1 if has_rows else -1]
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
            tuple((line, at) if has_rows else (at, line) for at in range(start, start + self.elements))
            for line, start in starts
        ]

    def addresses(self, lanes: int) -> list[int | None]:
        """The byte address of each of a wave's lanes; None for those for which the tile has no vector left."""
        return self._addresses[:lanes]

    @cached_property
    def _addresses(self) -> list[int | None]:
        found: list[int | None] = [self._address(cells) for cells in self.vectors[:_MOST_LANES]]
        return found + [None] * (_MOST_LANES - len(found))

    def tally(self, arch: Arch) -> Tally:
        """The cost of the access on an architecture."""
        try:
            phases = conflict_ways(arch, self.op, self.addresses(arch.wave_size))
        except ArchError as error:
            return Tally(arch, unknown=error.message)
        busy = [phase.ways for phase in phases if phase.ways]
        return Tally(arch, max(busy), sum(busy), len(busy))

    def tallies(self) -> list[Tally]:
        """The cost of the access on one architecture of each kind."""
        return [self.tally(arch) for arch in COMPARED]

    @property
    def summary(self) -> str:
        """The access in one line."""
        return f"{self.op}: {self.elements} elements of {self.element_bits} bits by each lane of a wave"

    def __repr__(self) -> str:
        rows = [(t.arch.name, t.verdict, f"({t.cost})" if t.cost else "") for t in self.tallies()]
        return "\n".join([self.summary, *(f"  {name:7}  {verdict} {cost}".rstrip() for name, verdict, cost in rows)])

    def _repr_html_(self) -> str:
        rows = [[escape(text) for text in (t.arch.name, t.verdict, t.cost)] for t in self.tallies()]
        return f"<div>{title(escape(self.summary))}{table(('arch', 'bank conflicts', 'cost'), rows)}</div>"

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
        first_bit = offsets[0] * self.element_bits
        if offsets != list(range(offsets[0], offsets[0] + len(offsets))):
            raise self._refusal(
                cells[0],
                f"finds its {self.elements} elements at the offsets {', '.join(map(str, offsets))}, not side by side",
                f"take a narrower access; swizzles of base {self.elements.bit_length() - 1} and more keep them so",
            )
        if first_bit < 0 or first_bit % self.bits:
            raise self._refusal(
                cells[0],
                f"begins at byte {first_bit / _BYTE_BITS:g}, no multiple of its {self.bits // _BYTE_BITS} bytes",
                f"make the padding a multiple of {self.elements} elements",
            )
        return first_bit // _BYTE_BITS

    def _refusal(self, cell: Cell, reason: str, hint: str) -> LayoutError:
        return LayoutError(f"{self.op} at {self._grid.coordinate(*cell)} {reason}", hint=hint)
