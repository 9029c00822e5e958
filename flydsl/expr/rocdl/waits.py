"""Waits of copies that go past the registers, and `s_waitcnt` by the names of its counters."""

from __future__ import annotations

from typing import Any

from flydsl.atoms.instruction_sets import CDNA
from flydsl.dialect.location import argument_error
from flydsl.expr.rocdl.intrinsic import immediate
from flydsl.expr.rocdl.scheduling import s_wait_asynccnt, s_wait_tensorcnt
from flydsl.expr.rocdl.scheduling import s_waitcnt as raw_waitcnt
from flydsl.expr.tracing.emit import require_trace, target_name

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


# Counter -> its largest value, which waits for nothing.
_COUNTERS = {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7}


def s_waitcnt(bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Wait until counters are low enough. CDNA.

    vmcnt, lgkmcnt, expcnt: how many accesses of memory, of LDS and scalars, and exports may be under way; None: any.
    bitfield: the same in the encoding of the instruction: vmcnt in bits 0 to 3 and 14 to 15, expcnt 4 to 6, lgkmcnt 8
    to 11.
    """
    named = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    if bitfield is not None:
        if any(count is not None for count in named.values()):
            raise argument_error("s_waitcnt with a bit field and counters", "give one or the other")
        raw_waitcnt(bitfield)
        return
    vm, lgkm, exp = (
        most if (count := named[name]) is None else min(immediate(f"s_waitcnt {name}", count, 0, 0xFFFF), most)
        for name, most in _COUNTERS.items()
    )
    raw_waitcnt(vm & 0xF | exp << 4 | lgkm << 8 | vm >> 4 << 14)


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
