"""Work of the workgroups that are not replayed: under a causal mask, some have more of it than others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_ALIKE = 0.05
"""Part by which workgroups may differ from those that are replayed in their place if all are to count as alike."""
_FEW, _MANY = 8, 55
"""Workgroups that are looked at, and where these or the replayed rounds differ."""
_GOLDEN = (5**0.5 - 1) / 2


def relative_work(
    skipped: Sequence[tuple[int, int]],
    replayed: Sequence[Sequence[int]],
    executed: Callable[[Sequence[int]], Sequence[int]],
) -> float:
    """The work of skipped workgroups, where those that are replayed in their place have 1. It is 1 if all are alike.

    skipped: their numbers, each with a place in the middle round. replayed: how many instructions each workgroup
    executes of the first round, of the one in the middle, and of the last one, which may be empty. executed: those of
    some workgroups.

    >>> rounds = [(w, w % 10) for w in range(10, 990)]
    >>> relative_work(rounds, [range(1, 11)] * 3, lambda them: [1 + w % 10 for w in them])
    1.0
    >>> falling = relative_work(rounds, [[2000] * 10, [1000] * 10, []], lambda them: [2000 - 2 * w for w in them])
    >>> round(falling, 1)
    1.0
    """
    first, middle, last = replayed
    chosen = [skipped[place] for place in _spread(len(skipped))]
    usual = [middle[place] for _, place in chosen]
    found = list(executed([workgroup for workgroup, _ in chosen[:_FEW]]))
    parts = [there / here for there, here in zip(found, usual[:_FEW], strict=True)]
    parts += [sum(first) / sum(middle), sum(last) / sum(middle[: len(last)]) if last else 1]
    if all(1 - _ALIKE <= part <= 1 + _ALIKE for part in parts):
        return 1.0
    return (sum(found) + sum(executed([workgroup for workgroup, _ in chosen[_FEW:]]))) / sum(usual)


def _spread(count: int) -> list[int]:
    """Places without a period: a mask repeats itself with each head or sequence, as rounds do."""
    return list(range(count)) if count <= _MANY else [int(i * _GOLDEN % 1 * count) for i in range(1, _MANY + 1)]
