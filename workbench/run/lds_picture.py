"""Pictures of a workgroup's LDS: rows of bytes, or the elements of a view where its layout puts them.

What the last step wrote is underlined on orange, what it read is on blue.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flydsl.compiler.debugging.lds_views import LdsView
from flydsl.errors import FlyError, LayoutError
from flydsl.simulator.arrays import Array
from flydsl.simulator.stepping.description import Standing
from workbench.kit.html import escape, listing, message, title
from workbench.layouts.grid import Grid
from workbench.run.number_formats import bits_of, texts, width_of

BYTES_SHOWN = 1024
_ROW_BYTES = 32
_ROWS, _COLUMNS = 32, 32
_WRITTEN, _READ = "background-color:rgba(213,94,0,0.35)", "background-color:rgba(0,119,182,0.25)"
_CELL = "padding:0 4px;text-align:right;white-space:nowrap"
LEGEND = "The last step wrote what is underlined (on orange), and read what is on blue."


def lds_html(at: Standing, form: str, start: int, view: LdsView | None = None) -> str:
    """LDS as rows of bytes from `start` on, or as a view. start: of a view its first row that is shown."""
    touched = at.lds_touched
    legend = title(escape(LEGEND)) if touched.any() else ""
    if view is None:
        return legend + listing("\n".join(_lines(at.lds, touched, form, start)), wraps=False)
    try:
        return legend + _view_html(at.lds, touched, view, start)
    except FlyError as error:
        return message(str(error))


def _lines(lds: Array, touched: Array, form: str, start: int) -> Iterator[str]:
    start = min(max(start, 0), max(lds.size - 1, 0)) // _ROW_BYTES * _ROW_BYTES
    end = min(start + BYTES_SHOWN, lds.size)
    for row in range(start, end, _ROW_BYTES):
        part = slice(row, min(row + _ROW_BYTES, end))
        yield f"{row:5d}  {' '.join(_marked_values(lds[part], touched[:, part], form))}"
    if start:
        yield f"... {start} bytes before"
    if end < lds.size:
        yield f"... {lds.size - end} more bytes"


def _marked_values(lds: Array, touched: Array, form: str) -> Iterator[str]:
    bits, width = bits_of(form), width_of(form)
    for number, text in enumerate(texts(lds, form)):
        own = np.asarray(touched[:, number * bits // 8 : -(-(number + 1) * bits // 8)].any(axis=1))
        yield _marked(text.rjust(width), read=bool(own[0]), written=bool(own[1]))


def _marked(text: str, *, read: bool, written: bool) -> str:
    if written:
        return f'<span style="{_WRITTEN}"><u>{escape(text)}</u></span>'
    return f'<span style="{_READ}">{escape(text)}</span>' if read else escape(text)


def _view_html(lds: Array, touched: Array, view: LdsView, first_row: int) -> str:
    """A part of the view as a table, by rows and columns of its layout."""
    grid, bits = Grid.of(view.layout), bits_of(view.element)
    places = grid.offsets * bits + 8 * (view.start or 0)  # in bits
    if int(places.max()) + bits > 8 * lds.size:
        raise LayoutError(
            f"{view.layout} of {view.element} from byte {view.start or 0} on goes beyond the {lds.size} bytes of LDS"
        )
    marks: Array = touched[:, places // 8]
    row, column = _window(marks, first_row)
    rows, columns = slice(row, row + _ROWS), slice(column, column + _COLUMNS)
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in ("", *grid.column_names[columns]))
    values = texts(lds, view.element)
    body = (
        f'<tr><th style="{_CELL}">{escape(grid.row_names[r])}</th>'
        + "".join(
            _cell(values[place // bits] if place % bits == 0 else "", marks[:, r, c], place)
            for c, place in enumerate(places[r, columns].tolist(), column)
        )
        + "</tr>"
        for r in range(*rows.indices(grid.height))
    )
    style = "border-collapse:collapse;margin:4px 0;font-family:monospace"
    table = f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    shown = f"rows {row} to {min(row + _ROWS, grid.height) - 1} of {grid.height}"
    shown += f", columns {column} to {min(column + _COLUMNS, grid.width) - 1} of {grid.width}"
    return f'{title(escape(f"{view.name}; {shown}"))}<div style="overflow:auto;max-height:30em">{table}</div>'


def _window(marks: Array, first_row: int) -> tuple[int, int]:
    """The first row and column to show: from where the last step wrote, or read, if that is not in the first part."""
    first_row = min(max(first_row, 0), max(marks.shape[1] - _ROWS, 0))
    read, written = marks
    for mark in (written, read):
        if mark.any() and not mark[first_row : first_row + _ROWS, :_COLUMNS].any():
            row, column = (int(place) for place in np.argwhere(mark)[0])
            return row // _ROWS * _ROWS, column // _COLUMNS * _COLUMNS
    return first_row, 0


def _cell(text: str, marks: Array, place: int) -> str:
    read, written = bool(marks[0]), bool(marks[1])
    style = _WRITTEN if written else _READ if read else ""
    content = f"<u>{escape(text)}</u>" if written else escape(text)
    return f'<td title="byte {place // 8}" style="{_CELL}{style and f";{style}"}">{content}</td>'
