"""Finding controls and text inside widgets."""

from __future__ import annotations

import ipywidgets


def control(widget, description: str):
    """The control with a description, somewhere inside."""
    if getattr(widget, "description", None) == description:
        return widget
    found = (control(child, description) for child in getattr(widget, "children", ()))
    return next((child for child in found if child is not None), None)


def text(widget, read) -> str:
    """The text that is shown."""
    own = read(widget.value).text if isinstance(widget, ipywidgets.HTML) else ""
    return own + "".join(text(child, read) for child in getattr(widget, "children", ()))
