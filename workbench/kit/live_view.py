"""The base of all live views: a page opened without the kernel still shows their last content."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets


class LiveView(widgets.VBox):
    """Controls and what they show.

    A notebook saves `static_html` and `static_text` beside the reference to the widget.
    """

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        raise NotImplementedError

    def static_text(self) -> str:
        """The text for a terminal."""
        return f"{type(self).__name__}()"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        return bundle | {"text/html": self.static_html(), "text/plain": self.static_text()}


class HtmlPart(widgets.HTML):
    """A part of a static view, as wide as the page; wider content scrolls inside it."""

    def __init__(self, content: str = "") -> None:
        super().__init__()
        self.show(content)

    def show(self, content: str) -> None:
        """Show other HTML."""
        self.value = f'<div style="width:0;min-width:100%;line-height:1.4">{content}</div>'
