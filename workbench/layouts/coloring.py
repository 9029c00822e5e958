"""Colours that say something about a cell: its offset, its thread, its value or its LDS bank.

Offsets use cividis, which people with any kind of colour vision see as one ramp from dark to light; banks have a colour
each, and their numbers on the cells. Threads and values only have to differ from their neighbours: they cycle through
eight colours, those of Okabe and Ito with grey for black ("Color Universal Design", 2008). All are light enough for
black text; cividis and the blue are tinted for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import ArgumentError
from workbench.layouts.bank_colors import bank_colors
from workbench.layouts.grid import Numbers
from workbench.layouts.panel import Panel

CLEAR = "rgba(0,0,0,0)"
LABEL = "#000000"  # of the text on a cell
COLOR_BY = ("offset", "bank", "thread", "value")

_DISTINCT = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#2e8bc6", "#d55e00", "#cc79a7", "#999999")


@dataclass(frozen=True, eq=False)
class Coloring:
    """The colours of a panel's cells.

    numbers: one per cell; without a ramp, NaN means no colour. colors: as "#rrggbb". low, high: the numbers of the
    first and the last colour. is_ramp: whether colours between them are interpolated; otherwise number n is color n.
    note: the meaning of the colours.
    """

    numbers: Numbers
    colors: tuple[str, ...]
    low: float
    high: float
    is_ramp: bool
    note: str = ""

    @staticmethod
    def ramp(numbers: Numbers, low: int, high: int, note: str = "") -> Coloring:
        """Colours from dark to light."""
        return Coloring(numbers.astype(float), _cividis(), low, max(high, low + 1), True, note)

    @staticmethod
    def steps(numbers: Numbers, note: str) -> Coloring:
        """Alternating colours: numbers one, or any power of two, apart have different colours."""
        count = len(_DISTINCT)
        turns, rest = 0 * numbers, numbers
        while np.nanmax(rest, initial=0) > 0:  # the sum of the digits to the base `count`
            turns, rest = turns + rest % count, rest // count
        return Coloring(turns % count, _DISTINCT, 0, count - 1, False, note)

    @staticmethod
    def distinct(numbers: Numbers, colors: tuple[str, ...], note: str) -> Coloring:
        """A colour for each number."""
        return Coloring(numbers.astype(float), colors, 0, len(colors) - 1, False, note)

    def codes(self) -> Numbers:
        """The numbers as integers, -1 for no colour, to go with `scale`. (Messages to a page cannot carry NaN.)"""
        return self.numbers.astype(np.int64) if self.is_ramp else np.nan_to_num(self.numbers, nan=-1).astype(np.int64)

    @property
    def limits(self) -> tuple[float, float]:
        """The codes at the ends of `scale`."""
        return (self.low, self.high) if self.is_ramp else (-1.5, self.high + 0.5)

    @property
    def scale(self) -> list[list[Any]]:
        """As plotly's colorscale."""
        if self.is_ramp:
            return [[i / (len(self.colors) - 1), color] for i, color in enumerate(self.colors)]
        steps = (CLEAR, *self.colors)
        return [[edge / len(steps), color] for i, color in enumerate(steps) for edge in (i, i + 1)]

    def rgb(self) -> Numbers:
        """The colour of every cell: height x width x 3, uint8; that of a cell without one means nothing."""
        table = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in self.colors], float)
        numbers = np.nan_to_num(self.numbers, nan=self.low)
        if not self.is_ramp:
            return table[numbers.astype(int)].astype(np.uint8)
        places = np.linspace(self.low, self.high, len(table))
        return np.stack([np.interp(numbers, places, table[:, i]) for i in range(3)], axis=-1).round().astype(np.uint8)


def coloring(panel: Panel, color_by: str, arch: Arch) -> Coloring:
    """The colours of a panel. color_by: one of COLOR_BY.

    Raises ArgumentError for a property that the panel does not have, ArchError if the banks of `arch` are not known.
    """
    if color_by == "offset":
        offsets = panel.grid.offsets
        return Coloring.ramp(offsets, int(offsets.min()), int(offsets.max()))
    if color_by == "bank":
        note = f"coloured by LDS bank: {arch.lds_banks} banks of {arch.name}, elements of {panel.element_bits} bits"
        return Coloring.distinct(panel.banks(arch), bank_colors(arch.lds_banks or 0), note)
    if color_by not in COLOR_BY:
        raise ArgumentError(f"cells are not coloured by {color_by!r}", hint=f"one of {', '.join(COLOR_BY)}")
    if panel.layout_tv is None:
        raise ArgumentError(
            f"{panel.layout} alone has no {color_by} to colour by",
            hint="give the thread-value layout: layout_figure(layout, layout_tv=...)",
        )
    threads, values = panel.first_holders()
    numbers = threads if color_by == "thread" else values
    return Coloring.steps(numbers, f"coloured by {color_by}; {len(_DISTINCT)} colours take turns")


def labels(panel: Panel, color_by: str, arch: Arch) -> list[list[str]]:
    """The text on each cell: its bank where that is its colour, else its holder over the value, or its offset.

    Lines are separated by "<br>".
    """
    if color_by == "bank":
        return [[str(bank) for bank in row] for row in panel.banks(arch).tolist()]
    if panel.layout_tv is None:
        return panel.cell_texts()
    return [[_label(names) for names in row] for row in panel.holder_names()]


def _label(names: list[str]) -> str:
    """The holders of a cell in lines: one alone over two of them, thread and value."""
    return names[0].replace(" ", "<br>") if len(names) == 1 else "<br>".join(names)


@cache
def _cividis() -> tuple[str, ...]:
    from workbench.kit.notebook import sequential

    return tuple(_tint(color) for color in sequential.Cividis)


def _tint(color: str, share: float = 0.6) -> str:
    """A colour mixed with white. share: of the colour."""
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)
