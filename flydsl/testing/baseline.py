"""The file of figures beside a test: one section for each launch, GPU and version of LLVM, one line a figure.

    test_softmax: softmax_kernel on gfx942, LLVM 20.1.8
      vgprs                              24
      time_us                         3.542

Sections are in the order of their headings, so that a change shows as the lines that it changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flydsl.testing.figures import KernelFigures

TOLERANCES = {"time_us": 0.03}
"""Figure -> the part of it by which it may be worse; none where it is not here."""
_LARGER_IS_BETTER = ("waves per SIMD",)
_HEAD = "# Figures of kernels, which tests compare. `pytest --update-figures` writes them.\n"
_WIDTH = 30
_LINE = re.compile(r"  (\S.*?) {2,}(\S+)$")

Sections = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Change:
    """A figure that is not what it was. before, now: None where there is none."""

    name: str
    before: float | None
    now: float | None

    @property
    def is_worse(self) -> bool:
        """True if it is worse by more than its tolerance. A figure that is new, and not 0, is worse."""
        before, now = self.before or 0.0, self.now or 0.0
        lost = before - now if self.name in _LARGER_IS_BETTER else now - before
        return lost > TOLERANCES.get(self.name, 0.0) * before

    def __str__(self) -> str:
        """The change in words.

        >>> print(Change("vgprs", 24, 44), Change("time_us", 2.0, 3.0), Change("spills", None, 2), sep="; ")
        vgprs 24 -> 44 (+20); time_us 2 -> 3 (+1, +50 %); spills 0 -> 2 (+2)
        """
        before, now = self.before or 0.0, self.now or 0.0
        share = f", {100 * (now - before) / before:+.0f} %" if before and self.name in TOLERANCES else ""
        return f"{self.name} {before:g} -> {now:g} ({now - before:+g}{share})"


def place_of(test_file: Path) -> Path:
    """The file of figures of a test file.

    >>> place_of(Path("tests/test_softmax.py")).name
    'test_softmax.figures.txt'
    """
    return test_file.with_suffix(".figures.txt")


def heading(test: str, figures: KernelFigures, number: int) -> str:
    """The heading of a launch's section. number: of the launch among those of one kernel in the test, from 1 on."""
    launch = f", launch {number}" if number > 1 else ""
    return f"{test}: {figures.kernel}{launch} on {figures.arch}, LLVM {figures.llvm}"


def read(place: Path) -> Sections:
    """The sections of a file; none if there is no file. Raises ValueError for a line that is none of its own."""
    sections: Sections = {}
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match and sections:
            sections[next(reversed(sections))][match[1]] = float(match[2])
        elif match or line.startswith(" "):
            raise ValueError(f"{place}:{number}: a line of figures must be a name and a number, got {line!r}")
        else:
            sections[line] = {}
    return sections


def write(place: Path, changed: Mapping[str, Mapping[str, float]]) -> None:
    """Replace sections of a file, and keep the others. Processes that write at once wait for each other."""
    import fcntl

    with open(place, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sections = {**read(place), **{name: dict(values) for name, values in changed.items()}}
        file.truncate(0)
        file.write(_HEAD + "".join(_section(name, sections[name]) for name in sorted(sections)))


def _section(name: str, values: Mapping[str, float]) -> str:
    return "\n".join(["", name, *(f"  {figure:<{_WIDTH}}{value:>12g}" for figure, value in values.items()), ""])


def compare(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """The figures that changed, worse ones first."""
    names = dict.fromkeys([*before, *now])
    changes = [Change(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]
    return sorted((c for c in changes if (c.before or 0.0) != (c.now or 0.0)), key=lambda change: not change.is_worse)
