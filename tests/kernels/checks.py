"""The checks of the library's tests."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from flydsl import simulator
from flydsl.simulator.checks import CHECKS, Findings


def checking() -> AbstractContextManager[Findings]:
    """Check the launches of a `with` block; indices, too, in `make sweep`: for these each kernel is compiled twice."""
    return simulator.checking(*[name for name in CHECKS if name != "index" or "CHECK_INDICES" in os.environ])
