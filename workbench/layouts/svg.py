"""Panels as one SVG picture, to download: cells with their labels, borders of tiles, lit cells outlined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from flydsl.arch import DEFAULT_ARCH, Arch
from workbench.kit.html import INK, PAPER, escape
from workbench.layouts.coloring import LABEL, coloring, labels
from workbench.layouts.grid import Numbers
from workbench.layouts.outline import outline
from workbench.layouts.panel import Panel

_CELL, _LABEL_SIZE = 26, 9
_MAX_LABELLED_CELLS = 64 * 64
_LEFT, _GAP, _LINE = 46, 30, 16
_BORDER = "#d55e00"


def panels_svg(
    panels: Sequence[Panel],
    title: str,
    *,
    color_by: str,
    arch: Arch = DEFAULT_ARCH,
    lit: Sequence[Numbers | None] | None = None,
) -> str:
    """The text of the picture, panels below each other. The arguments are those of `panels_figure`."""
    shades = [coloring(panel, color_by, arch) for panel in panels]
    notes = [note for note in dict.fromkeys(shade.note for shade in shades) if note]
    parts = [f'<text x="8" y="20" font-size="13" font-weight="bold">{escape(title)}</text>']
    parts += [f'<text x="8" y="{20 + _LINE * (i + 1)}">{escape(note)}</text>' for i, note in enumerate(notes)]
    top = 24 + _LINE * len(notes)
    for panel, light in zip(panels, lit or [None] * len(panels), strict=True):
        parts += _panel(panel, color_by, arch, light, top + _GAP)
        top += _GAP + _LINE + panel.grid.height * _CELL
    width = max(_LEFT + _CELL * panel.grid.width + 12 for panel in panels)
    width, height = max(width, 16 + 8 * len(title)), top + 12
    style = f'width="{width}" height="{height}" font-family="sans-serif" font-size="11" fill="{INK}"'
    paper = f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {style}>{paper}{"".join(parts)}</svg>'


def _panel(panel: Panel, color_by: str, arch: Arch, light: Numbers | None, top: int) -> Iterator[str]:
    grid = panel.grid
    first_row = top + _LINE
    if panel.name:
        yield f'<text x="{_LEFT}" y="{top - 14}" font-weight="bold">{escape(panel.name)}</text>'
    middle = _CELL / 2
    for column, name in enumerate(grid.column_names):
        yield f'<text x="{_LEFT + column * _CELL + middle}" y="{top + 10}" {_MIDDLE}>{escape(name)}</text>'
    for row, name in enumerate(grid.row_names):
        y = first_row + row * _CELL + middle + 4
        yield f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end">{escape(name)}</text>'
    yield f'<g transform="translate({_LEFT} {first_row})">{"".join(_cells(panel, color_by, arch))}'
    for is_outer, wide in ((False, 1.5), (True, 3)):
        yield f'<path d="{_borders(panel, is_outer)}" stroke="{_BORDER}" stroke-width="{wide}"/>'
    if light is not None:
        lines = "".join(f"M{_at(x0)} {_at(y0)}L{_at(x1)} {_at(y1)}" for x0, y0, x1, y1 in outline(light))
        yield f'<path d="{lines}" stroke="{LABEL}" stroke-width="3" stroke-linecap="square"/>'
    yield "</g>"


_MIDDLE = f'text-anchor="middle" font-size="{_LABEL_SIZE}"'


def _cells(panel: Panel, color_by: str, arch: Arch) -> Iterator[str]:
    shade, grid = coloring(panel, color_by, arch), panel.grid
    colors, is_clear = shade.rgb(), np.isnan(shade.numbers)
    texts = labels(panel, color_by, arch) if grid.offsets.size <= _MAX_LABELLED_CELLS else None
    for row in range(grid.height):
        for column in range(grid.width):
            x, y = column * _CELL, row * _CELL
            if not is_clear[row, column]:
                fill = "#" + "".join(f"{part:02x}" for part in colors[row, column].tolist())
                yield f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" fill="{fill}"/>'
            if texts is not None:
                yield _label(texts[row][column].split("<br>"), x + _CELL / 2, y + _CELL / 2)


def _label(lines: Sequence[str], x: float, y: float) -> str:
    size = min(_LABEL_SIZE, 20 // len(lines))
    first = y + size * 0.35 - (len(lines) - 1) * size / 2
    rows = (f'<text x="{x}" y="{first + i * size:g}">{escape(line)}</text>' for i, line in enumerate(lines))
    return f'<g text-anchor="middle" font-size="{size}" fill="{LABEL}">{"".join(rows)}</g>'


def _borders(panel: Panel, is_outer: bool) -> str:
    borders, grid = panel.grid.borders(), panel.grid
    return "".join(
        [
            *(f"M0 {y * _CELL}H{grid.width * _CELL}" for y in _of(borders.rows, is_outer)),
            *(f"M{x * _CELL} 0V{grid.height * _CELL}" for x in _of(borders.columns, is_outer)),
        ]
    )


def _of(places: dict[int, bool], is_outer: bool) -> Iterable[int]:
    return (at for at, outer in places.items() if outer == is_outer)


def _at(edge: float) -> float:
    """The position of an edge, as `outline` counts it."""
    return (edge + 0.5) * _CELL
