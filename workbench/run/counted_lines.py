"""The lines of the source and of the machine code with what a launch counted at each, static and as linked levels."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Generic, Protocol, TypeVar

from flydsl.errors import SourceLocation
from flydsl.simulator.counters import Counts, LaunchCounters
from workbench.kit.highlight import highlight
from workbench.kit.html import CHARACTER_EM, code_line, listing
from workbench.run.measures import Measure, nonzero_measures
from workbench.stages.diff import clipped
from workbench.stages.levels import Level, place_key

BAR = "#0077b6"  # seen on white and on black; the number beside it says the same
_BAR_EM = 2
_LARGEST_GAP = 4  # lines of the source without counts that are shown between two with


Amounts = TypeVar("Amounts")
_Shown = TypeVar("_Shown", contravariant=True)


@dataclass(frozen=True)
class CountedLine(Generic[Amounts]):
    """A line. number: as people refer to it, "17" or "isa:42". counts: None where nothing of it was executed."""

    number: str
    text: str
    place: SourceLocation | None
    counts: Amounts | None


class LineColumns(Protocol[_Shown]):
    """The columns before each line: `head` over all of them, and for a line's counts HTML of `width` characters."""

    @property
    def head(self) -> str: ...

    @property
    def width(self) -> int: ...

    def html(self, counts: _Shown | None) -> str: ...


def source_lines(counters: LaunchCounters) -> dict[str, list[CountedLine[Counts]]]:
    """The lines of each file, from the first with counts to the last."""
    return lines_of_files(counters.by_source_line)


def lines_of_files(by_place: Mapping[SourceLocation, Amounts]) -> dict[str, list[CountedLine[Amounts]]]:
    """The lines of each file, from the first with amounts to the last."""
    found = {}
    for file in dict.fromkeys(place.file for place in by_place):
        numbers = [place.line for place in by_place if place.file == file]
        places = [SourceLocation(file, line, is_claimed=True) for line in range(min(numbers), max(numbers) + 1)]
        found[file] = [
            CountedLine(str(place.line), place.source_line or "", place, by_place.get(place)) for place in places
        ]
    return found


def isa_lines(counters: LaunchCounters) -> list[CountedLine[Counts]]:
    """The instructions of the kernel in order, executed or not."""
    program = counters.program
    entry = program.labels[counters.kernel]
    ends = [start for name in program.kernels if (start := program.labels[name]) > entry]
    inside = program.instructions[entry : min(ends, default=None)]
    by_line = counters.by_line
    return [
        CountedLine(f"isa:{i.listed.line}", " ".join(i.listed.text.split()), i.location, by_line.get(i.listed.line))
        for i in inside
    ]


def hottest(
    lines: Sequence[CountedLine[Counts]], measure: Measure, count: int | None = None
) -> list[CountedLine[Counts]]:
    """The lines with the largest counts first, without zeros. Lines whose measure is unknown come last."""
    with_some = [line for line in lines if line.counts is not None and measure.text(line.counts)]
    ordered = sorted(with_some, key=lambda line: -measure.amount(line.counts or Counts()))
    return ordered[:count]


