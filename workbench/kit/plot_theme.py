"""Plotly figures that follow the theme of the page: no paper of their own, and text in the page's colour.

Plotly knows no themes, but leaves the style of a `<span>` to the browser: so the colour of a text may be a variable of
JupyterLab's or VS Code's theme. Where there is neither, text is `SAVED_INK`. So it is in the picture that JupyterLab
saves with a notebook, without paper, and shows on whatever page it is opened in.
"""

from __future__ import annotations

from typing import Any

SAVED_INK = "#797979"  # the same contrast, 4.3, with white and with the paper of JupyterLab's dark theme, #111111
_INK = f"var(--jp-content-font-color1,var(--vscode-editor-foreground,{SAVED_INK}))"
_START, _END = f'<span style="color:{_INK}">', "</span>"

CLEAR = "rgba(0,0,0,0)"
LINE, POINT = "#2e86c1", "#d9600f"  # have a contrast of 3 with white and with black
GRID = "rgba(128,128,128,0.35)"  # seen on white and on black
PLOT: dict[str, Any] = {
    "paper_bgcolor": CLEAR,
    "plot_bgcolor": CLEAR,
    "font": {"color": SAVED_INK},
    "modebar": {"bgcolor": CLEAR, "color": SAVED_INK, "activecolor": LINE, "remove": ["sendChartToCloud"]},
}
"""For the layout of a figure."""
AXIS: dict[str, Any] = {"tickprefix": _START, "ticksuffix": _END, "gridcolor": GRID, "zeroline": False}
"""For axes of numbers."""


def ink(text: str) -> str:
    """A text of a figure in the colour of the page's text. text: as plotly has it, escaped."""
    return f"{_START}{text}{_END}" if text else ""
