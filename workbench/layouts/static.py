"""Panels without plotly and without JavaScript: a table of the cells where they are few, else a picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flydsl.arch import DEFAULT_ARCH, Arch
from workbench.kit.html import FAINT, code, escape, title
from workbench.kit.png import png_address
from workbench.layouts.coloring import Coloring, coloring, labels
from workbench.layouts.grid import Borders, Numbers
from workbench.layouts.panel import Panel

_MAX_TABLE_CELLS = 16 * 32
_PICTURE_PX = 384
_BORDER = "#d55e00"
_NO_BREAK = "\u00a0"
_OPACITY = 0.45  # lets the page through, so that its own ink reads on the cells of light and dark pages


def panels_html(
    panels: Sequence[Panel],
    heading: str,
    *,
    color_by: str,
    arch: Arch = DEFAULT_ARCH,
    lit: Sequence[Numbers | None] | None = None,
) -> str:
    """Panels side by side as HTML. heading: text; the rest as for `panels_figure`. Only lit cells have a colour."""
    texts = [_texts(panel, color_by, arch) for panel in panels]
    shades = [
        _only(coloring(panel, color_by, arch), light)
        for panel, light in zip(panels, lit or [None] * len(panels), strict=True)
    ]
    notes = "".join(title(escape(note)) for note in dict.fromkeys(shade.note for shade in shades) if note)
    views = "".join(_view(panel, shade, text) for panel, shade, text in zip(panels, shades, texts, strict=True))
    return f"<div>{title(code(heading))}{notes}{views}</div>"


def _only(shade: Coloring, light: Numbers | None) -> Coloring:
    return shade if light is None else replace(shade, numbers=np.where(light, shade.numbers, np.nan))


def _texts(panel: Panel, color_by: str, arch: Arch) -> list[list[str]]:
    """The texts of the cells of a table: their banks where these are their colours."""
    if color_by != "bank":
        return panel.cell_texts()
    return labels(panel, color_by, arch)


def _view(panel: Panel, shade: Coloring, texts: list[list[str]]) -> str:
    name = title(f"<strong>{escape(panel.name)}</strong>") if panel.name else ""
    content = _table(panel, shade, texts) if panel.grid.offsets.size <= _MAX_TABLE_CELLS else _picture(panel, shade)
    return f'<div style="display:inline-block;vertical-align:top;margin:0 16px 8px 0">{name}{content}</div>'


def panel_text(panel: Panel, light: Numbers | None = None) -> str:
    """A panel as lines of text. light: the cells to show, as booleans; a dot stands for each other one."""
    texts = panel.cell_texts()
    if light is not None:
        texts = [[text if light[r, c] else "." for c, text in enumerate(row)] for r, row in enumerate(texts)]
    width = max(len(text) for row in texts for text in row)
    lines = ["  ".join(text.ljust(width) for text in row).rstrip() for row in texts]
    return "\n".join([panel.name, *lines] if panel.name else lines)


def _table(panel: Panel, shade: Coloring, texts: list[list[str]]) -> str:
    borders, colors = panel.grid.borders(), shade.rgb()
    head = "".join(_name_cell(name) for name in ["", *panel.grid.column_names])
    rows = (
        f"<tr>{_name_cell(panel.grid.row_names[r])}"
        f"{''.join(_cell(text, _fill(shade, colors, r, c), borders, r, c) for c, text in enumerate(row))}</tr>"
        for r, row in enumerate(texts)
    )
    style = "border-collapse:collapse;text-align:right"  # said once: there are many cells
    return f'<table style="{style}"><tbody><tr>{head}</tr>{"".join(rows)}</tbody></table>'


def _name_cell(name: str) -> str:
    return f'<td style="padding:2px 6px;white-space:nowrap;{FAINT}">{name}</td>'


def _fill(shade: Coloring, colors: Numbers, row: int, column: int) -> str:
    if np.isnan(shade.numbers[row, column]):
        return f";{FAINT}"
    red, green, blue = colors[row, column].tolist()
    return f";background-color:rgba({red},{green},{blue},{_OPACITY})"


def _cell(text: str, fill: str, borders: Borders, row: int, column: int) -> str:
    sides = (("top", borders.rows.get(row)), ("left", borders.columns.get(column)))
    lines = "".join(
        f";border-{side}:{3 if outer else 1}px solid {_BORDER}" for side, outer in sides if outer is not None
    )
    return f'<td style="padding:2px 8px{fill}{lines}">{text.replace(" ", _NO_BREAK)}</td>'


def _picture(panel: Panel, shade: Coloring) -> str:
    """One square for each cell; cells without a holder are clear."""
    grid = panel.grid
    opaque = np.where(np.isnan(shade.numbers), 0, 255).astype(np.uint8)
    scale = max(1, _PICTURE_PX // max(grid.width, grid.height))
    # Scaled here: pages smooth what they scale, and a style that forbids it is not let through everywhere.
    pixels = np.dstack([shade.rgb(), opaque]).repeat(scale, axis=0).repeat(scale, axis=1)
    return f'<img alt="{grid.height} by {grid.width} cells" src="{png_address(pixels)}">'
