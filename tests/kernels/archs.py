"""Tests that run kernels for a GPU on the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from flydsl.arch import get_arch


def executed_on(arch: str) -> Any:
    """A mark: launches are for this GPU; skipped while the simulator does not execute its code."""
    skips = pytest.mark.skipif(not get_arch(arch).instruction_sets, reason=f"the simulator does not execute {arch}")
    uses = pytest.mark.usefixtures(f"on_{arch}")
    return lambda function: skips(uses(function))
