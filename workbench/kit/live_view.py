"""The base of all live views: a page opened without the kernel still shows what they showed."""

from __future__ import annotations

from typing import Any

from workbench.kit.html import ON_PAPER, faint, title
from workbench.kit.notebook import display
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.room import Room
from workbench.kit.static_page import static_page

_VIEW = "application/vnd.jupyter.widget-view+json"
# A trusted notebook without its kernel tries the widget all the same, and says "model not found". So a view is two
# outputs, a static one and the widget; JupyterLab shows the widget if there is one. Where styles are removed,
# in notebooks that are not trusted, widgets are not shown either.
_ONE_OF_TWO = (
    '<style class="fly-twin">'
    ".jp-OutputArea-child:has(.fly-twin):has(+ .jp-OutputArea-child .fly-live) { display: none; } "
    ".jp-OutputArea-child:has(.fly-twin) + .jp-OutputArea-child"
    ":not(:has(.fly-live)):not(:has([data-mime-type])) { display: none; }"
    "</style>"
)
_STATIC = title(faint("Static, as it was when the cell ran; run it again for the controls."))


class LiveView(widgets.VBox):
    """Controls and what they show.

    A notebook saves `static_html` and `static_text` as an output of their own before the reference to the widget.
    """

    def __init__(self, children: Any = (), **options: Any) -> None:
        super().__init__(children, **options)
        self._framed: widgets.VBox | None = None
        self.add_class("fly-live")

    def page(self) -> str:
        """The present content as a page that opens by itself."""
        return static_page(type(self).__name__, self.static_html())

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        raise NotImplementedError

    def static_text(self) -> str:
        """The text for a terminal."""
        return f"{type(self).__name__}()"

    def _ipython_display_(self) -> None:
        bundle = self._repr_mimebundle_()
        view = {_VIEW: bundle.pop(_VIEW)} if _VIEW in bundle else {}
        display(bundle | {"text/html": bundle["text/html"] + _STATIC + ON_PAPER + _ONE_OF_TWO}, raw=True)
        if view:
            display(view, raw=True)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        if self._framed is None:  # a view inside another one is never shown itself, and needs no buttons
            self._framed = widgets.VBox([Room(self.page), self])
            self._framed.add_class("fly-framed")
        bundle: dict[str, Any] = self._framed._repr_mimebundle_(**options) or {}
        return bundle | {"text/html": self.static_html(), "text/plain": self.static_text()}


class HtmlPart(widgets.HTML):
    """A part of a static view, as wide as the page; wider content scrolls inside it."""

    def __init__(self, content: str = "") -> None:
        super().__init__()
        self.show(content)

    def show(self, content: str) -> None:
        """Show other HTML."""
        self.value = f'<div style="width:0;min-width:100%;line-height:1.4">{content}</div>'
