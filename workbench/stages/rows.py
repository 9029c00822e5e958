"""A diff side by side: each row has a line of the text before and one of the text after, or one of the two."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from workbench.stages.diff import Change, Diff

_RESULT = re.compile(r"\s*(%[\w.$-]+)(?::\d+)? = ")


class Row(NamedTuple):
    """One row. sign: "+" added, "-" removed, "*" replaced, "~" only white space changed, " " equal.

    left, right: None where a side has no line. left_number, right_number: of the lines, from 1; 0 without one.
    """

    sign: str
    left: Change | None
    right: Change | None
    left_number: int
    right_number: int


def rows(diff: Diff) -> list[Row]:
    """All rows of a diff."""
    return list(_numbered(_pairs(diff.changes)))


def _numbered(pairs: Iterator[tuple[Change | None, Change | None]]) -> Iterator[Row]:
    numbers = [0, 0]
    for left, right in pairs:
        numbers[0] += left is not None
        numbers[1] += right is not None
        sign = "*" if left is not None and right is not None else "-" if right is None else "+"
        if right is not None and right.sign in " ~":
            sign = right.sign
        yield Row(sign, left, right, numbers[0] if left else 0, numbers[1] if right else 0)


def _pairs(changes: Sequence[Change]) -> Iterator[tuple[Change | None, Change | None]]:
    removed: list[Change] = []
    added: list[Change] = []
    for change in changes:
        if change.sign == "-":
            if added:
                yield from _beside(removed, added)
                removed, added = [], []
            removed.append(change)
        elif change.sign == "+":
            added.append(change)
        else:
            yield from _beside(removed, added)
            removed, added = [], []
            yield change, change
    yield from _beside(removed, added)


def _beside(removed: Sequence[Change], added: Sequence[Change]) -> Iterator[tuple[Change | None, Change | None]]:
    """Lines in place of others: those that replace each other or compute the same value are in one row."""
    i = j = 0
    for left, right in [*_partners(removed, added), (len(removed), len(added))]:
        yield from zip_longest(removed[i:left], added[j:right])
        if left < len(removed):
            yield removed[left], added[right]
        i, j = left + 1, right + 1


def _partners(removed: Sequence[Change], added: Sequence[Change]) -> Iterator[tuple[int, int]]:
    """Lines that belong together, by index, in order."""
    places: dict[str, deque[int]] = {}
    for j, change in enumerate(added):
        places.setdefault(_result(change) if change.other is None else change.text, deque()).append(j)
    last = -1
    for i, change in enumerate(removed):
        candidates = places.get(_result(change) if change.other is None else change.other, deque())
        while candidates and candidates[0] <= last:
            candidates.popleft()
        if candidates and (change.other is not None or _result(change)):
            last = candidates.popleft()
            yield i, last


def _result(change: Change) -> str:
    """The name of the value that a line computes; empty without one."""
    found = _RESULT.match(change.text)
    return found[1] if found else ""
