"""A plotly figure that is redrawn in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.kit.notebook import graph_objects as go


class LiveFigure:
    """A figure that is redrawn in place. drawing: what `panels_data` gives."""

    def __init__(self, drawing: dict[str, Any]) -> None:
        self.widget = go.FigureWidget(drawing)
        self.widget.layout.template = go.layout.Template()
        self.widget._config = {"displaylogo": False}  # a link to another site, without a name
        self._drawing = drawing

    def redraw(self, drawing: dict[str, Any]) -> None:
        """Show another drawing of as many panels. Only what differs is sent to the page."""
        shown, self._drawing = self._drawing, drawing
        with self.widget.batch_update():
            for trace, old, new in zip(self.widget.data, shown["data"], drawing["data"], strict=True):
                trace.update(_changes(old, new))
            self.widget.update_layout(_changes(shown["layout"], drawing["layout"]))


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The entries of `new` that are not the same in `old`."""
    return {name: value for name, value in new.items() if not _same(old[name], value)}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
