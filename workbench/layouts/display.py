"""The notebook display of layouts, copies and MMAs: a plotly figure, HTML and text."""

from __future__ import annotations

from typing import Any

from flydsl import atoms
from flydsl import expr as fx
from flydsl.errors import ArgumentError, LayoutError
from flydsl.expr.layouts.coord_tensor import CoordTensor
from flydsl.layout import ComposedLayout, Layout
from workbench.kit.html import code, escape, faint, title
from workbench.layouts.view import view_of

# The types with a display of their own in notebooks.
SHOWN: tuple[type, ...] = (
    *(Layout, ComposedLayout, CoordTensor),
    *(atoms.TiledCopy, fx.TiledCopy, fx.ThrCopy, fx.CopyAtom),
    *(atoms.MmaOp, fx.MmaAtom, atoms.TiledMma, fx.TiledMma, fx.ThrMma),
)


def layout_bundle(value: Any) -> dict[str, Any]:
    """The display of a value of one of the types SHOWN, by MIME type; text and the reason if it cannot be drawn."""
    text = repr(value)
    try:
        return view_of(value).bundle(text)
    except (LayoutError, ArgumentError) as error:
        reason = f"not drawn: {error.message}"
        shown = f"<div>{title(code(text))}{title(faint(escape(reason)))}</div>"
        return {"text/plain": f"{text}\n{reason}", "text/html": shown}
