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
import signal
from flydsl.arch import GFX942
from flydsl.simulator.isa import table
signal.signal(signal.SIGINT, signal.default_int_handler)
whole = table.import_module

def ctrl_c_after_it(name):
    found = whole(name)
    signal.raise_signal(signal.SIGINT)
    return found

table.import_module = ctrl_c_after_it
try:
    table.look_up("s_load_dwordx2", GFX942.instruction_sets)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("Ctrl-C was swallowed")
table.import_module = whole
for name in ("ds_read_b32", "s_load_dwordx2", "v_mfma_f32_4x4x1_16b_f32"):
    assert table.look_up(name, GFX942.instruction_sets), name
"""


def test_ctrl_c_while_the_table_is_made_leaves_no_gap() -> None:
    subprocess.run([sys.executable, "-c", _INTERRUPTED], check=True, timeout=60)
