"""One numbering for two texts: the first one with the names that the second one has for the same values.

A value is the same in both if it is at the same place of aligned lines, or of lines that replace each other one by one;
so is an argument without such a place.
What only the first text has keeps its name, or is called `%3_old` where the second has another `%3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from workbench.stages.alignment import CONSTANTS, FUNCTION, NAME, Pair, ParsedLine

_Named = tuple[int, str]  # a function, by its number, and a name in it


def in_names_of(before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]) -> list[str]:
    """The lines of `before` in the names of `after`. pairs: the aligned lines of both."""
    old, new = _Names(before), _Names(after)
    numbering = _Numbering(old, new)
    for pair in pairs:
        numbering.pair(pair.before, pair.after)
    for i, j in _replaced(before, after, pairs):
        numbering.pair(i, j)
    return [numbering.renamed(i) for i in range(len(before))]


class _Names:
    """Of each line the parts between names, the names, and the number of the function that it is in."""

    def __init__(self, lines: Sequence[ParsedLine]) -> None:
        self.lines = lines
        self.pieces: list[list[str]] = []
        self.functions: list[int] = []
        function = 0
        for line in lines:
            function += FUNCTION.match(line.shape) is not None
            # The shape of a label of LLVM IR has a sign that its text does not have.
            sign = "%" if line.shape.startswith("%") and not line.text.startswith("%") else ""
            self.pieces.append(NAME.split(sign + line.text))
            self.functions.append(function)
        self.known = {named for i in range(len(lines)) for named in self.of(i)}

    def of(self, line: int) -> list[_Named]:
        """The names in a line, from left to right."""
        return [(self.functions[line], name) for name in self.pieces[line][1::2]]

    def meanings(self, line: int) -> list[str]:
        """Of each name in a line the constant that it is; empty for other names."""
        found = [text if function == CONSTANTS else "" for function, text in self.lines[line].names]
        return found or [self.lines[line].words] * len(self.of(line))  # the line that makes a constant has no names


class _Numbering:
    """Names of one text as names of the other, one to one within each function."""

    def __init__(self, old: _Names, new: _Names) -> None:
        self._old, self._new = old, new
        self._forth: dict[_Named, str] = {}
        self._taken: set[_Named] = set()
        self._function: dict[int, int] = {}

    def pair(self, i: int, j: int) -> None:
        """Take the names of two lines as the same, where both are still free; of unlike lines only their results."""
        olds, news = self._old.of(i), self._new.of(j)
        meanings = self._old.meanings(i), self._new.meanings(j)
        if self._function.setdefault(self._old.functions[i], self._new.functions[j]) != self._new.functions[j]:
            return
        if len(olds) != len(news):
            is_result = self._old.pieces[i][0].isspace() and self._new.pieces[j][0].isspace()
            olds, news = olds[:is_result], news[:is_result]
        for old, new, *constants in zip(olds, news, *meanings, strict=False):
            is_other = "" not in constants and constants[0] != constants[1]  # one constant in place of another
            if old not in self._forth and new not in self._taken and not is_other:
                self._forth[old] = new[1]
                self._taken.add(new)

    def renamed(self, line: int) -> str:
        """A line of the old text."""
        pieces = list(self._old.pieces[line])
        pieces[1::2] = map(self._name, self._old.of(line))
        text = "".join(pieces)
        return text[1:] if pieces[0] == "" and text.endswith(":") and text[1:-1].isdigit() else text

    def _name(self, old: _Named) -> str:
        if old not in self._forth:
            function, name = self._function.get(old[0], -1), old[1]
            is_argument = name.startswith("%arg") and (function, name) not in self._taken
            while not is_argument and (function, name) in self._new.known:
                name += "_old"
            self._forth[old] = name
        return self._forth[old]


def _replaced(
    before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]
) -> Iterator[tuple[int, int]]:
    """The lines between aligned ones, one by one, where there are as many in both texts."""
    i = j = 0
    for end_i, end_j in chain(((pair.before, pair.after) for pair in pairs), [(len(before), len(after))]):
        if end_i - i == end_j - j:
            yield from zip(range(i, end_i), range(j, end_j), strict=True)
        i, j = end_i + 1, end_j + 1
