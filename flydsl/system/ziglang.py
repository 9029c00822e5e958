"""The zig executable of the package ziglang, which contains clang and LLD of LLVM 22; and running such tools."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flydsl.system.child_processes import end_child, start_child


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
    options: dict[str, Any] = {"cwd": folder, "text": True, "errors": "replace"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_child(command, **options, **pipes) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:  # it takes too long, or a KeyboardInterrupt
            end_child(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
