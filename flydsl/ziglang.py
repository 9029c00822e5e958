"""The path of the ziglang package's zig, which contains clang and LLD of LLVM 22."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path


def find_zig() -> str | None:
    """The path of the zig executable; None if the package is not installed."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    return shutil.which("zig", path=str(Path(spec.origin).parent))
