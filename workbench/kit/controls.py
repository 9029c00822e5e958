"""Controls: choices, sliders, and fields with messages under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.kit.html import escape
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.slider import Slider

_WIDE = {"description_width": "initial"}
_STYLE = "max-width:60em;white-space:pre-wrap;border-left:4px solid #d55e00;padding:2px 8px"


def dropdown(description: str, options: Sequence[Any], value: Any) -> widgets.Dropdown:
    """A choice among options."""
    layout = widgets.Layout(width="auto")
    return widgets.Dropdown(description=description, options=options, value=value, style=_WIDE, layout=layout)


def slider(description: str, low: int, high: int, value: int) -> Slider:
    """A number between two others."""
    return Slider(description=description, min=low, max=high, value=value)


def scrolled(part: widgets.Widget) -> widgets.Box:
    """A part with a scroll bar if it is wider than the view."""
    return widgets.Box([part], layout=widgets.Layout(overflow="auto", width="0", min_width="100%"))


class Field(widgets.VBox):
    """A text field, with a place under it for a message about its text."""

    def __init__(self, description: str, value: str, placeholder: str = "") -> None:
        self.text = widgets.Text(
            description=description, value=value, placeholder=placeholder, continuous_update=False, style=_WIDE
        )
        self.note = Note()
        super().__init__([self.text, self.note])


class Note(widgets.HTML):
    """A place for a message, which takes no room while it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.say("")

    @property
    def message(self) -> str:
        """The present message."""
        return self._message

    def say(self, message: object) -> None:
        """Show a message, as text."""
        self._message = str(message)
        self.value = f'<div role="alert" style="{_STYLE}">{escape(self._message)}</div>' if self._message else ""
        self.layout.display = None if self._message else "none"
