"""For `make lab`: a notebook that is opened and not changed is saved as it was.

JupyterLab writes the present Python's version and the kernel's name into each notebook that it opens, so that looking
at a notebook of the repository would change it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_OF_THE_KERNEL = ("kernelspec", "language_info")


def keep_kernel_metadata(model: dict[str, Any], path: str, contents_manager: Any, **_: Any) -> None:
    """Jupyter's hook before a file is saved: what a notebook that is there says of its kernel stays."""
    there = Path(contents_manager.root_dir) / path
    if model.get("type") != "notebook" or not there.is_file():
        return
    try:
        kept = json.loads(there.read_text("utf-8"))["metadata"]
    except (ValueError, LookupError, TypeError):
        return  # it is no notebook yet
    metadata = model["content"]["metadata"]
    for name in _OF_THE_KERNEL:
        metadata.pop(name, None)
        if name in kept:
            metadata[name] = kept[name]
