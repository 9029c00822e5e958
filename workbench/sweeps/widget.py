"""A sweep with controls: what to compare, over which parameters, and which rows."""

from __future__ import annotations

from typing import Any

from flydsl.sweeps import Table
from flydsl.sweeps.row import cell_text
from workbench.kit.controls import dropdown
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.sweeps.choice import distinct
from workbench.sweeps.heat_map import heat_map, heat_map_image
from workbench.sweeps.rows import rows_html, sweep_html, sweep_text

_ANY = "any: the smallest"


class SweepExplorer(LiveView):
    """A heat map over two parameters, where there are two, and the table, smallest numbers first."""

    def __init__(self, rows: Table) -> None:
        self._rows = rows
        numbers = [n for n in rows.columns if any(isinstance(row.values.get(n), int | float) for row in rows)]
        measure = rows.measure if rows.measure in numbers else next(iter(numbers), None)
        self._value = dropdown("Compare", numbers, measure)
        names = [*rows.parameters, *(n for n in ("launcher", "arch") if len({row[n] for row in rows}) > 1)]
        self._has_map = len(names) > 1 and bool(numbers)
        self._x, self._y = (dropdown(d, names, names[i] if self._has_map else None) for i, d in enumerate("xy"))
        self._where = {name: self._choice(name) for name in names}
        self._map, self._table = HtmlPart(), HtmlPart()
        for control in (self._value, self._x, self._y, *self._where.values()):
            control.observe(self._show, names="value")
        self._show()
        axes = [self._x, self._y] if self._has_map else []
        controls = [self._value, *axes, *self._where.values()]
        row = widgets.Box(controls, layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([row, self._map, self._table])

    def _choice(self, name: str) -> Any:
        # Options are tuples: a value of None would show the dropdown as empty.
        options = [(_ANY, ()), *((cell_text(v), (v,)) for v in distinct(list(self._rows), name))]
        return dropdown(name, options, ())

    def _show(self, _change: Any = None) -> None:
        where = {name: control.value[0] for name, control in self._where.items() if control.value}
        value = self._value.value
        chosen = [row for row in self._rows if all(row[name] == wanted for name, wanted in where.items())]
        ordered = sorted(chosen, key=lambda row: (row.error is not None, row[value] is None, row[value] or 0))
        self._table.show(rows_html(Table(ordered, len(ordered))))
        if self._has_map and chosen and self._x.value != self._y.value:
            self._map.show(heat_map_image(heat_map(self._rows, self._x.value, self._y.value, value, where)))
        else:
            self._map.show("")

    def static_html(self) -> str:
        """The content for a page without widgets."""
        return sweep_html(self._rows)

    def static_text(self) -> str:
        """The text for a terminal."""
        return sweep_text(self._rows)
