"""The ziglang package's zig, which contains clang and LLD of LLVM 22, and how such tools are run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def find_zig() -> str | None:
    """The path of the zig executable; None if the package is not installed."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    return shutil.which("zig", path=str(Path(spec.origin).parent))


def run_tool(command: Sequence[str], seconds: float, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler, assembler or linker without input, with a limit of time, and return what it wrote.

    Raises OSError if it cannot be started, and subprocess.TimeoutExpired.
    """
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=seconds,
    )
