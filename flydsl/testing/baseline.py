"""The files beside a test: its figures, one section for each launch, GPU and version of LLVM, and their machine code.

    test_softmax: softmax_kernel on gfx942, LLVM 22.1.0
      vgprs                              24
      time_us                         3.542

Sections are in the order of their headings, so that a change shows as the lines that it changes. The machine code of
each section is a file in a folder of the same name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from flydsl.errors import ArgumentError
from flydsl.testing.code import Code, text_of
from flydsl.testing.code import read as read_code
from flydsl.testing.figures import LARGER_IS_BETTER, KernelFigures
from flydsl.testing.tolerances import DEFAULT, NONE, Tolerance, Tolerances

_HEAD = "# Figures of kernels, which tests compare. `pytest --update-figures` writes them.\n"
_WIDTH = 30
_LINE = re.compile(r"  (\S.*?) {2,}(\S+)$")
_HEADING = re.compile(r"(?P<test>.*): \S+(?:, launch \d+)? on (?P<arch>\S+), LLVM (?P<llvm>\S+)$")
_MOST_NAME_CHARS = 100

Sections = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Change:
    """A figure that is not what it was. before, now: None where there is none. tolerance: by how much it may be worse.

    A figure that is new, and not 0, is worse; so is one of which less is worse, and which is gone.
    """

    name: str
    before: float | None
    now: float | None
    tolerance: Tolerance = NONE

    @property
    def lost(self) -> float:
        """By how much it is worse; below 0 if it is better."""
        gained = (self.now or 0.0) - (self.before or 0.0)
        return -gained if self.name in LARGER_IS_BETTER else gained

    @property
    def is_worse(self) -> bool:
        """True if it is worse by more than its tolerance."""
        return self.lost > self.tolerance.of(self.before or 0.0)

    @property
    def is_better(self) -> bool:
        """True if it is better by more than its tolerance, which a change of another line may bring."""
        return -self.lost > self.tolerance.of(self.before or 0.0)

    def __str__(self) -> str:
        """The change in words.

        >>> print(Change("vgprs", 24, 44), Change("time_us", 2.0, 3.0), Change("spills", None, 2), sep="; ")
        vgprs 24 -> 44 (+20); time_us 2 -> 3 (+1, +50 %); spills 0 -> 2 (+2)
        """
        before, now = self.before or 0.0, self.now or 0.0
        share = f", {100 * (now - before) / before:+.0f} %" if before and self.name in DEFAULT else ""
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


def other_versions(section: str, known: Iterable[str]) -> list[str]:
    """The versions of LLVM of which there are figures of the same launch on the same GPU.

    >>> other_versions("test_a: k_0 on gfx942, LLVM 23.1.0", ["test_a: k_0 on gfx942, LLVM 22.1.0"])
    ['22.1.0']
    """
    launch, _, version = section.rpartition(" ")
    pairs = (name.rpartition(" ") for name in known)
    return [other for same, _, other in pairs if same == launch and other != version]


def read(place: Path) -> Sections:
    """The sections of a file; none if there is no file. Raises ArgumentError for a line that is none of its own."""
    sections: Sections = {}
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match and sections:
            sections[next(reversed(sections))][match[1]] = _number(match[2], f"{place}:{number}")
        elif match or line.startswith(" ") or not _HEADING.match(line):
            raise _not_understood(f"{place}:{number}", line)
        else:
            sections[line] = {}
    return sections


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _not_understood(where, text) from None


def _not_understood(where: str, text: str) -> ArgumentError:
    return ArgumentError(
        f"{where}: a line must be a heading, or the name and the number of a figure, got {text!r}",
        hint="pytest --update-figures writes the file anew where it is missing",
    )


def find_code(place: Path, section: str) -> Code | None:
    """The machine code of a section; None if none is kept, or if it is not what `write` wrote."""
    file = _code_file(place, section)
    try:
        return read_code(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write(place: Path, found: Mapping[str, KernelFigures]) -> None:
    """Write the sections of a test. Those of the same test, GPU and LLVM that are not among them go; others stay.

    Processes that write at once wait for each other.
    """
    import fcntl

    with open(place, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = read(place)
        gone = _replaced(known, found)
        sections = {name: values for name, values in known.items() if name not in gone}
        sections |= {name: figures.values for name, figures in found.items()}
        file.truncate(0)
        file.write(_HEAD + "".join(_section(name, sections[name]) for name in sorted(sections)))
        for name in gone:
            _code_file(place, name).unlink(missing_ok=True)
        for name, figures in found.items():
            code = _code_file(place, name)
            code.parent.mkdir(exist_ok=True)
            code.write_text(text_of(figures.code), encoding="utf-8")


def _replaced(known: Iterable[str], found: Iterable[str]) -> list[str]:
    """The sections that are in place of new ones: of the same test, GPU and LLVM, and not among them."""
    runs = {_run_of(name) for name in found}
    return [name for name in known if name not in found and _run_of(name) in runs]


def _run_of(section: str) -> tuple[str, ...] | None:
    match = _HEADING.match(section)
    return match and match.group("test", "arch", "llvm")


def _code_file(place: Path, section: str) -> Path:
    """The file of the machine code of a section, which has a name that every file system takes."""
    name = re.sub(r"[^\w.\[\]-]+", "-", section)
    if name != section.replace(": ", "-").replace(", ", "-").replace(" ", "-") or len(name) > _MOST_NAME_CHARS:
        name = f"{name[:_MOST_NAME_CHARS]}-{hashlib.sha256(section.encode()).hexdigest()[:8]}"
    return place.with_suffix("") / f"{name}.s"


def _section(name: str, values: Mapping[str, float]) -> str:
    return "\n".join(["", name, *(f"  {figure:<{_WIDTH}}{value:>12g}" for figure, value in values.items()), ""])


def compare(before: Mapping[str, float], now: Mapping[str, float], tolerances: Tolerances = DEFAULT) -> list[Change]:
    """The figures that changed, worse ones first."""
    names = dict.fromkeys([*before, *now])
    changes = [Change(name, before.get(name), now.get(name), tolerances.get(name, NONE)) for name in names]
    return sorted((c for c in changes if (c.before or 0.0) != (c.now or 0.0)), key=lambda change: not change.is_worse)
