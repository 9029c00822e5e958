"""The memory instruction that each wait in a trace waited for.

Memory instructions increment a counter when they are issued; a wait stops the wave until a counter is at most n. So it
waits for the one that has n younger ones of the same counter. (Scalar loads may complete in another order; the
compiler waits for all of them.)
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.trace import Stall, Trace, TracedInstruction, Unit

# CDNA waits for several counters in one instruction, RDNA 4 has an instruction for each and for some pairs.
_TOGETHER = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_NAMED = re.compile(r"s_wait_(load|store|ds|km|sample|bvh)cnt(_dscnt)? (0x[0-9a-f]+|\d+)")
_STORES_APART = re.compile(r"s_waitcnt_vscnt \S+, (0x[0-9a-f]+|\d+)")
_OF_REASON = {
    Stall.WAIT_VECTOR_MEMORY: ("vmcnt", "loadcnt", "storecnt", "vscnt", "samplecnt", "bvhcnt"),
    Stall.WAIT_LDS: ("lgkmcnt", "dscnt"),
    Stall.WAIT_SCALAR: ("lgkmcnt", "kmcnt"),
}


@lru_cache(maxsize=4096)
def counters_waited_for(text: str) -> dict[str, int]:
    """The counters that an instruction waits for, and the most that each may be afterwards.

    >>> counters_waited_for("s_waitcnt vmcnt(2) lgkmcnt(0)"), counters_waited_for("s_wait_loadcnt_dscnt 0x102")
    ({'vmcnt': 2, 'lgkmcnt': 0}, {'loadcnt': 1, 'dscnt': 2})
    """
    if text.startswith("s_waitcnt "):
        return {name: int(most) for name, most in _TOGETHER.findall(text)}
    if named := _NAMED.match(text):
        most = int(named[3], 0)
        return {f"{named[1]}cnt": most >> 8, "dscnt": most & 0xFF} if named[2] else {f"{named[1]}cnt": most}
    apart = _STORES_APART.match(text)
    return {"vscnt": int(apart[1], 0)} if apart else {}


def _counted_by(instruction: TracedInstruction) -> tuple[str, ...]:
    """The counters that an instruction increments, under the names of all architectures."""
    is_store = "_store" in instruction.text
    match instruction.unit:
        case Unit.LDS:
            return ("lgkmcnt", "dscnt")
        case Unit.SCALAR_MEMORY:
            return ("lgkmcnt", "kmcnt")
        case Unit.VECTOR_MEMORY:
            return ("storecnt", "vscnt", "vmcnt") if is_store else ("loadcnt", "samplecnt", "bvhcnt", "vmcnt")
        case _:
            return ()


def producers(trace: Trace) -> Array:
    """For each event, the event whose completion it waited for, -1 where it waited for no memory that is known."""
    found = np.full(len(trace.events), -1, np.int64)
    counted = [_counted_by(instruction) for instruction in trace.instructions]
    waits = [counters_waited_for(instruction.text) for instruction in trace.instructions]
    matters = np.array([bool(c or w) for c, w in zip(counted, waits, strict=True)], bool)
    rows = np.flatnonzero(matters[trace.events["instruction"]]) if len(matters) else found
    wave, issued = -1, dict[str, list[int]]()
    columns = (trace.events[name][rows].tolist() for name in ("wave", "instruction", "reason"))
    for row, of_wave, instruction, reason in zip(rows.tolist(), *columns, strict=True):
        if of_wave != wave:
            wave, issued = of_wave, {}
        for counter in _OF_REASON.get(Stall(reason), ()):
            queue, most = issued.get(counter, []), waits[instruction].get(counter)
            if most is not None and len(queue) > most:
                found[row] = queue[-1 - most]
        for counter in counted[instruction]:
            issued.setdefault(counter, []).append(row)
    return found
