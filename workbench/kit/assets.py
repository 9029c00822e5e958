"""Scripts and styles, which lie beside the modules that use them."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def asset_text(module: str, *names: str) -> str:
    """The files of these names, one after the other. module: `__file__` of the module that they lie beside."""
    return "\n".join(Path(module).with_name(name).read_text("utf-8") for name in names)
