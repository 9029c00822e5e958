"""The list of lines to choose from, as the views with scripts use it: its JavaScript, its CSS, the tags of its colours.

The script goes before that of each view: it defines `element`, `lineList` and `reveal`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from workbench.kit.highlight import COLORS

_HERE = Path(__file__).parent
TAGS = {kind: f'<span class="{kind}">' for kind in (*COLORS, "comment")}
"""What `highlight` takes for lines of the list."""


@cache
def script() -> str:
    """The JavaScript."""
    return (_HERE / "line_list.js").read_text("utf-8")


@cache
def style() -> str:
    """The CSS."""
    return (_HERE / "line_list.css").read_text("utf-8")
