"""Colours that say something about a cell: its offset, its thread, its value or its LDS bank.

Numbers that have an order run through cividis, which people with any kind of colour vision see as one ramp from dark
to light. Threads and values only have to differ from their neighbours: they take turns in eight colours, those of
Okabe and Ito with grey for black ("Color Universal Design", 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import ArgumentError
from workbench.layouts.grid import Numbers
from workbench.layouts.panel import Panel

COLOR_BY = ("offset", "bank", "thread", "value")

_DISTINCT = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999")


@dataclass(frozen=True, eq=False)
class Coloring:
    """The colours of a panel's cells.

    numbers: one per cell, NaN for no colour. low, high: the numbers of the first and the last colour. colors: as
    "#rrggbb". is_ramp: whether colours in between exist. note: what they say.
    """

    numbers: Numbers
    low: float
    high: float
    colors: tuple[str, ...]
    is_ramp: bool
    note: str

    @property
    def scale(self) -> list[list[Any]]:
        """As plotly's colorscale."""
        count = len(self.colors)
        if self.is_ramp:
            return [[i / (count - 1), color] for i, color in enumerate(self.colors)]
        return [[edge / count, color] for i, color in enumerate(self.colors) for edge in (i, i + 1)]

    def rgb(self) -> Numbers:
        """The colour of every cell: height x width x 3, uint8; that of a cell without one means nothing."""
        table = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in self.colors], float)
        share = (np.nan_to_num(self.numbers, nan=self.low) - self.low) / (self.high - self.low)
        if not self.is_ramp:
            return table[np.clip(share * len(table), 0, len(table) - 1).astype(int)].astype(np.uint8)
        places = np.linspace(0, 1, len(table))
        return np.stack([np.interp(share, places, table[:, i]) for i in range(3)], axis=-1).round().astype(np.uint8)


def coloring(panel: Panel, color_by: str, arch: Arch) -> Coloring:
    """The colours of a panel. color_by: one of COLOR_BY.

    Raises ArgumentError for what a panel has not got, ArchError where the banks of `arch` are not known.
    """
    if color_by == "offset":
        offsets = panel.grid.offsets.astype(float)
        return Coloring(offsets, offsets.min(), max(offsets.max(), offsets.min() + 1), _cividis(), True, "")
    if color_by == "bank":
        banks = panel.banks(arch).astype(float)
        note = f"coloured by LDS bank: {arch.lds_banks} banks of {arch.name}, elements of {panel.element_bits} bits"
        return Coloring(banks, 0, (arch.lds_banks or 0) - 1, _cividis(), True, note)
    if color_by not in COLOR_BY:
        raise ArgumentError(f"cells are not coloured by {color_by!r}", hint=f"one of {', '.join(COLOR_BY)}")
    if panel.layout_tv is None:
        raise ArgumentError(
            f"{panel.layout} alone has no {color_by} to colour by",
            hint="give the thread-value layout: layout_figure(layout, layout_tv=...)",
        )
    threads, values = panel.first_holders()
    numbers = threads if color_by == "thread" else values
    count = len(_DISTINCT)
    return Coloring(numbers % count, -0.5, count - 0.5, _DISTINCT, False, f"coloured by {color_by}, modulo {count}")


@cache
def _cividis() -> tuple[str, ...]:
    from plotly.colors import sequential

    return tuple(sequential.Cividis)
