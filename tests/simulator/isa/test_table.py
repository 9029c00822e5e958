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


_INTERRUPTED = """
import signal, sys
from flydsl.arch import GFX950
from flydsl.simulator.isa import table
signal.signal(signal.SIGINT, signal.default_int_handler)
import_module = table.import_module

def press_ctrl_c_afterwards(name):
    import_module(name)
    signal.raise_signal(signal.SIGINT)

table.import_module = press_ctrl_c_afterwards
try:
    table.enter_families(GFX950.instruction_sets)
except KeyboardInterrupt:
    assert {f"flydsl.simulator.isa.{family}" for family in table.FAMILIES["cdna4"].split()} <= set(sys.modules)
else:
    raise AssertionError("Ctrl-C was swallowed")
"""


def test_ctrl_c_while_the_table_is_made_leaves_no_gap() -> None:
    subprocess.run([sys.executable, "-c", _INTERRUPTED], check=True, timeout=60)
