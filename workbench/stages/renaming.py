"""One numbering for two texts: the first one with the names that the second one has for the same values.

A value is the same in both if it is at the same place of aligned lines, or of lines that replace each other one by one;
so is an argument without such a place.
What only the first text has keeps its name, or is called `%3_old` where the second has another `%3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from workbench.stages.alignment import CONSTANTS, Name, Pair, ParsedLine


def in_names_of(before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]) -> list[str]:
    """The lines of `before` in the names of `after`. pairs: the aligned lines of both."""
    numbering = _Numbering(after)
    for pair in pairs:
        numbering.pair(before[pair.before], after[pair.after])
    for i, j in _replaced(before, after, pairs):
        numbering.pair(before[i], after[j])
    return list(map(numbering.renamed, before))


def _constants(line: ParsedLine) -> list[str]:
    """Of each name in a line the constant that it is; empty for other names."""
    found = [text if function == CONSTANTS else "" for function, text in line.names]
    return found or [line.words] * len(line.written)  # the line that makes a constant has no names


class _Numbering:
    """Names of one text as names of the other, one to one within each function. after: the other text."""

    def __init__(self, after: Sequence[ParsedLine]) -> None:
        self._after = after
        self._forth: dict[Name, str] = {}
        self._taken: set[Name] = set()
        self._function: dict[int, int] = {}

    def pair(self, old: ParsedLine, new: ParsedLine) -> None:
        """Take the names of two lines as the same, where both are still free; of unlike lines only their results."""
        if self._function.setdefault(old.function, new.function) != new.function:
            return
        count = len(old.written)
        if count != len(new.written):
            count = old.pieces[0].isspace() and new.pieces[0].isspace()
        for at in range(count):
            name, other = old.written[at], new.written[at]
            if name in self._forth or other in self._taken:
                continue
            one, two = _constants(old)[at], _constants(new)[at]
            if not (one and two and one != two):  # one constant in place of another
                self._forth[name] = other[1]
                self._taken.add(other)

    def renamed(self, line: ParsedLine) -> str:
        """A line of the old text."""
        pieces = [*chain.from_iterable(zip(line.pieces, map(self._name, line.written), strict=False)), line.pieces[-1]]
        text = "".join(pieces)
        return text[1:] if pieces[0] == "" and text.endswith(":") and text[1:-1].isdigit() else text

    @cached_property
    def _known(self) -> set[Name]:
        """The names of the other text."""
        return {name for line in self._after for name in line.written}

    def _name(self, old: Name) -> str:
        found = self._forth.get(old)
        if found is None:
            function, found = self._function.get(old[0], -1), old[1]
            is_argument = found.startswith("%arg") and (function, found) not in self._taken
            while not is_argument and (function, found) in self._known:
                found += "_old"
            self._forth[old] = found
        return found


def _replaced(
    before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]
) -> Iterator[tuple[int, int]]:
    """The lines between aligned ones, one by one, where there are as many in both texts."""
    i = j = 0
    for end_i, end_j in chain(((pair.before, pair.after) for pair in pairs), [(len(before), len(after))]):
        if end_i - i == end_j - j:
            yield from zip(range(i, end_i), range(j, end_j), strict=True)
        i, j = end_i + 1, end_j + 1
