"""The Pareto front of a sweep: small times against many waves; the rows that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from flydsl.sweeps import Row, Table
from workbench.kit.html import PAPER, svg_image
from workbench.kit.kinds import require
from workbench.kit.plot_theme import AXIS, LINE, PLOT, POINT, ink
from workbench.sweeps.rows import checked, label

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 300, 60, 24, 44, 46
_LINE_HEIGHT = 16
_TEXT, _OTHER, _FRONT, _GRID = "#222222", "#0077b6", "#b34700", "#cccccc"
_MOST_NAMED = 9


@dataclass(frozen=True)
class Front:
    """The content of the picture. others: rows that another one beats."""

    small: str
    large: str
    front: list[Row]
    others: list[Row]

    @property
    def title(self) -> str:
        """The heading."""
        return f"{self.small} against {self.large}: {len(self.front)} of {len(self.front) + len(self.others)} rows"

    def point(self, row: Row) -> tuple[float, float]:
        """The coordinates of a row."""
        return float(row[self.small]), float(row[self.large])


def pareto(rows: Table, small: str | None = None, large: str = "waves_per_simd") -> Front:
    """The content of the picture. See `pareto_figure`."""
    small = small or rows.measure
    checked(rows, small, large)
    front = rows.pareto(small, large)
    numbers = [row for row in rows.where() if all(isinstance(row[name], int | float) for name in (small, large))]
    kept = {id(row) for row in front}
    return Front(small, large, front, [row for row in numbers if id(row) not in kept])


def pareto_figure(table: Table, small: str | None = None, large: str = "waves_per_simd") -> Figure:
    """The rows of a sweep by time and waves per SIMD, and the front that no other row beats in both; for plotly.

    small, large: other columns, in which small or large numbers are good. Raises ArgumentError for what is no table,
    and for names that no row has.
    """
    from workbench.kit.notebook import graph_objects as go
    from workbench.kit.picture import Picture

    require("pareto_figure", table, Table, "the table that flydsl.sweep returns")
    drawn = pareto(table, small, large)
    figure = go.Figure()
    for name, chosen, mode, color, symbol in (
        ("beaten in both", drawn.others, "markers", LINE, "circle"),
        ("the front", drawn.front, "lines+markers", POINT, "diamond"),
    ):
        xs, ys = zip(*map(drawn.point, chosen), strict=True) if chosen else ((), ())
        figure.add_trace(
            go.Scatter(
                x=list(xs),
                y=list(ys),
                mode=mode,
                name=ink(name),
                text=[escape(label(row)) for row in chosen],
                hovertemplate=f"%{{text}}<br>{escape(drawn.small)} %{{x}}, {escape(drawn.large)} %{{y}}<extra></extra>",
                line={"shape": "hv", "color": color},
                marker={"color": color, "size": 9, "symbol": symbol},
            )
        )
    figure.update_xaxes(title=ink(escape(drawn.small)), **AXIS)
    figure.update_yaxes(title=ink(escape(drawn.large)), rangemode="tozero", **AXIS)
    figure.update_layout(
        title=ink(escape(drawn.title)),
        height=400,
        margin={"l": 70, "r": 20, "t": 60, "b": 50},
        legend={"orientation": "h", "y": -0.2},
        **PLOT,
    )
    return Picture(figure, svg_image(_svg(drawn), _says(drawn)), _says(drawn))


@dataclass(frozen=True)
class _Axes:
    """Coordinates of the picture, from 0 to the largest number of each axis."""

    x_most: float
    y_most: float

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + point[0] / self.x_most * (_WIDTH - _LEFT - _RIGHT)
        y = _HEIGHT - _BOTTOM - point[1] / self.y_most * (_HEIGHT - _TOP - _BOTTOM)
        return round(x, 1), round(y, 1)


def _svg(drawn: Front) -> str:
    named = drawn.front[:_MOST_NAMED]
    height = _HEIGHT + 8 + _LINE_HEIGHT * len(named)
    points = [drawn.point(row) for row in (*drawn.front, *drawn.others)]
    axes = _Axes(*(_round_up(max((point[i] for point in points), default=1.0)) for i in (0, 1)))
    below = [
        f'<text x="{_LEFT}" y="{_HEIGHT + 8 + _LINE_HEIGHT * i}">{i + 1}: {escape(_named(drawn, row))}</text>'
        for i, row in enumerate(named)
    ]
    content = "".join([*_grid(drawn, axes), *_rows(drawn, axes), *below])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="12" fill="{_TEXT}"><rect width="{_WIDTH}" height="{height}" fill="{PAPER}"/>{content}</svg>'
    )


def _grid(drawn: Front, axes: _Axes) -> Iterator[str]:
    """Heading, lines and names of the axes."""
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    yield f'<text x="12" y="20" font-weight="bold">{escape(drawn.title)}</text>'
    for part in (0, 0.25, 0.5, 0.75, 1):
        x, y = axes.at((axes.x_most * part, axes.y_most * part))
        yield f'<path d="M{x} {_TOP}V{bottom}M{_LEFT} {y}H{right}" stroke="{_GRID}" fill="none"/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{axes.x_most * part:.4g}</text>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{axes.y_most * part:.3g}</text>'
    yield f'<text x="{(_LEFT + right) / 2}" y="{bottom + 34}" text-anchor="middle">{escape(drawn.small)}</text>'
    yield f'<text x="12" y="{_TOP - 8}">{escape(drawn.large)}</text>'


def _rows(drawn: Front, axes: _Axes) -> Iterator[str]:
    """A point for each row, the front's joined and numbered."""
    for x, y in (axes.at(drawn.point(row)) for row in drawn.others):
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="{_OTHER}" fill-opacity="0.6"/>'
    steps = [axes.at(drawn.point(row)) for row in drawn.front]
    if steps:
        line = "".join(f"H{x}V{y}" for x, y in steps[1:])
        yield f'<path d="M{steps[0][0]} {steps[0][1]}{line}" stroke="{_FRONT}" stroke-width="2" fill="none"/>'
    for i, (x, y) in enumerate(steps):
        yield f'<path d="M{x} {y - 7}l7 7l-7 7l-7 -7z" fill="{_FRONT}" stroke="{PAPER}"/>'
        if i < _MOST_NAMED:
            yield f'<text x="{x + 9}" y="{y - 6}">{i + 1}</text>'


def _round_up(value: float) -> float:
    """The next number with at most two digits that divides into four."""
    if value <= 0:
        return 1.0
    unit = 10 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 4, 6, 8, 10, 20) if step * unit >= value)


def _named(drawn: Front, row: Row) -> str:
    small, large = row.text(drawn.small), row.text(drawn.large)
    return f"{label(row)}: {drawn.small} {small}, {drawn.large} {large}"


def _says(drawn: Front) -> str:
    """The picture in words."""
    return "; ".join([drawn.title, *(_named(drawn, row) for row in drawn.front[:_MOST_NAMED])])
