"""Plotly figures that follow the theme of the page: no paper of their own, and text in the page's colour.

Plotly knows no themes, but leaves the style of a `<span>` to the browser: so the colour of a text may be a variable of
JupyterLab's or VS Code's theme. Where there is neither, and in saved pictures, text is `INK`.
"""

from __future__ import annotations

from typing import Any

from workbench.kit.html import INK

_INK = f"var(--jp-content-font-color1,var(--vscode-editor-foreground,{INK}))"
_START, _END = f'<span style="color:{_INK}">', "</span>"

CLEAR = "rgba(0,0,0,0)"
LINE, POINT = "#2e86c1", "#d9600f"  # have a contrast of 3 with white and with black
GRID = "rgba(128,128,128,0.35)"  # seen on white and on black
PLOT: dict[str, Any] = {"paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR, "font": {"color": INK}}
"""For the layout of a figure."""
AXIS: dict[str, Any] = {"tickprefix": _START, "ticksuffix": _END, "gridcolor": GRID, "zeroline": False}
"""For axes of numbers."""


def ink(text: str) -> str:
    """A text of a figure in the colour of the page's text. text: as plotly has it, escaped."""
    return f"{_START}{text}{_END}" if text else ""
