"""The common parts of views with scripts: lists of lines to choose from, panes, buttons, the look of controls.

The script goes before that of each view: it defines `element`, `lineList`, `reveal`, `paneRow`, `lineTools`,
`toggleButton` and `fullWindowButton`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from workbench.kit.highlight import COLORS

_HERE = Path(__file__).parent
_SCRIPTS = ("line_list.js", "panes.js", "room.js")
_STYLES = ("theme.css", "line_list.css", "panes.css", "room.css")
TAGS = {kind: f'<span class="{kind}">' for kind in (*COLORS, "comment")} | {"fold": '<span class="fold"><span>'}
"""What `highlight` takes for lines of the list."""


@cache
def script() -> str:
    """The JavaScript."""
    return "\n".join((_HERE / name).read_text("utf-8") for name in _SCRIPTS)


@cache
def theme() -> str:
    """The CSS of controls alone."""
    return (_HERE / "theme.css").read_text("utf-8")


@cache
def style() -> str:
    """The CSS."""
    return "\n".join((_HERE / name).read_text("utf-8") for name in _STYLES)
