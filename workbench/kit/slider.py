"""A slider with a name that screen readers say and a number to type; ipywidgets' own slider is nameless to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from workbench.kit.line_list import theme
from workbench.kit.scripted import Scripted

_HERE = Path(__file__).parent


class Slider(Scripted):
    """A whole number from `min` to `max`. label_width: as CSS, so that sliders below each other line up."""

    _esm = (_HERE / "slider.js").read_text("utf-8")
    _css = theme() + (_HERE / "slider.css").read_text("utf-8")
    description = traitlets.Unicode().tag(sync=True)
    value = traitlets.Int().tag(sync=True)
    min = traitlets.Int().tag(sync=True)
    max = traitlets.Int().tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)
    label_width = traitlets.Unicode("auto").tag(sync=True)

    @traitlets.validate("value")
    def _within(self, proposal: Any) -> int:
        return max(self.min, min(proposal["value"], self.max))
