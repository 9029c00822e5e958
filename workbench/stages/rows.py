"""A diff side by side: each row has a line of the text before and one of the text after, or one of the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.stages.diff import Change, Diff


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
    """Lines in place of others: those that replace each other in one row, and between them what is left, in order."""
    i = j = 0
    while i < len(removed) or j < len(added):
        left = removed[i] if i < len(removed) else None
        right = added[j] if j < len(added) else None
        if left is not None and right is not None and (left.other is None) != (right.other is None):
            left, right = (None, right) if left.other is not None else (left, None)
        i += left is not None
        j += right is not None
        yield left, right
