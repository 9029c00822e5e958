"""The thread explorer: choose a thread, and its values light up in source and destination, or in A, B and C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flydsl.arch import ARCHS, DEFAULT_ARCH, get_arch
from flydsl.errors import ArgumentError
from workbench.kit.controls import dropdown, scrolled, slider
from workbench.kit.download import Download
from workbench.kit.html import escape, table
from workbench.kit.live_view import LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.layouts.coloring import COLOR_BY
from workbench.layouts.figure import TRACES_PER_PANEL, panels_data
from workbench.layouts.live_figure import LiveFigure
from workbench.layouts.panel import Panel
from workbench.layouts.view import View

_MAX_LISTED_VALUES = 64


class ThreadExplorer(LiveView):
    """A view with threads, live.

    The controls are attributes: the checkbox `lights_thread` and the slider `thread`, the choices `color_by` and `arch`
    (whose banks). A click on a cell chooses the thread that holds it. `values` lists what the thread holds.

    Raises ArgumentError for a view without threads.
    """

    def __init__(self, view: View) -> None:
        if not view.threads:
            raise ArgumentError(f"{view.title} has no threads to choose from")
        self.view = view
        self.lights_thread = widgets.Checkbox(description="Light one thread", value=True, indent=False)
        self.thread = slider("Thread", 0, view.threads - 1, view.thread or 0)
        self.color_by = dropdown("Colour by", COLOR_BY, view.color_by)
        known = [arch.name for arch in ARCHS if arch.lds_banks is not None]
        self.arch = dropdown("Banks of", known, DEFAULT_ARCH.name)
        self.values = widgets.HTML()
        self.download = Download(lambda: self.shown.svg(), "threads")
        self._live_figure = LiveFigure(self._figure_data())
        self._list_values()
        controls = (self.lights_thread, self.thread, self.color_by, self.arch)
        row = widgets.Box(controls, layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([row, self.download, scrolled(self.figure), self.values])
        for control in controls:
            control.observe(self._on_change, names="value")
        self.download.observe(self._on_change, names="width")
        for i, panel in enumerate(view.panels):
            self.figure.data[i * TRACES_PER_PANEL].on_click(self._chooser(panel))

    @property
    def chosen(self) -> int | None:
        """The thread that is lit."""
        return self.thread.value if self.lights_thread.value else None

    @property
    def figure(self) -> Any:
        """The plotly figure that is shown: panels beside each other, and below where there is no room."""
        return self._live_figure.widget

    def _on_change(self, change: Any) -> None:
        self._live_figure.redraw(self._figure_data())
        self._list_values()

    @property
    def shown(self) -> View:
        """The view as the controls have it."""
        arch = get_arch(self.arch.value)
        return replace(self.view, color_by=self.color_by.value, thread=self.chosen, arch=arch)

    def _figure_data(self) -> dict[str, Any]:
        view, width = self.shown, self.download.width
        return panels_data(
            view.panels, view.title, color_by=view.color_by, arch=view.arch, lit=view.lit(), width_px=width
        )

    def _list_values(self) -> None:
        parts = [] if self.chosen is None else [values_html(panel, self.chosen) for panel in self.view.panels]
        self.values.value = "".join(parts)

    def _chooser(self, panel: Panel) -> Any:
        """A handler for clicks on a panel: it chooses the first thread that holds the clicked cell."""

        def choose(trace: Any, points: Any, state: Any) -> None:
            for row, column in points.point_inds:
                held = panel.holders[row + panel.grid.height * column]
                if held:
                    self.lights_thread.value = True
                    self.thread.value = held[0][0]

        return choose

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        return f"<div>{self.shown.html()}{self.values.value}</div>"


def values_html(panel: Panel, thread: int) -> str:
    """A table of the elements of a panel that a thread holds, value by value."""
    grid = panel.grid
    places = sorted((v, n) for n, held in enumerate(panel.holders) for t, v in held if t == thread)
    rows = [
        [f"V{value}", escape(grid.coordinate(*reversed(divmod(number, grid.height)))), str(panel.layout(number))]
        for value, number in places[:_MAX_LISTED_VALUES]
    ]
    if len(places) > len(rows):
        rows.append([f"… {len(places) - len(rows)} more", "", ""])
    head = (f"{escape(panel.name)} T{thread}", "coordinate", "offset")
    style = "display:inline-block;vertical-align:top;margin:0 16px 8px 0;max-height:20em;overflow:auto"
    return f'<div style="{style}">{table(head, rows)}</div>'
