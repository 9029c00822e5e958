"""The counters that a backend keeps for each instruction of a program."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.arrays import Array

LINE_BYTES = 64
"""The unit in which memory traffic is counted."""

FIELDS = (
    "executions",  # by a wave
    "active_lanes",  # bits of EXEC before the instruction, summed over executions
    "global_bytes",  # of vector accesses, lane by lane
    "global_lines",  # distinct lines of 64 bytes, summed over executions
    "lds_bytes",
    "lds_passes",  # of accesses whose phases are known
    "lds_phases",  # of those: phases with an active lane, which is what the passes would be without a conflict
    "lds_uncounted",  # of those: accesses that are not aligned to a dword, in neither of the two
    "lds_max_ways",  # the most passes of a phase
    "scratch_bytes",
)
_LARGEST = frozenset({"lds_max_ways"})  # all others are sums
_TYPE = np.dtype([(name, np.int64) for name in FIELDS])


def no_counts(instructions: int) -> Array:
    """A record of zeros for each instruction."""
    return np.zeros(instructions, _TYPE)


def merge(into: Array, counts: Array) -> None:
    """Add the counts of a part of a launch."""
    for name in FIELDS:
        into[name] = np.maximum(into[name], counts[name]) if name in _LARGEST else into[name] + counts[name]
