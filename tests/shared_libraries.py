"""Shared libraries for the CPU of this machine, by ziglang's clang."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

# For any of these CPUs the code is the same. Zig builds its runtime for each set of features anew, in six seconds.
CPU = "x86_64_v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"


def build_library(source: Path, made: Path, *options: str) -> None:
    """Build a library of C or of LLVM IR. Without -O1 zig first builds its sanitizer, for half a minute."""
    command = [sys.executable, "-m", "ziglang", "cc", "-O1", f"-mcpu={CPU}", "-fPIC", *options, "-shared"]
    subprocess.run([*command, str(source), "-o", str(made)], check=True)
