"""The part of the table that a GPU has does not depend on which other GPUs were asked for before."""

from __future__ import annotations

import subprocess
import sys

_ONE_ALONE_THEN_ALL = """
from flydsl.arch import GFX942
from flydsl.simulator.isa.spellings import entries_on
from flydsl.simulator.isa.table import ENTERED, TABLE
alone = dict(entries_on(GFX942.instruction_sets))
entered = len(ENTERED)
assert entered < len(TABLE), "what only other GPUs have was entered, too"
assert alone == entries_on(GFX942.instruction_sets)
"""


def test_a_gpu_enters_its_own_families_alone() -> None:
    subprocess.run([sys.executable, "-c", _ONE_ALONE_THEN_ALL], check=True, timeout=60)
