"""Waits of copies that go past the registers, and `s_waitcnt` by the names of its counters."""

from __future__ import annotations

from typing import Any

from flydsl.arch import DEFAULT_ARCH, get_arch
from flydsl.arch.wait_counters import wait_counters
from flydsl.atoms.instruction_sets import CDNA, GFX12
from flydsl.dialect.location import argument_error
from flydsl.expr.rocdl.scheduling import (
    s_wait_asynccnt,
    s_wait_dscnt,
    s_wait_expcnt,
    s_wait_loadcnt,
    s_wait_tensorcnt,
)
from flydsl.expr.rocdl.scheduling import s_waitcnt as raw_waitcnt
from flydsl.expr.tracing.emit import require_trace, target_name
from flydsl.expr.tracing.immediates import immediate

__all__ = ["SyncScope", "asyncmark", "s_waitcnt", "wait_asyncmark"]


class SyncScope:
    """LLVM's names of the groups of threads of a GPU that see atomic accesses in one order."""

    Agent = "agent"
    Workgroup = "workgroup"
    Wavefront = "wavefront"
    OneAs = "one-as"
    AgentOneAs = "agent-one-as"
    WorkgroupOneAs = "workgroup-one-as"
    WavefrontOneAs = "wavefront-one-as"
    SingleThreadOneAs = "singlethread-one-as"


_MOST_ON_GFX12 = 63
# The counters of RDNA 4 and gfx1250 that count what these do; scalar loads have one that LLVM waits for by itself.
_ON_GFX12 = {"vmcnt": s_wait_loadcnt, "lgkmcnt": s_wait_dscnt, "expcnt": s_wait_expcnt}


def s_waitcnt(bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Wait until counters are low enough.

    vmcnt, lgkmcnt, expcnt: how many accesses of memory, of LDS and scalars, and exports may be under way; None: any.
    On RDNA vmcnt counts loads only. RDNA 4 and gfx1250 have an instruction for each of the three.
    bitfield: the same in the encoding of the instruction, which is CDNA's or RDNA 3's.
    """
    named = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    given = {name: immediate(f"s_waitcnt {name}", n, 0, 0xFFFF) for name, n in named.items() if n is not None}
    if bitfield is not None:
        if given:
            raise argument_error("s_waitcnt with a bit field and counters", "give one or the other")
        raw_waitcnt(bitfield)
    elif (target := target_name()) in GFX12:
        for name, count in given.items():
            _ON_GFX12[name](min(count, _MOST_ON_GFX12))
    else:
        raw_waitcnt(wait_counters(get_arch(target or DEFAULT_ARCH.name)).encoded(given))


def asyncmark() -> None:
    """End a group of asynchronous copies, for `wait_asyncmark`."""
    require_trace("asyncmark")


def wait_asyncmark(count: Any = 0) -> None:
    """Wait until at most `count` groups of asynchronous copies are under way; None waits for nothing.

    LLVM 22.1 has no marks: this waits for all copies of the wave, which is right for any count.
    """
    require_trace("wait_asyncmark")
    if count is None:
        return
    immediate("wait_asyncmark", count, 0, 0xFFFF)
    if target_name() in CDNA:
        s_waitcnt(vmcnt=0)
    else:
        s_wait_asynccnt(0)
        s_wait_tensorcnt(0)
