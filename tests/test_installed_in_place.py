"""The project installed in place, as `make` does, leaves a program's own packages alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_programs_own_package_kernels_is_the_only_one(tmp_path: Path) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mine.py").touch()
    done = subprocess.run(
        [sys.executable, "-c", "import kernels.mine, kernels.rmsnorm_kernel"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert "No module named 'kernels.rmsnorm_kernel'" in done.stderr, "run `make setup`"
