"""One numbering for two texts: the first one with the names that the second one has for the same values.

A value is the same in both if it is at the same place of aligned lines, or of lines that replace each other one by one;
so is an argument without such a place.
What only the first text has keeps its name, or is called `%3_old` where the second has another `%3`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from workbench.stages.alignment import CONSTANTS, Pair, ParsedLine


def in_names_of(before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]) -> list[str]:
    """The lines of `before` in the names of `after`. pairs: the aligned lines of both."""
    numbering = _Numbering(after)
    for pair in pairs:
        numbering.pair(before[pair.before], after[pair.after])
    for i, j in _replaced(before, after, pairs):
        numbering.pair(before[i], after[j])
    return list(map(numbering.renamed, before))


class _Numbering:
    """Names of one text as names of the other, one to one within each function."""

    def __init__(self, after: Sequence[ParsedLine]) -> None:
        self._after = after
        self._forth: dict[int, dict[str, str]] = defaultdict(dict)  # by the function before
        self._taken: dict[int, set[str]] = defaultdict(set)  # by the function after, as below
        self._function: dict[int, int] = {}

    @cached_property
    def _known(self) -> dict[int, set[str]]:
        known: dict[int, set[str]] = defaultdict(set)
        for line in self._after:
            known[line.function].update(line.pieces[1::2])
        return known

    def pair(self, old: ParsedLine, new: ParsedLine) -> None:
        """Take the names of two lines as the same, where both are still free; of unlike lines only their results."""
        if self._function.setdefault(old.function, new.function) != new.function:
            return
        names, others = old.pieces[1::2], new.pieces[1::2]
        if len(names) != len(others):
            is_result = old.pieces[0].isspace() and new.pieces[0].isspace()
            names, others = names[:is_result], others[:is_result]
        forth, taken = self._forth[old.function], self._taken[new.function]
        for place, (name, other) in enumerate(zip(names, others, strict=True)):
            if name not in forth and other not in taken and _may_be_same(old, new, place):
                forth[name] = other
                taken.add(other)

    def renamed(self, line: ParsedLine) -> str:
        """A line of the old text."""
        names = line.pieces[1::2]
        others = [self._name(line.function, name) for name in names]
        if names == others:
            return line.text
        pieces = list(line.pieces)
        pieces[1::2] = others
        text = "".join(pieces)
        # A label of LLVM IR was taken apart with a sign that its text does not have.
        return text if line.text.startswith(line.pieces[0] + names[0]) else text[1:]

    def _name(self, function: int, old: str) -> str:
        forth = self._forth[function]
        if old not in forth:
            there, name = self._function.get(function, -1), old
            is_argument = name.startswith("%arg") and name not in self._taken[there]
            while not is_argument and name in self._known[there]:
                name += "_old"
            forth[old] = name
        return forth[old]


def _may_be_same(old: ParsedLine, new: ParsedLine, place: int) -> bool:
    """False if the names at a place of two lines are two constants that differ."""
    constants = _constant(old, place), _constant(new, place)
    return "" in constants or constants[0] == constants[1]


def _constant(line: ParsedLine, place: int) -> str:
    """The text of the constant that a name of a line is; empty for other names."""
    if not line.names:
        return line.words  # it makes a constant
    function, text = line.names[place]
    return text if function == CONSTANTS else ""


def _replaced(
    before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]
) -> Iterator[tuple[int, int]]:
    """The lines between aligned ones, one by one, where there are as many in both texts."""
    i = j = 0
    for end_i, end_j in chain(((pair.before, pair.after) for pair in pairs), [(len(before), len(after))]):
        if end_i - i == end_j - j:
            yield from zip(range(i, end_i), range(j, end_j), strict=True)
        i, j = end_i + 1, end_j + 1
