"""A line in a corner of the page that says how far something is. It is no output, so no notebook saves it."""

from __future__ import annotations

from workbench.kit.assets import asset_text
from workbench.kit.line_list import theme
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted


class ProgressStrip(Scripted):
    """The line: its script puts it on the page when the browser hears of it, so it is never displayed.

    text: what it says; empty to take it away. share: what is done, from 0 to 1; negative if unknown.
    """

    _esm = asset_text(__file__, "progress_strip.js")
    _css = theme() + asset_text(__file__, "progress_strip.css")
    text = traitlets.Unicode("").tag(sync=True)
    share = traitlets.Float(-1.0).tag(sync=True)
