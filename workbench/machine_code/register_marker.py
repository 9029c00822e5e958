"""The machine code, live: mark the instructions that use given registers."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from flydsl.compiler import Pipeline
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.machine_code.listing import isa_html

_STYLE = {"description_width": "initial"}


class RegisterMarker(LiveView):
    """The ISA, live, with instructions marked that use the given registers."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._registers = widgets.Text(description="Registers", placeholder="for example v[2:3], s4", style=_STYLE)
        self._registers.observe(self._show, names="value")
        self._isa = HtmlPart()
        self._show()
        super().__init__([self._registers, self._isa])

    def static_html(self) -> str:
        """The listing without the field."""
        return f"<div>{self._isa.value}</div>"

    def _show(self, _change: Any = None) -> None:
        self._isa.show(isa_html(self._pipeline.artifact, registers=self._registers.value))
