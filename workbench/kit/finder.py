"""Marks a text in a part of a view, scrolls to it, and goes from one place to the next."""

from __future__ import annotations

import itertools

from workbench.kit.assets import asset_text
from workbench.kit.line_list import theme
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted

_count = itertools.count(1)


class Finder(Scripted):
    """Two buttons and how many places there are; nothing as long as there is no text. part: where to mark."""

    _esm = asset_text(__file__, "finder.js")
    _css = theme() + asset_text(__file__, "finder.css")
    text = traitlets.Unicode("").tag(sync=True)
    target = traitlets.Unicode().tag(sync=True)

    def __init__(self, part: widgets.DOMWidget) -> None:
        name = f"fly-part-{next(_count)}"
        part.add_class(name)
        super().__init__(target=name)
