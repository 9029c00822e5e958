"""What the live layout views have in common: a figure that is redrawn in place, and messages under controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
from plotly import graph_objects as go

from workbench.html import escape

_WIDE = {"description_width": "initial"}
_STYLE = "max-width:60em;white-space:pre-wrap;border-left:4px solid #d55e00;padding:2px 8px"


class LiveView(widgets.VBox):
    """Controls above a figure.

    What a notebook saves of it is, besides the reference to the widget, `static_html`: a page that is opened without
    the kernel still shows the picture.
    """

    figure: go.FigureWidget

    def static_html(self) -> str:
        """What it shows now as HTML that needs no JavaScript."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self.static_html(), "text/plain": f"{type(self).__name__}()"}


def new_figure(drawing: dict[str, Any]) -> go.FigureWidget:
    """A live figure of what `panels_data` gives."""
    figure = go.FigureWidget(drawing)
    figure.layout.template = go.layout.Template()
    return figure


def redraw(figure: go.FigureWidget, drawing: dict[str, Any]) -> None:
    """Show another drawing of as many panels."""
    with figure.batch_update():
        for trace, new in zip(figure.data, drawing["data"], strict=True):
            trace.update({name: value for name, value in new.items() if name != "type"})
        figure.update_layout(drawing["layout"])


def dropdown(description: str, options: Sequence[Any], value: Any) -> widgets.Dropdown:
    """A choice."""
    layout = widgets.Layout(width="auto")
    return widgets.Dropdown(description=description, options=options, value=value, style=_WIDE, layout=layout)


def slider(description: str, low: int, high: int, value: int) -> widgets.IntSlider:
    """A number between two others."""
    return widgets.IntSlider(description=description, min=low, max=high, value=value, style=_WIDE)


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
