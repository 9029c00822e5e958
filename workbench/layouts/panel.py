"""A panel: a layout drawn as one grid, with the threads that hold its elements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import ArchError, LayoutError
from flydsl.layout import Layout, get_shape, size
from workbench.layouts.grid import AnyLayout, Grid, Numbers

Holder: TypeAlias = tuple[int, int]
"""(thread, value): a thread, and as which of its values it holds an element."""

_DWORD_BYTES = 4
_MAX_ELEMENT_BITS = 128
_MAX_NAMED_HOLDERS = 4


@dataclass(frozen=True)
class Panel:
    """A layout, with or without the threads that hold its elements.

    name: such as "A" or "source"; empty for a single panel.
    layout: coordinate -> offset in elements of `element_bits` bits.
    layout_tv: (thread, value) -> coordinate of `layout`, as an int. All modes after the first are values.
    """

    layout: AnyLayout
    layout_tv: Layout | None = None
    name: str = ""
    element_bits: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.element_bits, int) or not 1 <= self.element_bits <= _MAX_ELEMENT_BITS:
            raise LayoutError(f"an element is 1 to {_MAX_ELEMENT_BITS} bits wide, not {self.element_bits!r}")

    has_addresses: ClassVar[bool] = True  # whether the grid's numbers are offsets in memory

    @cached_property
    def grid(self) -> Grid:
        """The layout over rows and columns. Raises LayoutError where it cannot be drawn."""
        return Grid.of(self.layout)

    @cached_property
    def holders(self) -> list[list[Holder]]:
        """The holders of each element, by its linear coordinate. Raises LayoutError for elements outside."""
        cells = self.grid.offsets.size
        held: list[list[Holder]] = [[] for _ in range(cells)]
        if self.layout_tv is None:
            return held
        for number in range(self.threads * self.values):
            element = self.layout_tv(number)
            if not isinstance(element, int) or not 0 <= element < cells:
                raise LayoutError(
                    f"{self.layout_tv} leads to element {element}, and {get_shape(self.layout)} has {cells} elements"
                )
            value, thread = divmod(number, self.threads)
            held[element].append((thread, value))
        return held

    @cached_property
    def has_one_holder_each(self) -> bool:
        """True if exactly one thread holds each element."""
        return self.layout_tv is not None and all(len(held) == 1 for held in self.holders)

    @property
    def threads(self) -> int:
        """The number of threads; 0 without a thread-value layout."""
        return 0 if self.layout_tv is None else _static_size(self.layout_tv[0], self.layout_tv)

    @property
    def values(self) -> int:
        """The number of values per thread."""
        if self.layout_tv is None:
            return 0
        return _static_size(self.layout_tv, self.layout_tv) // self.threads

    def byte_addresses(self) -> Numbers:
        """The address of every cell, from that of offset 0; of an element below a byte that of its byte."""
        return self.grid.offsets * self.element_bits // 8

    def banks(self, arch: Arch) -> Numbers:
        """The LDS bank of every cell, for a tile that begins at bank 0. Raises ArchError where banks are not known."""
        if arch.lds_banks is None:
            raise ArchError(f"the LDS banks of {arch.name} are not known")
        return self.byte_addresses() // _DWORD_BYTES % arch.lds_banks

    def first_holders(self) -> tuple[Numbers, Numbers]:
        """Thread and value of every cell's first holder; NaN where there is none."""
        nobody = (np.nan, np.nan)
        first = np.array([held[0] if held else nobody for held in self.holders], float)
        return self._spread(first[:, 0]), self._spread(first[:, 1])

    def held_by(self, thread: int) -> Numbers:
        """A boolean mask of the cells that a thread holds."""
        return self._spread(np.array([any(t == thread for t, _ in held) for held in self.holders]))

    def holder_names(self) -> list[list[list[str]]]:
        """The holder of each cell, row by row: `T3 V1`."""
        grid = self.grid
        names = [_names(held) for held in self.holders]
        return [[names[row + grid.height * column] for column in range(grid.width)] for row in range(grid.height)]

    def cell_texts(self) -> list[list[str]]:
        """The label of each cell: its holder, or its offset."""
        if self.layout_tv is None:
            return [[str(offset) for offset in row] for row in self.grid.offsets.tolist()]
        return [[", ".join(names) for names in row] for row in self.holder_names()]

    def facts(self, arch: Arch) -> tuple[list[Numbers], list[str]]:
        """Further facts about every cell: numbers, and text lines that refer to them by position."""
        numbers = [self.grid.offsets, self.byte_addresses()]
        lines = ["offset %{customdata[0]}", f"byte %{{customdata[1]}} (elements of {self.element_bits} bits)"]
        if arch.lds_banks is not None:
            lines.append(f"LDS bank %{{customdata[{len(numbers)}]}} of {arch.lds_banks} ({arch.name})")
            numbers.append(self.banks(arch))
        return numbers, lines

    def _spread(self, numbers: Numbers) -> Numbers:
        return numbers.reshape(self.grid.width, self.grid.height).T


def _static_size(layout: Layout, whole: Layout) -> int:
    count = size(layout)
    if not isinstance(count, int):
        raise LayoutError(f"{whole} has sizes known at run time only", hint="draw a layout of numbers")
    return count


def _names(held: list[Holder]) -> list[str]:
    names = [f"T{thread} V{value}" for thread, value in held[:_MAX_NAMED_HOLDERS]]
    more = len(held) - len(names)
    return [*names, f"+ {more} more"] if more else names
