"""Where a wait is missing: one place, for all uses that a wait there would order.

A wait that leaves too much outstanding is the place for all that it leaves; a barrier, for all loads to LDS that it
should have waited for. Where nothing waits, it is the first use in a block, for those after it whose operations were
under way there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from flydsl.simulator.waits.flow import Flow, Use
from flydsl.simulator.waits.hazards import Early
from flydsl.simulator.waits.scalar_reads import EarlyRead


class Place(NamedTuple):
    """A place in a listing, where something is missing: what.

    at: the index of the wait that is too weak, of the barrier, or of the first use. enough: the count that the present
    use needs there; below zero, the instructions that are missing.
    """

    at: int
    what: str
    enough: int


class Places:
    """The places of a listing, for uses in the order of their blocks."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._starts = [block.start for block in flow.blocks]
        self._first: dict[tuple[int, str], int] = {}

    def of_use(self, use: Use) -> Place:
        """The place for a use of registers that are still to be written."""
        flow, under_way = self._flow, use.under_way
        counter = flow.counter_of(use.key)
        if under_way.wait is not None:
            return Place(under_way.wait[0], f"a lower {counter}", under_way.wait[1])
        first = self._first_use(use.instruction, use.key.instruction, counter)
        stream = flow.streams[use.key.stream]
        between = sum(stream in fact.streams or stream == fact.besides for fact in flow.facts[first : use.instruction])
        return Place(first, counter, max(0, flow.enough(use.key, under_way) - between))

    def of_hazard(self, early: Early) -> Place:
        """The place for an instruction that comes before its wait states."""
        what = "vector instructions" if early.counts_vector else "wait states"
        return Place(self._first_use(early.instruction, early.before, what), what, early.passed - early.needed)

    def of_scalar(self, early: EarlyRead) -> Place:
        """The place for a read of a scalar register that the vector ALU keeps."""
        return Place(self._first_use(early.instruction, early.writer, early.field), early.field, 0)

    def _first_use(self, use: int, started: int, what: str) -> int:
        """The first use in the block of one that misses the same, unless what it uses has been started since."""
        block = bisect_right(self._starts, use)
        first = self._first.get((block, what), use)
        if first <= started < use:
            first = use
        self._first[block, what] = first
        return first
