"""Layouts as plotly figures: cells with their offsets or holders, lines at tile borders, everything else on hover.

Every panel consists of five traces, in this order: its cells, the borders of inner tiles, those of outermost tiles, and
the outline of the lit cells, white and on it black. The live views replace the data and keep the traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from flydsl.arch import DEFAULT_ARCH, Arch
from workbench.kit.html import escape
from workbench.kit.plot_theme import PLOT, ink
from workbench.layouts.coloring import LABEL, coloring, labels
from workbench.layouts.grid import Numbers
from workbench.layouts.outline import outline
from workbench.layouts.panel import Panel
from workbench.layouts.static import panels_html

if TYPE_CHECKING:
    from workbench.kit.picture import Picture

TRACES_PER_PANEL = 5

_WIDTH_PX = 830  # of a notebook in a window of 1280
_MAX_LABELLED_CELLS = 64 * 64
_CELL_PX = 36
_LEAST_LABELLED_PX = 22
_GAP_PX, _LEFT_PX, _RIGHT_PX, _TOP_PX, _BOTTOM_PX, _LINE_PX = 40, 40, 10, 60, 16, 20
_ROW_GAP_PX = 60  # between panels below each other: the names above the lower one
_CHAR_PX = 6  # of a label along an axis
_TITLE_CHAR_PX = 9  # at most, on the average of a title
_BORDER = "#d55e00"


def panels_figure(
    panels: Sequence[Panel],
    title: str,
    *,
    color_by: str,
    arch: Arch = DEFAULT_ARCH,
    lit: Sequence[Numbers | None] | None = None,
) -> Picture:
    """Panels side by side as a plotly figure. lit: for each panel the cells to light, as booleans; None for all."""
    from workbench.kit.notebook import graph_objects as go
    from workbench.kit.picture import Picture

    static_html = panels_html(panels, title, color_by=color_by, arch=arch, lit=lit)
    figure = Picture(panels_data(panels, title, color_by=color_by, arch=arch, lit=lit), static_html, title)
    figure.layout.template = go.layout.Template()  # everything is said here; the standard one is 7 kB in every output
    return figure


def panels_data(
    panels: Sequence[Panel],
    title: str,
    *,
    color_by: str,
    arch: Arch = DEFAULT_ARCH,
    lit: Sequence[Numbers | None] | None = None,
    is_labelled: bool = False,
    width_px: int = 0,
) -> dict[str, Any]:
    """The figure as plain data: the traces and the layout that plotly builds it from.

    is_labelled: numbers on the cells even where that makes it wider than its place. width_px: of its place; 0 if
    it is not known.
    """
    most_px = (width_px or _WIDTH_PX) - _LEFT_PX - _RIGHT_PX
    titles = wrap(title, max(most_px // _TITLE_CHAR_PX, 20))
    page = _Page.of(panels, is_labelled, most_px, _TITLE_CHAR_PX * max(map(len, titles), default=0))
    lights = lit or [None] * len(panels)
    notes = dict.fromkeys(note for panel in panels if (note := coloring(panel, color_by, arch).note))
    top_px = _TOP_PX + _LINE_PX * (len(titles) - 1 + len(notes) + any(panel.name for panel in panels))
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for i, (panel, light) in enumerate(zip(panels, lights, strict=True)):
        own = {"xaxis": f"x{i + 1}" if i else "x", "yaxis": f"y{i + 1}" if i else "y"}
        for trace in _traces(panel, color_by, arch, page.is_labelled, light):
            traces.append(trace | own)
        axes |= page.axes(i, panel)
    heading = ink(
        "<br>".join([*(f"<b>{escape(line)}</b>" for line in titles), *(f"<sub>{escape(note)}</sub>" for note in notes)])
    )
    layout = {
        "title": {"text": heading, "font": {"size": 14}, "x": 0, "y": 1, "yanchor": "top", "pad": {"t": 10, "l": 10}},
        "width": page.width_px,
        "height": top_px + page.inner_height_px + _BOTTOM_PX,
        "margin": {"l": _LEFT_PX, "r": _RIGHT_PX, "t": top_px, "b": _BOTTOM_PX},
        "showlegend": False,
        **PLOT,
        **axes,
    }
    return {"data": traces, "layout": layout}


@dataclass(frozen=True)
class _Page:
    """The places of panels, with cells of equal size: side by side as far as there is room, then in rows.

    widths, heights: of the panels, in cells. starts: the left and upper corner of each, in pixels. title_px: the width
    of the title.
    """

    widths: tuple[int, ...]
    heights: tuple[int, ...]
    cell_px: float
    is_labelled: bool
    starts: tuple[tuple[float, float], ...]
    title_px: float

    @staticmethod
    def of(panels: Sequence[Panel], is_labelled: bool, most_px: int, title_px: float) -> _Page:
        widths = tuple(panel.grid.width for panel in panels)
        heights = tuple(panel.grid.height for panel in panels)
        least = _LEAST_LABELLED_PX + 2 if is_labelled else 0.0
        cell_px = max(_cell_px(widths, heights, most_px), least)
        cells = sum(w * h for w, h in zip(widths, heights, strict=True))
        has_labels = cell_px >= _LEAST_LABELLED_PX and cells <= _MAX_LABELLED_CELLS
        starts = tuple(_in_rows(widths, heights, cell_px, most_px))
        return _Page(widths, heights, cell_px, has_labels, starts, title_px)

    @property
    def width_px(self) -> int:
        return _LEFT_PX + _RIGHT_PX + round(self._inner_width_px)

    @property
    def inner_height_px(self) -> int:
        return max(1, round(max(y + h * self.cell_px for (_, y), h in zip(self.starts, self.heights, strict=True))))

    @property
    def _inner_width_px(self) -> float:
        # A title needs room too, and so do the notes below it, so a narrow layout leaves some beside it.
        return max(
            300, self.title_px, *(x + w * self.cell_px for (x, _), w in zip(self.starts, self.widths, strict=True))
        )

    def axes(self, index: int, panel: Panel) -> dict[str, Any]:
        """The axes of one panel: coordinates along them, its name above."""
        suffix = str(index + 1) if index else ""
        height, width = self.heights[index], self.widths[index]
        x_px, y_px = self.starts[index]
        rows, columns = panel.grid.row_names, panel.grid.column_names
        bare = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": False}
        x = (
            bare
            | self._ticks(columns, _CHAR_PX * max(map(len, columns)) + 4)
            | {"range": [-0.5, width - 0.5], "side": "top"}
        )
        y = bare | self._ticks(rows, 2 * _CHAR_PX) | {"range": [height - 0.5, -0.5]}
        across = [min(px / self._inner_width_px, 1.0) for px in (x_px, x_px + width * self.cell_px)]
        down = [max(1 - px / self.inner_height_px, 0.0) for px in (y_px + height * self.cell_px, y_px)]
        x |= {"domain": across, "anchor": f"y{suffix}"}
        y |= {"domain": down, "anchor": f"x{suffix}"}
        x["title"] = {"text": ink(f"<b>{escape(panel.name)}</b>" if panel.name else ""), "standoff": 6}
        return {f"xaxis{suffix}": x, f"yaxis{suffix}": y}

    def _ticks(self, names: list[str], room_px: int) -> dict[str, Any]:
        """Coordinates along an axis, in steps of a power of two that leave each of them room_px."""
        step = 1
        while step * self.cell_px < room_px:
            step *= 2
        places = list(range(0, len(names), step))
        return {
            "tickvals": places,
            "ticktext": [ink(names[i]) for i in places],
            "tickfont": {"size": 10},
            "tickangle": 0,
            "ticklabeloverflow": "allow",  # else plotly measures all of them, half of what a redraw takes
        }


def _cell_px(widths: Sequence[int], heights: Sequence[int], most_px: int) -> float:
    """The size of a cell: of several panels as large as it can be without one of them having to go below the others."""
    fitting = min(float(_CELL_PX), most_px / max(widths))
    if len(widths) == 1 or fitting < _LEAST_LABELLED_PX:
        return fitting

    def rows(cell_px: float) -> int:
        return len({y for _, y in _in_rows(widths, heights, cell_px, most_px)})

    sizes = range(int(fitting), _LEAST_LABELLED_PX, -1)
    return next((size for size in sizes if rows(size) == rows(_LEAST_LABELLED_PX)), _LEAST_LABELLED_PX)


def _in_rows(
    widths: Sequence[int], heights: Sequence[int], cell_px: float, most_px: int
) -> Iterable[tuple[float, float]]:
    """The corner of each panel."""
    x = y = tallest = 0.0
    for width, height in zip(widths, heights, strict=True):
        if x and x + width * cell_px > most_px:
            x, y, tallest = 0.0, y + tallest + _ROW_GAP_PX, 0.0
        yield x, y
        x += width * cell_px + _GAP_PX
        tallest = max(tallest, height * cell_px)


def _traces(
    panel: Panel, color_by: str, arch: Arch, is_labelled: bool, light: Numbers | None
) -> Iterable[dict[str, Any]]:
    borders = panel.grid.borders()
    yield _cells(panel, color_by, arch, is_labelled)
    for is_outer in (False, True):
        rows = [at for at, outer in borders.rows.items() if outer == is_outer]
        columns = [at for at, outer in borders.columns.items() if outer == is_outer]
        yield _lines(rows, columns, panel.grid.height, panel.grid.width) | {
            "line": {"color": _BORDER, "width": 3 if is_outer else 1.5}
        }
    yield _outline(light, "#ffffff", 6)
    yield _outline(light, LABEL, 3)


def _cells(panel: Panel, color_by: str, arch: Arch, is_labelled: bool) -> dict[str, Any]:
    shade = coloring(panel, color_by, arch)
    text: Any = panel.grid.offsets.tolist() if is_labelled else None
    has_names = panel.layout_tv is not None and color_by != "bank"
    if is_labelled and (has_names or color_by == "bank" or not panel.has_addresses):
        text = labels(panel, color_by, arch)
    if panel.layout_tv is not None and not panel.has_one_holder_each:
        text = labels(panel, "", arch)  # for the hover
    numbers, hover = _hover(panel, arch)
    gap = 1 if is_labelled else 0
    return {
        "type": "heatmap",
        "z": _compact(shade.codes()),
        "zmin": shade.limits[0],
        "zmax": shade.limits[1],
        "colorscale": shade.scale,
        "showscale": False,
        "customdata": numbers,
        "hovertemplate": hover,
        "text": text,
        "texttemplate": "%{text}" if is_labelled else None,
        "textfont": {"color": LABEL},
        "xgap": gap,
        "ygap": gap,
    }


def _hover(panel: Panel, arch: Arch) -> tuple[Numbers, str]:
    """The numbers of every cell that are shown on hover, and the template that puts them into words."""
    grid = panel.grid
    numbers, lines = panel.facts(arch)
    if panel.has_one_holder_each:  # as numbers: texts would be most of a saved notebook
        lines.append(f"thread %{{customdata[{len(numbers)}]}}, value %{{customdata[{len(numbers) + 1}]}}")
        numbers += [holder.astype(np.int64) for holder in panel.first_holders()]
    elif panel.layout_tv is not None:
        lines.append("held as (thread T, value V) by<br>%{text}")
    first = len(numbers)
    coordinate = grid.coordinate_form(lambda leaf: f"%{{customdata[{first + leaf}]}}")
    leaves = [np.broadcast_to(leaf, grid.offsets.shape) for leaf in grid.coordinate_leaves()]
    template = "<br>".join([f"<b>{escape(panel.name)} {coordinate}</b>", *lines]) + "<extra></extra>"
    return _compact(np.stack([*numbers, *leaves], axis=-1)), template


def _compact(numbers: Numbers) -> Numbers:
    """The numbers in the smallest integer type that holds them: plotly saves arrays as bytes."""
    kinds = (np.uint8, np.int16, np.uint16, np.int32)
    low, high = numbers.min(), numbers.max()
    fitting = (kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(next(fitting, np.float64))  # JavaScript's arrays of numbers have no 64-bit integers


def _lines(rows: Iterable[int], columns: Iterable[int], height: int, width: int) -> dict[str, Any]:
    """Lines across a panel as one trace; the gaps in it separate them."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for y in rows:
        xs += [-0.5, width - 0.5, None]
        ys += [y - 0.5, y - 0.5, None]
    for x in columns:
        xs += [x - 0.5, x - 0.5, None]
        ys += [-0.5, height - 0.5, None]
    return {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "hoverinfo": "skip"}


def _outline(light: Numbers | None, color: str, width: float) -> dict[str, Any]:
    """The outline of the cells that are lit."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for x0, y0, x1, y1 in () if light is None else outline(light):
        xs += [x0, x1, None]
        ys += [y0, y1, None]
    line = {"color": color, "width": width}
    return {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "hoverinfo": "skip", "line": line}
