"""A slider with a name that screen readers say and a number to type; ipywidgets' own slider is nameless to them."""

from __future__ import annotations

from typing import Any

from workbench.kit.assets import asset_text
from workbench.kit.line_list import theme
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted


class Slider(Scripted):
    """A whole number from `min` to `max`. label_width: as CSS, so that sliders below each other line up."""

    _esm = asset_text(__file__, "slider.js")
    _css = theme() + asset_text(__file__, "slider.css")
    description = traitlets.Unicode().tag(sync=True)
    value = traitlets.Int().tag(sync=True)
    min = traitlets.Int().tag(sync=True)
    max = traitlets.Int().tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)
    label_width = traitlets.Unicode("auto").tag(sync=True)

    @traitlets.validate("value")
    def _within(self, proposal: Any) -> int:
        return max(self.min, min(proposal["value"], self.max))
