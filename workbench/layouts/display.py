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

# The types that show themselves.
SHOWN: tuple[type, ...] = (
    *(Layout, ComposedLayout, CoordTensor),
    *(atoms.TiledCopy, fx.TiledCopy, fx.ThrCopy, fx.CopyAtom),
    *(atoms.MmaOp, fx.MmaAtom, atoms.TiledMma, fx.TiledMma, fx.ThrMma),
)


def layout_bundle(value: Any) -> dict[str, Any]:
    """A value of one of the types SHOWN, by mime type. What cannot be drawn is text, with the reason."""
    text = repr(value)
    try:
        return view_of(value).bundle(text)
    except (LayoutError, ArgumentError) as error:
        reason = f"not drawn: {error.message}"
        shown = f"<div>{title(code(text))}{title(faint(escape(reason)))}</div>"
        return {"text/plain": f"{text}\n{reason}", "text/html": shown}
