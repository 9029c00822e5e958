"""The lines of the source that code comes from, numbered: a number is a colour, the same at every level."""

from __future__ import annotations

from collections.abc import Iterable

from flydsl.errors import SourceLocation
from workbench.stages.levels import place_key


class Origins:
    """Numbers of lines: of those of `places` in their order in the source, then of others as they come."""

    def __init__(self, places: Iterable[SourceLocation | None] = ()) -> None:
        known = sorted({_line(place) for place in places if place is not None})
        self._numbers = {line: number for number, line in enumerate(known)}

    @property
    def names(self) -> list[str]:
        """The line of each number, as people know it."""
        return [place_key(SourceLocation(file, line)) for file, line in self._numbers]

    def number(self, place: SourceLocation | None) -> int:
        """The number of a place's line, -1 for none."""
        return -1 if place is None else self._numbers.setdefault(_line(place), len(self._numbers))

    def numbers(self, places: Iterable[SourceLocation | None]) -> list[int]:
        """The number of each."""
        return [self.number(place) for place in places]


def _line(place: SourceLocation) -> tuple[str, int]:
    return place.file, place.line
