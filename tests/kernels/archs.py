"""Tests that run kernels for a GPU on the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from flydsl.arch import get_arch
from flydsl.simulator.isa.spellings import in_table


def executed_on(arch: str, *instructions: str) -> Any:
    """A mark: launches are for this GPU; skipped while the simulator does not execute one of these
    instructions."""
    sets = get_arch(arch).instruction_sets
    known = all(in_table(name, sets) for name in instructions)
    skips = pytest.mark.skipif(not known, reason=f"the simulator does not execute {' '.join((arch, *instructions))}")
    uses = pytest.mark.usefixtures(f"on_{arch}")
    return lambda function: skips(uses(function))
