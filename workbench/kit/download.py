"""Buttons that save a picture, and the width that there is for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.kit.assets import asset_text
from workbench.kit.line_list import theme
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted


class Download(Scripted):
    """SVG and PNG of a picture. draw: makes the text of the SVG. name: of the file, without its ending.

    width: of the place that the view has on the page, in pixels; 0 as long as it is not known.
    """

    _esm = asset_text(__file__, "download.js")
    _css = theme()
    name = traitlets.Unicode("picture").tag(sync=True)

    width = traitlets.Int(0).tag(sync=True)

    def __init__(self, draw: Callable[[], str], name: str) -> None:
        self._draw = draw
        super().__init__(name=name)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if content.get("picture"):
            self.send({"svg": self._draw()})
