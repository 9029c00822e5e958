"""The machine code of a kernel as it is kept beside its figures, by the lines of the source that it comes from.

    softmax.py:31  powers = x.map(...)  [812 cycles]
      v_sub_f32_e32 v4, v4, v9
      v_exp_f32_e32 v4, v4

Cycles are those of a wave of the model of time, on average.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.errors import SourceLocation
    from flydsl.simulator.counters import LaunchCounters

_NO_LINE = "without a line of the source"
_HEAD = re.compile(
    r"(?P<place>\S.*?:\d+|" + _NO_LINE + r")(?:  (?P<source>(?!\[\d+ cycles\]$).*?))?(?:  \[(?P<cycles>\d+) cycles\])?$"
)
_INDENT = "  "


@dataclass(frozen=True)
class Passage:
    """Instructions in a row that come from one line. place: "file.py:12".

    cycles: of a wave; None if unknown.
    """

    place: str
    source: str
    instructions: tuple[str, ...]
    cycles: int | None = None

    @property
    def line(self) -> tuple[str, str]:
        """The line, also where lines above it were added: its file and its text."""
        return self.place.rpartition(":")[0], self.source

    def __str__(self) -> str:
        head = _INDENT.join(filter(None, [self.place, self.source]))
        cycles = "" if self.cycles is None else f"{_INDENT}[{self.cycles} cycles]"
        return "\n".join([head + cycles, *(_INDENT + text for text in self.instructions)])


Code = tuple[Passage, ...]


def code_of(launch: LaunchCounters, root: Path) -> Code:
    """The code of the kernel of a launch, with the cycles of its trace. root: what files are called from."""
    instructions = launch.program.instructions_of(launch.kernel)
    cycles = dict(_cycles(launch.trace)) if launch.trace is not None else {}
    passages = []
    for at, group in groupby(instructions, key=lambda instruction: _line(instruction.location)):
        members = list(group)
        spent = round(sum(cycles.get(member.index, 0.0) for member in members)) if cycles else None
        texts = tuple(" ".join(member.listed.text.split()) for member in members)
        passages.append(Passage(*_described(at, root), texts, spent))
    return tuple(passages)


def _cycles(trace: Any) -> Iterator[tuple[int, float]]:
    """The cycles of a wave for each instruction of the program, by its index."""
    from flydsl.simulator.timing.hot_spots import costs

    waves = max(len(trace.waves), 1)
    return ((index, cost.cycles / waves) for index, cost in enumerate(costs(trace)))


def _line(at: SourceLocation | None) -> SourceLocation | None:
    from dataclasses import replace

    return None if at is None else replace(at, column=None, end_column=None)


def _described(at: SourceLocation | None, root: Path) -> tuple[str, str]:
    """A line as it is called on every machine, and its text: below `root`, or by its last folder."""
    if at is None:
        return _NO_LINE, ""
    file = PurePath(at.file_label)
    name = file.relative_to(root) if file.is_relative_to(root) else PurePath(*file.parts[-2:])
    return f"{name.as_posix()}:{at.line}", " ".join((at.source_line or "").split())


def text_of(code: Iterable[Passage]) -> str:
    """The text that `read` reads."""
    return "".join(f"{passage}\n" for passage in code)


def read(text: str) -> Code:
    """The code of a text. Raises ValueError for a line that `text_of` does not write.

    >>> read(text_of([Passage("a.py:3", "y = x  [0]", ("s_endpgm",), 12)]))
    (Passage(place='a.py:3', source='y = x  [0]', instructions=('s_endpgm',), cycles=12),)
    >>> code = [Passage("a.py:3", "", ("s_nop 0",), 4), Passage("a.py:4", "[4 cycles] = x", ("s_endpgm",))]
    >>> read(text_of(code)) == tuple(code)
    True
    """
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in text.splitlines():
        head = None if line.startswith(_INDENT) else _HEAD.match(line)
        if head is not None:
            found.append((head, []))
        elif found and line.startswith(_INDENT):
            found[-1][1].append(line[len(_INDENT) :])
        else:
            raise ValueError(f"a line of machine code must follow one of the source, got {line!r}")
    return tuple(
        Passage(head["place"], head["source"] or "", tuple(texts), int(head["cycles"]) if head["cycles"] else None)
        for head, texts in found
    )
