"""Figures to save and to change are plotly's, and show without plotly too."""

from __future__ import annotations

import copy

import workbench
from flydsl.layout import make_layout
from workbench.layouts import layout_figure


def test_a_figure_shows_as_plotly_as_html_and_as_text(notebook, pipeline, read):
    layout = make_layout((4, 8), (8, 1))
    for figure, expected in [
        (layout_figure(layout), "(4,8):(8,1)"),
        (workbench.occupancy_figure(pipeline.artifact.kernels[0]), "8 of 8 waves per SIMD"),
    ]:
        notebook.shell.user_ns["figure"] = figure
        formats, _ = notebook.shell.display_formatter.format(figure)
        assert formats["application/vnd.plotly.v1+json"]["data"]
        assert read(formats["text/html"]).styles
        assert expected in formats["text/plain"]


def test_it_is_a_plotly_figure(tmp_path):
    figure = layout_figure(make_layout((2, 2), (2, 1)))
    figure.update_layout(title="mine")
    figure.write_html(tmp_path / "figure.html", include_plotlyjs=False)
    assert "mine" in (tmp_path / "figure.html").read_text()
    assert copy.deepcopy(figure).layout.title.text == "mine"
