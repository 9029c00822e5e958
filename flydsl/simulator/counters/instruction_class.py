"""The class in which an instruction is counted, and how the LDS serves it, by its name."""

from __future__ import annotations

import re
from functools import cache

from flydsl.arch import Arch
from flydsl.simulator.isa.waits_and_hints import effect_of

CLASSES = (
    "VALU", "MFMA", "SALU", "SMEM", "VMEM load", "VMEM store", "VMEM atomic", "LDS", "branch", "wait", "barrier",
    "other",
)  # fmt: skip
VECTOR_CLASSES = frozenset({"VALU", "MFMA", "VMEM load", "VMEM store", "VMEM atomic", "LDS"})
"""The classes of instructions whose active lanes are counted."""

_WITHOUT_EFFECT = {"wait": "wait", "cache": "wait", "hint": "other"}
_PATTERNS = (
    ("MFMA", r"v_(mfma|smfmac|wmma|swmmac)_"),
    ("other", r"s_(endpgm|trap$|sendmsg)"),
    ("VALU", r"v_"),
    ("LDS", r"ds_"),
    ("VMEM load", r"(global|flat|buffer|scratch|cluster|tensor)_load_"),
    ("VMEM store", r"(global|flat|buffer|scratch|tensor)_store_"),
    ("VMEM atomic", r"(global|flat|buffer)_atomic_"),
    ("barrier", r"s_barrier"),
    ("wait", r"s_(wait|sleep(_var)?$)"),
    ("branch", r"s_(branch$|cbranch_|setpc_|swappc_|call_)"),
    ("SMEM", r"s_(buffer_|scratch_)?(load|store|atomic)_|s_mem(real)?time$"),
    ("SALU", r"s_"),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _PATTERNS)
_LDS_ACCESS = re.compile(r"ds_((?:read|write)_b\d+)$")
_LDS_ATOMIC = re.compile(r"ds_(?!read|write|load|store(?!xchg)|b?permute|swizzle|nop|append|consume)")
_SMALL_SCALAR_LOAD = re.compile(r"s_(?:buffer_)?load_[us](?:byte|short)$")
_SCALAR_LOAD = re.compile(r"s_(?:buffer_|scratch_)?load_dword(?:x(\d+))?$")


@cache
def instruction_class(mnemonic: str) -> str:
    """The class of an instruction: one of CLASSES.

    >>> [instruction_class(m) for m in ("v_add_f32", "ds_read_b128", "s_cbranch_scc1", "buffer_atomic_add_f32")]
    ['VALU', 'LDS', 'branch', 'VMEM atomic']
    """
    effect = effect_of(mnemonic)
    if effect != "state":
        return _WITHOUT_EFFECT[effect]
    return next((name for name, pattern in _COMPILED if pattern.match(mnemonic)), "other")


@cache
def is_lds_atomic(mnemonic: str) -> bool:
    """True if an instruction reads and writes LDS for each lane, one lane after the other where they meet.

    >>> [name for name in ("ds_add_u32", "ds_wrxchg_rtn_b32", "ds_write_b32", "ds_bpermute_b32") if is_lds_atomic(name)]
    ['ds_add_u32', 'ds_wrxchg_rtn_b32']
    """
    return _LDS_ATOMIC.match(mnemonic) is not None


@cache
def lds_operation(arch: Arch, mnemonic: str) -> str | None:
    """The name of an LDS access in `flydsl.arch.lds_banks`; None if its competing lanes are unknown there.

    >>> from flydsl.arch import GFX942
    >>> lds_operation(GFX942, "ds_read_b128"), lds_operation(GFX942, "ds_read2_b32")
    ('read_b128', None)
    """
    match = _LDS_ACCESS.match(mnemonic)
    return match[1] if match and arch.lds_banks is not None and match[1] in arch.lds_phases else None


def scalar_load_bytes(mnemonic: str) -> int:
    """Bytes that a scalar instruction loads for a wave.

    >>> scalar_load_bytes("s_load_dwordx4"), scalar_load_bytes("s_add_u32")
    (16, 0)
    """
    match = _SCALAR_LOAD.match(mnemonic)
    if match:
        return 4 * int(match[1] or 1)
    return 4 if _SMALL_SCALAR_LOAD.match(mnemonic) else 0
