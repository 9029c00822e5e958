"""The names of the package, which are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import flydsl.simulator


def test_every_name_has_a_home() -> None:
    assert flydsl.simulator.__all__
    assert all(getattr(flydsl.simulator, name).__name__ == name for name in flydsl.simulator.__all__)


def test_compiling_does_not_load_what_executes() -> None:
    """A first launch loads it while LLVM compiles."""
    script = """
import sys
import flydsl.compiler, flydsl.expr
print(*[name for name in sys.modules if name.startswith(("flydsl.simulator.isa", "flydsl.simulator.native"))])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