class Columns:
    """The columns of a launch's counters, as wide as its largest numbers.

    heat: the measure that the bar shows: each line's share of the whole launch.
    """

    def __init__(self, counters: LaunchCounters, heat: Measure) -> None:
        self.heat = heat
        self._measures = nonzero_measures(counters)
        self._total = heat.amount(counters.totals)
        amounts = [heat.amount(counts) for counts in (*counters.by_line.values(), *counters.by_source_line.values())]
        self._most = max(amounts, default=0)
        self._heat_width = len(heat.text(counters.totals))
        self._widths = [max(len(m.head), len(m.text(counters.totals))) for m in self._measures]
        self._blank = " " * len(self._numbers(counters.totals))

    @property
    def head(self) -> str:
        """The heads of the columns, as text that is as wide as they are."""
        names = " ".join(m.head.rjust(width) for m, width in zip(self._measures, self._widths, strict=True))
        return f"{names} lanes  share"

    @property
    def width(self) -> int:
        """The width of what `html` returns in characters, the bar included."""
        return len(self._blank) + 2 + round(_BAR_EM / CHARACTER_EM)

    def text(self, counts: Counts | None) -> str:
        """The numbers of a line."""
        return self._blank if counts is None else self._numbers(counts)

    def html(self, counts: Counts | None) -> str:
        """The numbers of a line and its bar. Wide as every other line's."""
        return f"{self.text(counts)} {self._bar(counts)} "

    def short_html(self, counts: Counts | None) -> str:
        """The heat alone, for where there is little room."""
        text = "" if counts is None else self.heat.text(counts)
        return f"{text:>{self._heat_width}} {self._bar(counts)} "

    def _bar(self, counts: Counts | None) -> str:
        amount = 0 if counts is None else self.heat.amount(counts)
        percent = round(100 * amount / self._most) if self._most else 0
        filled = (
            f'<span style="display:inline-block;width:{percent}%;background-color:{BAR}"> </span>' if percent else ""
        )
        return f'<span style="display:inline-block;width:{_BAR_EM}em;text-indent:0">{filled}</span>'

    def _numbers(self, counts: Counts) -> str:
        numbers = [m.text(counts).rjust(width) for m, width in zip(self._measures, self._widths, strict=True)]
        lanes = f"{counts.active_lanes / counts.vector_executions:.1f}" if counts.vector_executions else ""
        amount = self.heat.amount(counts)
        share = f"{amount / self._total:.1%}" if amount else ""
        return " ".join([*numbers, lanes.rjust(5), share.rjust(6)])


def source_html(lines: Sequence[CountedLine[Amounts]], columns: LineColumns[Amounts]) -> str:
    """A file's lines, long stretches without counts left out."""
    return listing(f"{escape(columns.head)}\n{''.join(_folded(lines, columns))}")


def _folded(lines: Sequence[CountedLine[Amounts]], columns: LineColumns[Amounts]) -> Iterator[str]:
    counted = [index for index, line in enumerate(lines) if line.counts is not None]
    width = max((len(line.number) for line in lines), default=0)
    shown = -1
    for index in counted:
        if index - shown - 1 > _LARGEST_GAP:
            yield f"… {index - shown - 1} lines without code\n"
            shown = index - 1
        for line in lines[shown + 1 : index + 1]:
            text = clipped(line.text)
            content = f"{columns.html(line.counts)}{line.number:>{width}}  {highlight(text, 'python')}"
            indent = columns.width + width + 2
            yield code_line(content, columns=indent + len(text), indent=indent + len(text) - len(text.lstrip()))
        shown = index


def isa_html(lines: Sequence[CountedLine[Amounts]], columns: LineColumns[Amounts], max_lines: int) -> str:
    """Instructions, up to a number of them."""
    width = max((len(line.number) for line in lines), default=0)
    indent = columns.width + width + 2
    rows = [
        code_line(
            f"{columns.html(line.counts)}{line.number:>{width}} {highlight(f' {text}', 'isa')}{escape(origin)}",
            columns=indent + len(text) + len(origin),
            indent=indent,
        )
        for line in lines[:max_lines]
        for text in [clipped(line.text)]
        for origin in ["" if line.place is None else f"  ; {place_key(line.place)}"]
    ]
    left = len(lines) - max_lines
    more = [f"{left} more; the exported page and .explore() show all"] if left > 0 else []
    return listing("".join([f"{escape(columns.head)}\n", *rows, *more]))


def linked_levels(counters: LaunchCounters, heat: Measure) -> list[Level]:
    """The source, the machine code in order, and the same with the hottest first, for the linked view."""
    columns = Columns(counters, heat)
    isa = isa_lines(counters)
    found = [_level(file_name(file), "python", lines, columns) for file, lines in source_lines(counters).items()]
    found.append(_level("ISA", "isa", isa, columns))
    found.append(_level(f"ISA, most {heat.name} first", "isa", hottest(isa, heat), columns))
    return found


def file_name(file: str) -> str:
    """A file of the source as people know it."""
    return posixpath.basename(SourceLocation(file, 1).file_label)


def _level(name: str, language: str, lines: Sequence[CountedLine[Counts]], columns: Columns) -> Level:
    width = max((len(line.number) for line in lines), default=0)
    indent = "\t" if language == "isa" else " "
    return Level(
        name,
        language,
        (" of each line, over all waves", *(f"{indent}{line.text}" for line in lines)),
        (None, *(line.place for line in lines)),
        (escape(columns.heat.name), *(f"{columns.short_html(line.counts)}{line.number:>{width}}" for line in lines)),
    )
