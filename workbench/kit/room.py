"""Room for a live view: buttons that give it the whole window, or a tab of the browser of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.kit import line_list
from workbench.kit.assets import asset_text
from workbench.kit.scripted import Scripted


class Room(Scripted):
    """The buttons. page: makes the text of the page for the other tab, which the browser keeps; nothing is served."""

    _esm = line_list.script() + asset_text(__file__, "room_widget.js")
    _css = line_list.style()

    def __init__(self, page: Callable[[], str]) -> None:
        self._page = page
        super().__init__()
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if content.get("page"):
            self.send({"page": self._page()})
