"""The layout view: a grid of coordinates with the offset that each maps to.

Rows are the first mode, columns the others (folded into one, first fastest); a layout of rank 1 is one row. Lines mark
the tiles of nested modes. The figure is plotly's; beside it stands a plain HTML table, for where no plotly is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flydsl.errors import LayoutError
from flydsl.layout import ComposedLayout, Layout, depth, get_shape, idx2crd, make_layout, size
from workbench.html import escape

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MAX_CELLS = 512 * 512
_MAX_LABELLED_CELLS = 32 * 32
_MAX_TABLE_CELLS = 16 * 32
_CELL_PX = 34
_MAX_WIDTH_PX = 1000
_BORDER = "#d55e00"


@dataclass(frozen=True)
class Grid:
    """A layout spread over two axes.

    rows, columns: the shape along each axis. offsets: per row, the offset of each column.
    """

    rows: Any
    columns: Any
    offsets: list[list[int]]

    def coordinate(self, row: int, column: int) -> str:
        """The nested coordinate of a cell, in the notation of the DSL."""
        parts = [_coordinate(i, shape) for i, shape in ((row, self.rows), (column, self.columns)) if shape is not None]
        return f"({','.join(parts)})" if len(parts) > 1 else parts[0]


def layout_grid(layout: Layout | ComposedLayout) -> Grid:
    """Spread a layout over rows and columns. Raises LayoutError for dynamic and for very large layouts."""
    shape = get_shape(layout)
    rows, columns = _axes(shape)
    count = _static(size(layout), layout)
    if count > _MAX_CELLS:
        raise LayoutError(f"{layout} has {count} cells; at most {_MAX_CELLS} are drawn", hint="draw a slice of it")
    height = 1 if rows is None else _static(size(make_layout(rows)), layout)
    offsets = [layout(i) for i in range(count)]
    if any(not isinstance(offset, int) for offset in offsets):
        raise LayoutError(f"{layout} does not map to plain offsets")
    return Grid(rows, columns, [offsets[row::height] for row in range(height)])


def _static(number: Any, layout: Layout | ComposedLayout) -> int:
    if not isinstance(number, int):
        raise LayoutError(f"{layout} has sizes known at run time only", hint="draw a layout of numbers")
    return number


def _axes(shape: Any) -> tuple[Any, Any]:
    """The shapes of rows and columns; no rows for rank 1."""
    if not isinstance(shape, tuple) or len(shape) == 1:
        return None, shape[0] if isinstance(shape, tuple) else shape
    return shape[0], shape[1] if len(shape) == 2 else tuple(shape[1:])


def _coordinate(index: int, shape: Any) -> str:
    return str(idx2crd(index, make_layout(shape)))


def layout_figure(layout: Layout | ComposedLayout, *, title: str | None = None) -> Figure:
    """A layout as a plotly figure: offsets in the cells, coordinates on hover, nesting as lines."""
    from plotly import graph_objects as go

    grid = layout_grid(layout)
    height, width = len(grid.offsets), len(grid.offsets[0])
    labelled = height * width <= _MAX_LABELLED_CELLS
    hover = [[grid.coordinate(row, column) for column in range(width)] for row in range(height)]
    cells = go.Heatmap(
        z=grid.offsets,
        customdata=hover,
        text=grid.offsets if labelled else None,
        texttemplate="%{text}" if labelled else None,
        hovertemplate="%{customdata} → %{z}<extra></extra>",
        colorscale="Cividis",
        showscale=False,
        xgap=1 if labelled else 0,
        ygap=1 if labelled else 0,
    )
    figure = go.Figure([cells, _tile_lines(grid, height, width)])
    scale = min(_CELL_PX, _MAX_WIDTH_PX / width)
    figure.update_layout(
        title=str(layout) if title is None else title,
        width=int(width * scale) + 120,
        height=int(height * scale) + 130,
        margin={"l": 50, "r": 20, "t": 60, "b": 40},
        showlegend=False,
        # No background of its own, and a grey that reads on light and dark pages.
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#7f7f7f"},
    )
    figure.update_yaxes(range=[height - 0.5, -0.5], showgrid=False, zeroline=False, dtick=_tick(height))
    figure.update_xaxes(range=[-0.5, width - 0.5], side="top", showgrid=False, zeroline=False, dtick=_tick(width))
    return figure


def _tick(cells: int) -> int:
    return 1 if cells <= 32 else cells // 16


def _tile_lines(grid: Grid, height: int, width: int) -> Any:
    """The borders of nested tiles as one trace; the gaps in it separate the lines."""
    from plotly import graph_objects as go

    xs: list[float | None] = []
    ys: list[float | None] = []
    for y in _borders(grid.rows, height):
        xs += [-0.5, width - 0.5, None]
        ys += [y - 0.5, y - 0.5, None]
    for x in _borders(grid.columns, width):
        xs += [x - 0.5, x - 0.5, None]
        ys += [-0.5, height - 0.5, None]
    return go.Scatter(x=xs, y=ys, mode="lines", line={"color": _BORDER, "width": 2}, hoverinfo="skip")


def _borders(shape: Any, cells: int) -> Iterator[int]:
    """Where an axis of a nested shape has a tile border: at multiples of its first mode's size."""
    if shape is None or depth(shape) == 0:
        return
    tile = size(make_layout(shape[0]))
    if isinstance(tile, int):
        yield from range(tile, cells, tile)


def layout_html(layout: Layout | ComposedLayout) -> str:
    """A layout as a plain table: offsets, shaded by size, with lines at tile borders; a large one as its text."""
    grid = layout_grid(layout)
    title = f"<code>{escape(str(layout))}</code>"
    height, width = len(grid.offsets), len(grid.offsets[0])
    if height * width > _MAX_TABLE_CELLS:
        return f"<div>{title}</div>"
    above, left = set(_borders(grid.rows, height)), set(_borders(grid.columns, width))
    largest = max(max(row) for row in grid.offsets) or 1
    rows = "".join(
        f"<tr>{''.join(_cell(offset / largest, offset, r in above, c in left) for c, offset in enumerate(row))}</tr>"
        for r, row in enumerate(grid.offsets)
    )
    return f'<div>{title}<table style="border-collapse:collapse"><tbody>{rows}</tbody></table></div>'


def _cell(shade: float, offset: int, is_tile_top: bool, is_tile_left: bool) -> str:
    borders = [side for side, is_border in (("top", is_tile_top), ("left", is_tile_left)) if is_border]
    lines = "".join(f";border-{side}:2px solid {_BORDER}" for side in borders)
    return (
        f'<td style="text-align:right;padding:2px 8px;background-color:rgba(0,114,178,{0.05 + 0.4 * max(shade, 0):.2f})'
        f'{lines}">{offset}</td>'
    )


def layout_bundle(layout: Layout | ComposedLayout) -> dict[str, Any]:
    """What a notebook shows and saves: the figure, the table and the text. Layouts that cannot be drawn are text."""
    try:
        figure = layout_figure(layout)
    except LayoutError:
        return {"text/plain": str(layout)}
    return {
        "application/vnd.plotly.v1+json": figure.to_plotly_json(),
        "text/html": layout_html(layout),
        "text/plain": str(layout),
    }
