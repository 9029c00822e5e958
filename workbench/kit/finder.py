"""Marks a text in a part of a view, scrolls to it, and goes from one place to the next."""

from __future__ import annotations

import itertools
from pathlib import Path

import ipywidgets as widgets
import traitlets

from workbench.kit.line_list import theme
from workbench.kit.scripted import Scripted

_HERE = Path(__file__).parent
_count = itertools.count(1)


class Finder(Scripted):
    """Two buttons and how many places there are; nothing as long as there is no text. part: where to mark."""

    _esm = (_HERE / "finder.js").read_text("utf-8")
    _css = theme() + (_HERE / "finder.css").read_text("utf-8")
    text = traitlets.Unicode("").tag(sync=True)
    target = traitlets.Unicode().tag(sync=True)

    def __init__(self, part: widgets.DOMWidget) -> None:
        name = f"fly-part-{next(_count)}"
        part.add_class(name)
        super().__init__(target=name)
