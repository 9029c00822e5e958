"""What a notebook shows and saves of layouts and of what threads hold: a plotly figure, HTML and text."""

from __future__ import annotations

from typing import Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.errors import ArgumentError, LayoutError
from flydsl.layout import ComposedLayout, Layout
from workbench.layouts.view import view_of

# The types that show themselves.
SHOWN: tuple[type, ...] = (Layout, ComposedLayout, atoms.TiledCopy, fx.TiledCopy, fx.ThrCopy, fx.CopyAtom)


def layout_bundle(value: Any) -> dict[str, Any]:
    """A value of one of the types SHOWN, by mime type. One with sizes or threads of run time, or too large, is text."""
    text = repr(value)
    try:
        view = view_of(value)
        figure, html = view.figure(), view.html()
    except (LayoutError, ArgumentError):
        return {"text/plain": text}
    return {
        "application/vnd.plotly.v1+json": figure.to_plotly_json(),
        "text/html": html,
        "text/plain": "\n".join(filter(None, [text, view.text()])),
    }
