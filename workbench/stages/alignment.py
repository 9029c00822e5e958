"""Alignment of the lines of two texts, whatever the names of the values in them.

Compilers number values anew at every step, so a line is compared by what it says and by where its values come from:

- Two lines are *aligned* if they are the same without names, and in the same order. An unrolled kernel has many such
  lines; a hash over everything that a line depends on distinguishes them.
- Aligned lines are *equal* if consistently renaming one text's names over the whole function gives the other. Two names
  mean the same if they first occur on aligned lines; a constant's name means the constant.

So a diff never hides a change, and one changed operation does not make everything that depends on it look changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

# Values (%3, %arg0), blocks (^bb1), and the labels that LLVM IR writes as "12:" at the start of a line.
NAME = re.compile(r"([%^][A-Za-z0-9_$.-]+)")
_LLVM_LABEL = re.compile(r"(\d+):")
FUNCTION = re.compile(r"\s*(?:(?:\w+\.)?func|define)\s")
_CONSTANT = re.compile(r"\s*% = (?:\w+\.)*(?:constant|static)\b")
Name = tuple[int, str]
"""A function, by its number, and a name in it."""

CONSTANTS = -1  # stands for the function of a name that is a constant's text


class ParsedLine(NamedTuple):
    """A line taken apart.

    shape: the text without names. words: the shape with white space normalised. names: each with its function; for a
    constant, the constant's text. identity: equal for lines that do the same with values that were computed in the same
    way. pieces: what is between the written names. written: these, each with the number of its function. function: the
    number of the line's function.
    """

    text: str
    shape: str
    words: str
    names: tuple[Name, ...]
    identity: int
    pieces: Sequence[str] = ()
    written: tuple[Name, ...] = ()
    function: int = 0


@dataclass(frozen=True)
class Pair:
    """Aligned lines, by index. is_equal: but for names and white space."""

    before: int
    after: int
    is_equal: bool


@lru_cache(maxsize=64)
def parse(text: str, *, has_names: bool = True) -> tuple[ParsedLine, ...]:
    """Take a text apart. has_names: it is MLIR or LLVM IR; otherwise names are words like others."""
    if not has_names:
        return tuple(ParsedLine(line, line, words := _words(line), (), hash(words)) for line in text.splitlines())
    return tuple(_parse_ir(text.splitlines()))


def _words(line: str) -> str:
    return " ".join(line.split())


def _parse_ir(lines: Sequence[str]) -> Iterator[ParsedLine]:
    function = 0
    origins: dict[str, int] = {}  # of the current function's names: the identity of where each was first seen
    meanings: dict[str, Name] = {}
    shapes: dict[str, tuple[str, bool, bool]] = {}  # few, because names are what differs from line to line
    for line in lines:
        is_label = line[:1].isdigit() and _LLVM_LABEL.match(line)
        pieces = NAME.split(f"%{line}" if is_label else line)
        between, names = pieces[::2], pieces[1::2]
        shape = "%".join(between)
        known = shapes.get(shape)
        if known is None:
            known = _words(shape), FUNCTION.match(shape) is not None, _CONSTANT.match(shape) is not None
            shapes[shape] = known
        words, is_function, is_constant = known
        if is_function:
            function += 1
            origins, meanings = {}, {}
        sources = tuple(map(origins.get, names))
        identity = hash((words, sources))
        if None in sources:
            is_constant = is_constant and len(names) == 1
            for position, name in enumerate(names):
                if name not in origins:
                    origins[name] = hash((identity, position))
                    meanings[name] = (CONSTANTS, words) if is_constant else (function, name)
        meant = () if is_constant else tuple(map(meanings.__getitem__, names))
        written = tuple([(function, name) for name in names])
        yield ParsedLine(line, shape, words, meant, identity, between, written, function)


def align(before: Sequence[ParsedLine], after: Sequence[ParsedLine]) -> list[Pair]:
    """The aligned lines, in order; lines that are in no pair were removed or added."""
    renaming = _Renaming()
    return [Pair(i, j, renaming.agrees(before[i], after[j])) for i, j in _aligned(before, after)]


class _Renaming:
    """Names of one text as names of the other, one to one."""

    def __init__(self) -> None:
        self._forth: dict[Name, Name] = {}
        self._back: dict[Name, Name] = {}

    def agrees(self, before: ParsedLine, after: ParsedLine) -> bool:
        """True if the names of two lines of the same shape agree; names new to both are paired."""
        agreed = True
        for one, other in zip(before.names, after.names, strict=True):
            if CONSTANTS in (one[0], other[0]):
                agreed &= one == other
            elif one not in self._forth and other not in self._back:
                self._forth[one], self._back[other] = other, one
            else:
                agreed &= self._forth.get(one) == other
        return agreed


def _aligned(before: Sequence[ParsedLine], after: Sequence[ParsedLine]) -> Iterator[tuple[int, int]]:
    """Anchors first: lines whose identity is found once in each text. Between them, what reads the same."""
    i = j = 0
    for anchor_i, anchor_j in [*_anchors(before, after), (len(before), len(after))]:
        yield from _aligned_gap(before, after, (i, anchor_i), (j, anchor_j))
        if anchor_i < len(before):
            yield anchor_i, anchor_j
        i, j = anchor_i + 1, anchor_j + 1


def _anchors(before: Sequence[ParsedLine], after: Sequence[ParsedLine]) -> list[tuple[int, int]]:
    """The longest increasing sequence of lines that are unique in both texts and the same (patience diff)."""
    counts_before = Counter(line.identity for line in before)
    counts_after = Counter(line.identity for line in after)
    where = {line.identity: j for j, line in enumerate(after) if counts_after[line.identity] == 1}
    candidates = [
        (i, where[line.identity])
        for i, line in enumerate(before)
        if counts_before[line.identity] == 1 and line.identity in where
    ]
    ends: list[int] = []  # the smallest last position of an increasing sequence, by its length
    places: list[int] = []  # the candidate that `ends` is about
    previous: list[int] = []
    for index, (_, j) in enumerate(candidates):
        length = bisect_left(ends, j)
        previous.append(places[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        places[length : length + 1] = [index]
    chosen = []
    index = places[-1] if places else -1
    while index >= 0:
        chosen.append(candidates[index])
        index = previous[index]
    return chosen[::-1]


def _aligned_gap(
    before: Sequence[ParsedLine], after: Sequence[ParsedLine], rows: tuple[int, int], columns: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    (i, i_end), (j, j_end) = rows, columns
    if i == i_end or j == j_end:
        return
    matcher = SequenceMatcher(
        None, [before[k].words for k in range(i, i_end)], [after[k].words for k in range(j, j_end)]
    )
    for block in matcher.get_matching_blocks():
        for k in range(block.size):
            yield i + block.a + k, j + block.b + k
