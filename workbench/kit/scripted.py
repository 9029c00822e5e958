"""The base of widgets with a script of their own."""

from __future__ import annotations

from typing import Any

from workbench.kit.assets import asset_text
from workbench.kit.notebook import anywidget

_HEARING = asset_text(__file__, "scripted.js")


class Scripted(anywidget.AnyWidget):
    """A widget whose script, `_esm`, first runs `keepHearing`, so that no message is lost on a busy machine."""

    def __init_subclass__(cls, **options: Any) -> None:
        if isinstance(script := vars(cls).get("_esm"), str):  # instances have classes of their own, with traits
            cls._esm = _HEARING + script
        super().__init_subclass__(**options)
