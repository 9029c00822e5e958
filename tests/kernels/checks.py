"""The checks of the library's tests.

Checked launches take a third of the time of a kernel's tests, and seldom find in one shape what they do not find in
another. So `make test` checks the tests that are marked `checked`, at least one for each kernel that can go wrong in
ways that its numbers do not show; the others launch as a user's program does. `make sweep` checks all of them
(CHECK_LAUNCHES=1), and once more with their indices, for which each kernel is compiled twice (CHECK_LAUNCHES=index).
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

from flydsl import simulator
from flydsl.simulator.checks import CHECKS, Findings

INDICES_TOO = os.environ.get("CHECK_LAUNCHES") == "index"
ALL = "CHECK_LAUNCHES" in os.environ
marked = False  # whether the test that runs is


def checking() -> AbstractContextManager[Findings]:
    """Check the launches of a `with` block, if the test is marked `checked` or all are to be checked."""
    if not (ALL or marked):
        return nullcontext(Findings())
    return simulator.checking(*[name for name in CHECKS if name != "index" or INDICES_TOO])
