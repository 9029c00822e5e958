"""A heat map of a sweep: two parameters, and the smallest time (or another number) of the rows in each field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from flydsl.sweeps import Row, Table
from flydsl.sweeps.row import cell_text
from workbench.kit.html import PAPER, svg_image
from workbench.kit.kinds import require
from workbench.kit.plot_theme import AXIS, PLOT, ink
from workbench.sweeps.choice import distinct, two_parameters
from workbench.sweeps.rows import checked, label

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_CELL_WIDTH, _CELL_HEIGHT, _LEFT, _TOP, _BOTTOM = 92, 34, 110, 44, 48
_MOST_FIELDS = 40
_TEXT = "#222222"
_ON_A_FIELD = ' fill="#212121"'  # stays dark on a dark page: fields are light on any
# From the largest number to the smallest, all light enough for dark text.
_PALE, _STRONG = (255, 255, 255), (86, 180, 233)


@dataclass(frozen=True)
class Field:
    """A field of the map. row: with the smallest number there, None if no row of the field has one."""

    row: Row | None
    number: float | None
    text: str


@dataclass(frozen=True)
class HeatMap:
    """The content of the picture. fields: by the number of the column and of the row."""

    title: str
    x_name: str
    y_name: str
    xs: list[Any]
    ys: list[Any]
    fields: dict[tuple[int, int], Field]

    @property
    def numbers(self) -> list[float]:
        """All numbers of the fields."""
        return [field.number for field in self.fields.values() if field.number is not None]

    def heat(self, number: float) -> float:
        """0 for the largest number to 1 for the smallest, by their logarithms if they are positive."""
        low, high = min(self.numbers), max(self.numbers)
        if low == high:
            return 1.0
        if low > 0:
            low, high, number = math.log(low), math.log(high), math.log(number)
        return (high - number) / (high - low)


def heat_map(
    rows: Table, x: str | None = None, y: str | None = None, value: str | None = None, where: Mapping[str, Any] = {}
) -> HeatMap:
    """The content of the heat map. See `heat_map_figure`."""
    x, y = two_parameters(rows, x, y)
    value = value or rows.measure
    checked(rows, x, y, value, *where)
    chosen = [row for row in rows if all(row[name] == wanted for name, wanted in where.items())]
    xs, ys = distinct(chosen, x)[:_MOST_FIELDS], distinct(chosen, y)[:_MOST_FIELDS]
    fields = {
        (i, j): _field([row for row in chosen if row[x] == at_x and row[y] == at_y], value)
        for i, at_x in enumerate(xs)
        for j, at_y in enumerate(ys)
    }
    of = "".join(f", {name}={cell_text(wanted)}" for name, wanted in where.items())
    others = [name for name in rows.parameters if name not in (x, y, *where)]
    best = f", the smallest over {', '.join(others)}" if others else ""
    return HeatMap(f"{value}{of}{best}", x, y, xs, ys, fields)


def _field(rows: list[Row], value: str) -> Field:
    found = [row for row in rows if row.error is None and isinstance(row[value], int | float)]
    if not found:
        return Field(None, None, "error" if any(row.error for row in rows) else "")
    best = min(found, key=lambda row: row[value])
    return Field(best, float(best[value]), best.text(value))


def heat_map_figure(
    table: Table, x: str | None = None, y: str | None = None, value: str | None = None, **where: Any
) -> Figure:
    """The times of a sweep (or another column) over two of its parameters, as a plotly figure.

    x, y: by default the first two parameters with several values. where: values of other columns, such as n=4096.
    Where several rows fall into a field, the smallest number counts.

    Raises ArgumentError for what is no table, and for names that no row has.
    """
    from workbench.kit.notebook import graph_objects as go
    from workbench.kit.picture import Picture

    require("heat_map_figure", table, Table, "the table that flydsl.sweep returns")
    drawn = heat_map(table, x, y, value, where)
    at = [[drawn.fields[i, j] for i in range(len(drawn.xs))] for j in range(len(drawn.ys))]
    figure = go.Figure(
        go.Heatmap(
            x=[escape(cell_text(value)) for value in drawn.xs],
            y=[escape(cell_text(value)) for value in drawn.ys],
            z=[[None if f.number is None else drawn.heat(f.number) for f in line] for line in at],
            text=[[escape(f.text) for f in line] for line in at],
            customdata=[[escape(label(f.row)) if f.row is not None else escape(f.text) for f in line] for line in at],
            texttemplate="%{text}",
            textfont={"color": _TEXT},
            hovertemplate="%{customdata}: %{text}<extra></extra>",
            colorscale=[[0, _rgb(0.0)], [1, _rgb(1.0)]],
            zmin=0,
            zmax=1,
            showscale=False,
        )
    )
    figure.update_xaxes(type="category", title=ink(escape(drawn.x_name)), **AXIS)
    figure.update_yaxes(type="category", title=ink(escape(drawn.y_name)), autorange="reversed", **AXIS)
    figure.update_layout(
        title=ink(escape(drawn.title)),
        height=140 + _CELL_HEIGHT * max(len(drawn.ys), 3),
        margin={"l": 70, "r": 20, "t": 50, "b": 50},
        **PLOT,
    )
    return Picture(figure, heat_map_image(drawn), _says(drawn))


def heat_map_image(drawn: HeatMap) -> str:
    """The heat map as an `<img>` that needs no script."""
    return svg_image(_svg(drawn), _says(drawn))


def _svg(drawn: HeatMap) -> str:
    width = _LEFT + _CELL_WIDTH * len(drawn.xs) + 12
    height = _TOP + _CELL_HEIGHT * len(drawn.ys) + _BOTTOM
    smallest = min(drawn.numbers, default=None)
    parts = [f'<rect width="{width}" height="{height}" fill="{PAPER}"/>']
    parts.append(f'<text x="12" y="20" font-weight="bold">{escape(drawn.title)}</text>')
    best_last = sorted(
        drawn.fields.items(), key=lambda item: item[1].number == smallest
    )  # or its frame is painted over
    for (i, j), field in best_last:
        x, y = _LEFT + i * _CELL_WIDTH, _TOP + j * _CELL_HEIGHT
        fill = PAPER if field.number is None else _rgb(drawn.heat(field.number))
        is_best = field.number is not None and field.number == smallest
        line = 'stroke="#222222" stroke-width="2.5"' if is_best else 'stroke="#bbbbbb"'
        parts.append(f'<rect x="{x}" y="{y}" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}" fill="{fill}" {line}/>')
        dark = "" if field.number is None else _ON_A_FIELD
        parts.append(_centred(x + _CELL_WIDTH / 2, y + _CELL_HEIGHT / 2 + 4, field.text, dark))
    for i, value in enumerate(drawn.xs):
        at = _LEFT + (i + 0.5) * _CELL_WIDTH
        parts.append(_centred(at, height - _BOTTOM + 18, cell_text(value)))
    for j, value in enumerate(drawn.ys):
        at = _TOP + (j + 0.5) * _CELL_HEIGHT + 4
        parts.append(f'<text x="{_LEFT - 8}" y="{at}" text-anchor="end">{escape(cell_text(value))}</text>')
    parts.append(_centred((_LEFT + width) / 2, height - 10, drawn.x_name))
    parts.append(f'<text x="12" y="{_TOP - 8}">{escape(drawn.y_name)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{_TEXT}">{"".join(parts)}</svg>'
    )


def _centred(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle"{attributes}>{escape(text)}</text>'


def _rgb(heat: float) -> str:
    mixed = (round(pale + heat * (strong - pale)) for pale, strong in zip(_PALE, _STRONG, strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def _says(drawn: HeatMap) -> str:
    """The picture in words."""
    fields = "; ".join(
        f"{drawn.x_name}={cell_text(drawn.xs[i])}, {drawn.y_name}={cell_text(drawn.ys[j])}: {field.text or 'no row'}"
        for (i, j), field in drawn.fields.items()
    )
    return f"{drawn.title}: {fields}"
