"""Work of the rounds of workgroups that are not replayed: under a causal mask, some have more of it than others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flydsl.simulator.arrays import Array

_ALIKE = 0.05
"""Part by which replayed rounds may differ if those between them are to count as alike."""
_ROUNDS, _OF_EACH = 8, 4
"""Rounds that are looked at where they are not, and workgroups of each."""


def relative_work(
    count: int,
    first: Sequence[int],
    middle: Sequence[int],
    last: Sequence[int],
    executed: Callable[[Sequence[int]], Sequence[int]],
) -> Array:
    """The work of each round of `count` workgroups, for each of its workgroups, where the middle round has 1.

    first, middle, last: how many instructions each workgroup executes of the first round, of the one in the middle,
    which are whole, and of the last one, which is not and may be empty. executed: those of some workgroups, by number.
    Where the three differ, some workgroups of other rounds are compared with those at the same places of the middle
    one; the rounds between follow a straight line.

    >>> by_number = lambda them: [100 - 8 * w for w in them]
    >>> relative_work(10, by_number([0, 1]), by_number([4, 5]), [], by_number)
    array([1.5 , 1.25, 1.  , 0.75, 0.5 ])
    """
    size, rounds = len(middle), -(-count // len(middle))
    found = {0: sum(first) / sum(middle), count // size // 2: 1.0}
    if last:
        found[rounds - 1] = sum(last) / sum(middle[: len(last)])
    if max(found.values()) > (1 + _ALIKE) * min(found.values()):
        for number in np.linspace(0, rounds - 1, _ROUNDS).round().astype(int).tolist():
            if number not in found:
                places = np.linspace(0, min(size, count - number * size) - 1, _OF_EACH).round().astype(int).tolist()
                words = executed([number * size + place for place in places])
                found[number] = sum(words) / sum(middle[place] for place in places)
    known = sorted(found)
    return np.interp(np.arange(rounds), known, [found[number] for number in known])
