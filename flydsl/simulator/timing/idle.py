"""Idle workgroups: those that end at once, as in a grid that is larger than its work.

Tables of a mixture of experts are as long as they may ever have to be: blocks of rows beyond the last one have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_LEAST, _WORDS = 1 / 8, 256
"""A workgroup has nothing to do that executes less of each: of what the first one does, and instructions of a wave."""


@dataclass(frozen=True)
class Busy:
    """The workgroups of a launch that have something to do. counts: how many of each die, the first ones of its own."""

    counts: tuple[int, ...]
    workgroups: int

    @classmethod
    def of_all(cls, workgroups: int, dies: int) -> Busy:
        """All of them, which go to the dies in turn."""
        return cls(tuple(len(range(die, workgroups, dies)) for die in range(dies)), workgroups)

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def idle(self) -> int:
        """Workgroups that end at once."""
        return self.workgroups - self.total

    @property
    def dies(self) -> float:
        """Dies at work: one with less to do than the first one counts as that part of a die."""
        at_work = sum(count > 0 for count in self.counts)
        return sum(min(1.0, count / self.counts[0]) for count in self.counts) if self.idle else at_work


def busy_workgroups(workgroups: int, dies: int, executed: Callable[[Sequence[int]], Sequence[int]]) -> Busy:
    """The workgroups that have something to do: of each die those up to some number, if its last one has nothing.

    executed: how many instructions the longest wave executes in each of some workgroups. The last workgroup of all and
    that of the first die say whether any are idle; then the first idle one of each die is found by halving.

    >>> busy_workgroups(64, 8, lambda them: [10_000 if w < 40 else 20 for w in them]).counts
    (5, 5, 5, 5, 5, 5, 5, 5)
    >>> busy_workgroups(64, 8, lambda them: [10_000 if w % 8 < 5 else 20 for w in them]).dies
    5.0
    """
    every = Busy.of_all(workgroups, dies)
    first, *ends = executed([0, dies * (every.counts[0] - 1), workgroups - 1])
    least = min(first * _LEAST, _WORDS)
    if all(end >= least for end in ends):
        return every
    low, high = [0] * dies, list(every.counts)  # of each die: those before `low` are busy, from `high` on idle
    while unknown := [die for die in range(dies) if low[die] < high[die]]:
        middle = {die: (low[die] + high[die]) // 2 for die in unknown}
        for die, count in zip(unknown, executed([die + dies * middle[die] for die in unknown]), strict=True):
            if count >= least:
                low[die] = middle[die] + 1
            else:
                high[die] = middle[die]
    return Busy(tuple(low), workgroups)
