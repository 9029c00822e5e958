"""Two traces over each other: two kernels, two configurations, or what was measured and what the model says."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flydsl.errors import ArgumentError, SourceLocation
from flydsl.simulator.timing import Stall, Trace
from flydsl.simulator.timing.advice import advise
from flydsl.simulator.timing.hot_spots import Cost, by_source_line, costs, total
from flydsl.simulator.timing.perfetto import has_clock
from flydsl.simulator.timing.utilisation import UNITS, span, utilisation
from workbench.kit.highlight import highlight
from workbench.kit.html import details, escape, table, title
from workbench.stages.diff import clipped
from workbench.thread_trace.overview import overview_image
from workbench.thread_trace.palette import REASON_NAMES, UNIT_NAMES
from workbench.thread_trace.view import about, advice_html, heading

MAX_LINES = 30


@dataclass(frozen=True)
class Quantity:
    """A number of both traces. form: how it is written."""

    name: str
    before: float | None
    after: float | None
    form: str = ".0f"

    def cells(self) -> list[str]:
        """Name, before, after, change: in percent, of shares in points."""
        return [self.name, *(self._text(value) for value in (self.before, self.after)), self._change()]

    def _text(self, value: float | None) -> str:
        return "" if value is None else format(value, self.form)

    def _change(self) -> str:
        if self.before is None or self.after is None:
            return ""
        if self.form.endswith("%"):
            return f"{100 * (self.after - self.before):+.1f} points"
        return f"{100 * (self.after / self.before - 1):+.1f}%" if self.before else ""


@dataclass(frozen=True, eq=False)
class TraceComparison:
    """A trace and the one that it is compared with, `before`."""

    before: Trace
    after: Trace

    @cached_property
    def names(self) -> tuple[str, str]:
        """The names of the two: by what differs."""
        for names in (
            (self.before.kernel, self.after.kernel),
            (self.before.origin, self.after.origin),
            (self.before.arch, self.after.arch),
        ):
            if names[0] != names[1]:
                return names
        return "before", "after"

    def quantities(self) -> Iterator[Quantity]:
        """The numbers that are compared."""
        pair = (self.before, self.after)
        if all(map(has_clock, pair)):
            errors = [trace.estimate.error if trace.origin == "model" else "measured" for trace in pair]
            name = f"time of the launch, us ({', now '.join(errors)})"
            yield Quantity(name, self.before.time_us, self.after.time_us, ".4g")
        yield Quantity("cycles of the launch", self.before.cycles, self.after.cycles)
        first, second = (total(costs(trace)) for trace in pair)
        waves = [max(len(trace.waves), 1) for trace in pair]
        yield Quantity("cycles of a wave", first.cycles / waves[0], second.cycles / waves[1])
        executed = (first.executions / waves[0], second.executions / waves[1])
        yield Quantity("instructions of a wave", *executed)
        busy, other = (utilisation(trace) for trace in pair)
        yield Quantity("waves on a SIMD at a time", busy.waves_per_simd, other.waves_per_simd, ".2f")
        for unit in UNITS:
            if unit in busy.busy or unit in other.busy:
                shares = busy.busy.get(unit, 0.0), other.busy.get(unit, 0.0)
                yield Quantity(f"{UNIT_NAMES[unit]} has work", *shares, ".1%")
        yield Quantity("some wave of a SIMD issues", busy.issuing, other.issuing, ".1%")
        for reason in Stall:
            if first.stalls[reason] or second.stalls[reason]:
                stalls = (first.stalls[reason] / waves[0], second.stalls[reason] / waves[1])
                yield Quantity(f"{REASON_NAMES[reason]}, cycles of a wave", *stalls)

    def lines(self) -> list[tuple[SourceLocation, Cost | None, Cost | None]]:
        """The lines of the source that either executed, those whose cycles of a wave differ most first."""
        first, second = by_source_line(self.before), by_source_line(self.after)
        places = list(dict.fromkeys([*first, *second]))
        found = [(place, first.get(place), second.get(place)) for place in places]
        return sorted(
            found, key=lambda line: -abs(self._of_a_wave(line[2], self.after) - self._of_a_wave(line[1], self.before))
        )

    @staticmethod
    def _of_a_wave(cost: Cost | None, trace: Trace) -> float:
        return 0.0 if cost is None else cost.cycles / max(len(trace.waves), 1)

    def _repr_html_(self) -> str:
        """Numbers side by side, both pictures on one scale, the lines that changed."""
        cycles = max(last - first for first, last in map(span, (self.before, self.after)))
        parts = [title(f"<strong>{escape(self.names[0])} → {escape(self.names[1])}</strong>"), self._numbers_html()]
        for name, trace in zip(self.names, (self.before, self.after), strict=True):
            parts.append(title(escape(f"{name}: {heading(trace)}; {about(trace)}.")))
            parts += [advice_html(advise(trace)), overview_image(trace, cycles)]
        return f"<div>{''.join([*parts, self._lines_html()])}</div>"

    def _numbers_html(self) -> str:
        rows = [[escape(cell) for cell in quantity.cells()] for quantity in self.quantities()]
        return table(("", *map(escape, self.names), "change"), rows, numbers=(1, 2, 3))

    def _lines_html(self) -> str:
        rows = []
        for place, first, second in self.lines()[:MAX_LINES]:
            cells = (self._of_a_wave(first, self.before), self._of_a_wave(second, self.after))
            where = f"{posixpath.basename(place.file_label)}:{place.line}"
            code = f"<code>{highlight(clipped((place.source_line or '').strip()), 'python')}</code>"
            rows.append([escape(where), *(f"{cell:.0f}" for cell in cells), f"{cells[1] - cells[0]:+.0f}", code])
        head = ("line", *map(escape, self.names), "change", "source")
        return details("Cycles of a wave at each line", table(head, rows, numbers=(1, 2, 3)), is_open=True)

    def __repr__(self) -> str:
        rows = [quantity.cells() for quantity in self.quantities()]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [f"{self.names[0]} -> {self.names[1]}"]
        for name, *cells in rows:
            numbers = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            lines.append(f"{name:<{widths[0]}}  {numbers}")
        return "\n".join(lines)


def compare_traces(before: Any, after: Any) -> TraceComparison:
    """Compare two traces. Raises ArgumentError for other objects."""
    for value in (before, after):
        if not isinstance(value, Trace):
            raise ArgumentError(f"a trace must be a Trace, got {type(value).__name__}", hint="compare two traces")
    return TraceComparison(before, after)
