"""What the live layout views have in common: a figure that is redrawn in place, and messages under controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
from plotly import graph_objects as go

from workbench.html import escape
from workbench.slider import Slider

_WIDE = {"description_width": "initial"}
_STYLE = "max-width:60em;white-space:pre-wrap;border-left:4px solid #d55e00;padding:2px 8px"


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


def dropdown(description: str, options: Sequence[Any], value: Any) -> widgets.Dropdown:
    """A choice."""
    layout = widgets.Layout(width="auto")
    return widgets.Dropdown(description=description, options=options, value=value, style=_WIDE, layout=layout)


def slider(description: str, low: int, high: int, value: int) -> Slider:
    """A number between two others."""
    return Slider(description=description, min=low, max=high, value=value)


class Field(widgets.VBox):
    """A text field, with what is wrong with its text under it."""

    def __init__(self, description: str, value: str, placeholder: str = "") -> None:
        self.text = widgets.Text(
            description=description, value=value, placeholder=placeholder, continuous_update=False, style=_WIDE
        )
        self.note = Note()
        super().__init__([self.text, self.note])


class Note(widgets.HTML):
    """A place for a message; it takes no room where there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.say("")

    @property
    def message(self) -> str:
        """What it says."""
        return self._message

    def say(self, message: object) -> None:
        """Show a message, as text."""
        self._message = str(message)
        self.value = f'<div role="alert" style="{_STYLE}">{escape(self._message)}</div>' if self._message else ""
        self.layout.display = None if self._message else "none"
