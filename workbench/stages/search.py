"""Search for an operation: the levels that contain it, where it first appears and where it disappears."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.compiler import Pipeline
from workbench.kit.html import code, escape, table, title
from workbench.kit.kinds import require
from workbench.stages.levels import Level, levels


@dataclass(frozen=True)
class Search:
    """The operations whose name contains a text. counts: the number of them at each level."""

    text: str
    counts: tuple[tuple[str, int], ...]
    names: tuple[str, ...]

    @property
    def steps(self) -> list[str]:
        """The changes in their number from level to level, in words."""
        found = []
        before = 0
        for level, count in self.counts:
            if count and not before:
                found.append(f"in {level}: appears ({count})")
            elif before and not count:
                found.append(f"in {level}: gone (there were {before})")
            elif count != before:
                found.append(f"in {level}: {before} → {count}")
            before = count
        return found

    def _repr_html_(self) -> str:
        if not self.names:
            return title(f"No operation is called {code(self.text)} at any level.")
        names = ", ".join(map(code, self.names))
        rows = [[escape(level), str(count) if count else "0"] for level, count in self.counts]
        steps = "".join(title(escape(step)) for step in self.steps)
        return f"<div>{title(names)}{steps}{table(('level', 'operations'), rows, numbers=(1,))}</div>"

    def __repr__(self) -> str:
        return "\n".join([", ".join(self.names) or f"no operation is called {self.text}", *self.steps])


def find(pipeline: Pipeline, text: str) -> Search:
    """Search a compilation for operations whose name contains a text: where they appear and where they disappear."""
    require("find", text, str, 'a part of a name, such as "logical_divide"')
    return search(levels(pipeline), text)


def search(forms: list[Level], text: str) -> Search:
    """Search the given levels, except the Python source."""
    wanted = text.strip()
    inside = [level for level in forms if level.language != "python"]
    names = {name for level in inside for name in level.operations if wanted and wanted in name}
    counts = tuple((level.name, sum(level.operations[name] for name in names)) for level in inside)
    return Search(wanted, counts, tuple(sorted(names)))
