"""The operations that instructions start and that go on while their wave does: the table's column of what is under way.

`flydsl.arch.wait_counters` says, for each family of GPUs, which counter counts each kind. The run-time check, the
static check, the model of time and the views all read these two tables.
"""

from __future__ import annotations

import re
from functools import cache

_ROWS = (
    ("message", r"s_sendmsg"),
    ("scalar load", r"s_(buffer_|scratch_)?(load|store|atomic)_|s_mem(real)?time$|s_dcache_|s_atc_probe|s_gl1_inv"),
    ("scalar load", r"s_get_barrier_state|s_get_waveid_in_workgroup"),
    ("first at barrier", r"s_barrier_signal_isfirst"),
    ("", r"s_|ds_nop"),
    ("export", r"exp$|export|(lds|ds)_(param|direct)_load"),
    ("asynchronous arrival", r"ds_atomic_async_barrier_arrive"),
    ("LDS", r"ds_"),
    ("tile", r"tensor_(load|store)_"),
    ("asynchronous load", r"(global|cluster)_load_async_to_lds"),
    ("asynchronous store", r"global_store_async_from_lds"),
    ("global load to LDS", r"(global|scratch)_load_lds_"),
    ("sample", r"image_(sample|gather|msaa_load|get_lod)"),
    ("ray", r"image_bvh"),
    ("invalidation", r"global_inv"),
    ("write-back", r"buffer_wbl2|global_wb"),
    ("", r"buffer_(inv|wbinv|gl\d)|\w+_prefetch"),
    ("flat load", r"flat_load|flat_atomic\w*/returning"),
    ("flat store", r"flat_(store|atomic)"),
    ("vector store", r"\w+_store|\w+_atomic(?!\w*/returning)"),
    ("vector load", r"(global|buffer|tbuffer|scratch|cluster|image)_"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _ROWS)
KINDS = tuple(dict.fromkeys(["load to LDS", *(kind for kind, _ in _ROWS if kind)]))


@cache
def operation_of(name: str) -> str:
    """The kind of operation that an instruction starts, "" for none. name: with the form that the table names.

    >>> [operation_of(name) for name in ("ds_read_b128", "buffer_load_dword/lds", "global_atomic_add", "s_add_u32")]
    ['LDS', 'load to LDS', 'vector store', '']
    >>> operation_of("global_atomic_add/returning")  # which leaves a register to be written
    'vector load'
    """
    mnemonic, _, forms = name.partition("@")[0].partition("/")
    if "lds" in forms.split("/"):
        return "load to LDS"
    returning = "/returning" if "returning" in forms.split("/") else ""
    return next((kind for kind, pattern in _COMPILED if pattern.match(mnemonic + returning)), "")


_WRITES_LDS = ("load to LDS", "global load to LDS", "asynchronous load")


def writes_lds(kind: str) -> bool:
    """True for loads whose data goes to LDS past the registers."""
    return kind in _WRITES_LDS


def is_load(kind: str) -> bool:
    """True for what leaves registers to be written: its first operands are results that are not there yet."""
    return kind in ("vector load", "flat load", "LDS", "scalar load", "message", "sample", "ray", "first at barrier")
