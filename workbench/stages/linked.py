"""Linked levels: a line chosen in the source or in any level highlights the lines of the same origin in all of them.

The same script (`linked.js`) runs in the widget, which requests each level from Python when it is first shown, and in
an exported page, which contains all levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from workbench.kit.assets import asset_text
from workbench.kit.highlight import highlight
from workbench.kit.line_list import TAGS
from workbench.stages.diff import clipped
from workbench.stages.levels import Level
from workbench.stages.origins import Origins


class Linked:
    """Levels as `linked.js` takes them."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = tuple(levels)
        self._origins = Origins(place for level in levels for place in level.places)
        self._numbers = [self._origins.numbers(level.places) for level in levels]

    def meta(self) -> dict[str, Any]:
        """The data that the script needs at once: names, sizes, and counts of each origin and operation per level."""
        counts = [Counter(numbers) for numbers in self._numbers]
        names = self._origins.names
        return {
            "levels": [{"name": v.name, "language": v.language, "size": len(v.lines)} for v in self.levels],
            "origins": names,
            "counts": [[count[i] for count in counts] for i in range(len(names))],
            "operations": [{} if level.language == "python" else dict(level.operations) for level in self.levels],
        }

    def content(self, index: int) -> dict[str, Any]:
        """One level: for each line its HTML, the number of its origin (-1: none), and its operation.

        first: the number of the first line, which in a source is the one in its file; 0 if the margins show numbers.
        """
        level = self.levels[index]
        lines = [highlight(clipped(line).expandtabs(4), level.language, TAGS) for line in level.lines]
        if level.margins:
            lines = [margin + line for margin, line in zip(level.margins, lines, strict=True)]
        names = [""] * len(lines) if level.language == "python" else list(level.operation_names)
        start = level.places[0] if level.language == "python" and level.places else None
        first = 0 if level.margins else start.line if start else 1
        return {"lines": lines, "origins": self._numbers[index], "operations": names, "first": first}


def script() -> str:
    """The JavaScript: a function `mount(element, meta, fetchLevel)`. That of `kit.line_list` goes before."""
    return asset_text(__file__, "linked.js")


def style() -> str:
    """The CSS that goes with it."""
    return asset_text(__file__, "linked.css")
