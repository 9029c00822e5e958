"""The common parts of views with scripts: lists of lines to choose from, panes, buttons, the look of controls.

The script goes before that of each view: it defines `element`, `lineList`, `reveal`, `paneRow`, `lineTools`,
`toggleButton` and `fullWindowButton`.
"""

from __future__ import annotations

from workbench.kit.assets import asset_text
from workbench.kit.highlight import COLORS

_SCRIPTS = ("line_list.js", "panes.js", "room.js")
_STYLES = ("theme.css", "line_list.css", "panes.css", "room.css")
TAGS = {kind: f'<span class="{kind}">' for kind in (*COLORS, "comment")} | {"fold": '<span class="fold"><span>'}
"""The tags that `highlight` takes for lines of the list."""


def script() -> str:
    """The JavaScript of the common parts."""
    return asset_text(__file__, *_SCRIPTS)


def theme() -> str:
    """The CSS of controls only."""
    return asset_text(__file__, "theme.css")


def style() -> str:
    """The CSS of the common parts."""
    return asset_text(__file__, *_STYLES)
