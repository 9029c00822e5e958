"""The counters that an instruction waits for, from its text.

CDNA and RDNA 3 wait for several counters in one instruction, RDNA 3 also for one, RDNA 4 and later have an instruction
for each and for some pairs.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOGETHER = re.compile(r"([a-z]+cnt)(?:_sat)?\((0x[0-9a-fA-F]+|\d+)\)")
_NAMED = re.compile(r"s_wait_(load|store|ds|km|sample|bvh|exp|x|async|tensor)cnt(_dscnt)? +(\w+)")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_APART = re.compile(r"s_waitcnt_(vs|vm|lgkm|exp)cnt +(?:null|off)?,? *(\w+)")


@lru_cache(maxsize=4096)
def counts_waited_for(text: str) -> dict[str, int]:
    """The counters that an instruction waits for, and the most that each may be afterwards; "all" for every counter.

    >>> counts_waited_for("s_waitcnt vmcnt(2) lgkmcnt(0)"), counts_waited_for("s_wait_loadcnt_dscnt 0x102")
    ({'vmcnt': 2, 'lgkmcnt': 0}, {'loadcnt': 1, 'dscnt': 2})
    >>> counts_waited_for("s_waitcnt_vscnt null, 0x0"), counts_waited_for("s_wait_idle"), counts_waited_for("s_nop 0")
    ({'vscnt': 0}, {'all': 0}, {})
    """
    if not text.startswith("s_wait"):
        return {}
    if text.startswith("s_waitcnt "):
        return {name: int(most, 0) for name, most in _TOGETHER.findall(text)}
    if text.startswith("s_wait_idle"):
        return {"all": 0}
    if apart := _APART.match(text):
        return {f"{apart[1]}cnt": int(apart[2], 0)}
    named = _NAMED.match(text)
    if named is None:
        return {}
    most = int(named[3], 0)
    both = {f"{named[1]}cnt": most >> 8, "dscnt": most & 0xFF}
    return both if named[2] else {f"{named[1]}cnt": most}


def encoded_counts(text: str) -> int | None:
    """The constant of an `s_waitcnt` that is written as a number; None for other instructions.

    >>> encoded_counts("s_waitcnt 0xf72"), encoded_counts("s_waitcnt vmcnt(2)")
    (3954, None)
    """
    name, _, rest = text.partition(" ")
    number = _NUMBER.fullmatch(rest.strip()) if name == "s_waitcnt" else None
    return int(number[0], 0) if number else None
