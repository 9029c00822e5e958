"""The occupancy, live: other amounts of each resource, and other architectures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flydsl.arch import ARCHS, Usage, get_arch
from flydsl.arch.occupancy import MAX_SGPRS
from flydsl.errors import ArchError
from workbench.kit.controls import dropdown
from workbench.kit.html import escape, message, title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.slider import Slider
from workbench.resources.occupancy import occupancy_text, usage_html


class WhatIf(LiveView):
    """The occupancy of other amounts: a slider for each resource, and the architecture."""

    def __init__(self, usage: Usage, name: str = "") -> None:
        self._usage, self._name = usage, name
        self._arch = dropdown("Architecture", [arch.name for arch in ARCHS], usage.arch.name)
        self._sliders = {
            "vgprs": self._slider("VGPRs", usage.vgprs, 1024),
            "agprs": self._slider("AGPRs", usage.agprs, 256),
            "sgprs": self._slider("SGPRs", usage.sgprs, MAX_SGPRS),
            "lds_bytes": self._slider("LDS bytes", usage.lds_bytes, 320 * 1024, step=256),
            "workgroup_size": self._slider("Workgroup size", usage.workgroup_size, 1024, low=1),
        }
        reset = widgets.Button(description="Reset")
        reset.on_click(lambda _: self._reset())
        self._shown = HtmlPart()
        for control in (self._arch, *self._sliders.values()):
            control.observe(self._show, names="value")
        self._show()
        head = [HtmlPart(title(escape(name)))] if name else []
        super().__init__([*head, widgets.HBox([self._arch, reset]), *self._sliders.values(), self._shown])

    def _slider(self, name: str, value: int, most: int, *, low: int = 0, step: int = 1) -> Any:
        return Slider(
            description=name, value=value, min=low, max=most, step=step, label_width="8em", layout={"width": "36em"}
        )

    def _reset(self) -> None:
        self._arch.value = self._usage.arch.name
        for name, slider in self._sliders.items():
            slider.value = getattr(self._usage, name)

    @property
    def usage(self) -> Usage:
        """The amounts that the controls say."""
        arch = get_arch(self._arch.value)
        wave_size = self._usage.wave_size if self._usage.wave_size in arch.vgpr_files else arch.wave_size
        amounts = {name: slider.value for name, slider in self._sliders.items()}
        return replace(self._usage, arch=arch, wave_size=wave_size, **amounts)

    def static_html(self) -> str:
        """The occupancy without controls."""
        amounts = ", ".join(f"{slider.description} {slider.value}" for slider in self._sliders.values())
        head = " ".join(filter(None, [self._name, f"for {self._arch.value}: {amounts}"]))
        return f"<div>{title(escape(head))}{self._content()}</div>"

    def static_text(self) -> str:
        """The text for a terminal."""
        try:
            return occupancy_text(self.usage.occupancy)
        except ArchError as error:
            return str(error)

    def _content(self) -> str:
        try:
            return usage_html(self.usage)
        except ArchError as error:
            return message(str(error))

    def _show(self, _change: Any = None) -> None:
        self._shown.show(self._content())
