"""A plotly figure that also shows where there is no plotly: in the page that nbconvert makes of a notebook, say."""

from __future__ import annotations

from typing import Any

from workbench.kit.notebook import graph_objects as go


class Picture(go.Figure):
    """A plotly figure like any other, with the same picture as HTML that needs no script.

    static_html, static_text: its content without plotly. They show the figure as first made; later changes appear in
    plotly only.
    """

    _ipython_display_ = None  # plotly's own way of showing itself comes before any other and saves its form alone

    def __init__(self, data: Any = None, static_html: str = "", static_text: str = "Picture", **options: Any) -> None:
        super().__init__(data, **options)
        self._static_html, self._static_text = static_html, static_text

    def _repr_mimebundle_(self, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        bundle = {
            "application/vnd.plotly.v1+json": self.to_plotly_json(),
            "text/html": self._static_html,
            "text/plain": self._static_text,
        }
        return {kind: content for kind, content in bundle.items() if content}
