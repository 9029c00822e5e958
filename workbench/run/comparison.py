"""Two runs side by side: what each counted, and what changed from the first, the baseline, to the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.errors import ArchError, ArgumentError
from flydsl.simulator.counters import Counting, LaunchCounters
from workbench.kit.html import code, escape, table, title
from workbench.run.measures import MEASURES, roofline
from workbench.run.view import why_not_counted
from workbench.stages.names import compilation_names

# What has counters: launches, and what `counting()` yields.
Run = Launch | BinaryLaunch | LaunchCounters | Counting

_HEAD = ("what", "baseline", "now", "change")


@dataclass(frozen=True)
class Row:
    """One amount of both runs."""

    name: str
    before: float
    after: float

    def cells(self) -> list[str]:
        """The row as text; an amount that only one of them has is new, or gone."""
        return [self.name, _text(self.before), _text(self.after), self.change]

    @property
    def change(self) -> str:
        """The change in percent of the baseline."""
        if self.before == self.after:
            return ""
        return f"{(self.after - self.before) / self.before:+.1%}" if self.before else "new"


@dataclass(frozen=True)
class RunComparison:
    """Two runs, kernel by kernel in the order of their launches. called: what was launched, where it is known."""

    before: Sequence[LaunchCounters]
    after: Sequence[LaunchCounters]
    called: Sequence[str] = ()

    def kernels(self) -> Iterator[tuple[str, list[Row]]]:
        """For each kernel what both launched, the headings of both, and the amounts."""
        for before, after in zip(self.before, self.after, strict=False):
            yield " → ".join(dict.fromkeys([before.heading, after.heading])), list(_rows(before, after))

    @property
    def names(self) -> list[str]:
        """The name of each run: of its compilation, or of its first launch of a kernel."""
        return list(self.called) or [run[0].heading for run in (self.before, self.after)]

    @property
    def alone(self) -> list[str]:
        """The launches of one run that the other does not have."""
        pairs = zip_longest(self.before, self.after)
        return [
            f"only the {'second run' if before is None else 'baseline'} has {(before or after).heading}"
            for before, after in pairs
            if before is None or after is None
        ]

    def _repr_html_(self) -> str:
        parts = [
            title(f"<strong>{code(heading)}</strong>")
            + table(_HEAD, [[escape(cell) for cell in row.cells()] for row in rows], numbers=(1, 2, 3))
            for heading, rows in self.kernels()
        ]
        head = title(code(" → ".join(self.called))) if self.called else ""
        return f"<div>{head}{''.join(parts)}{''.join(title(escape(note)) for note in self.alone)}</div>"

    def __repr__(self) -> str:
        lines = [" → ".join(self.called)] if self.called else []
        for heading, rows in self.kernels():
            lines.append(heading)
            cells = [_HEAD, *(row.cells() for row in rows)]
            widths = [max(len(row[i]) for row in cells) for i in range(4)]
            lines += [
                f"  {row[0]:<{widths[0]}}  " + "  ".join(f"{row[i]:>{widths[i]}}" for i in (1, 2, 3)) for row in cells
            ]
        return "\n".join(line.rstrip() for line in [*lines, *self.alone])


def compare_runs(before: Run, after: Run) -> RunComparison:
    """Compare what two runs counted. Raises ArgumentError for one that was not counted."""
    compilations = [run.pipeline for run in (before, after) if isinstance(run, Launch)]
    called = compilation_names(compilations) if len(compilations) == 2 else ()
    return RunComparison(_counted(before), _counted(after), called)


def _counted(run: Run) -> Sequence[LaunchCounters]:
    if isinstance(run, LaunchCounters):
        return [run]
    if isinstance(run, Counting):
        found = run.launches
        reason = "no launch was counted: launch inside the `with counting()` block"
    else:
        found, reason = run.counters, "" if run.counters else why_not_counted(run)
    if not found:
        raise ArgumentError(
            f"a run without counters: {reason}", hint="workbench.profile(launcher, ...) counts a launch"
        )
    return found


def _text(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else f"{amount:.4g}"


def _rows(before: LaunchCounters, after: LaunchCounters) -> Iterator[Row]:
    """The amounts that are not 0 in both."""
    for name, one, other in _amounts(before, after):
        if one or other:
            yield Row(name, one, other)


def _amounts(before: LaunchCounters, after: LaunchCounters) -> Iterator[tuple[str, float, float]]:
    one, other = before.totals, after.totals
    for measure in MEASURES:
        yield measure.name, measure.amount(one), measure.amount(other)
    for name in dict.fromkeys([*one.by_class, *other.by_class]):
        yield f"{name} instructions", one.by_class.get(name, 0), other.by_class.get(name, 0)
    yield "% of lanes active", 100 * (one.lane_utilization or 0), 100 * (other.lane_utilization or 0)
    found, now = roofline(before), roofline(after)
    if not isinstance(found, ArchError) and not isinstance(now, ArchError):
        yield "us at peak rates, by the roofline", found.time_us, now.time_us
    if before.estimate is not None and after.estimate is not None:
        errors = f"{before.estimate.error}, now {after.estimate.error}"
        yield f"estimated time in us ({errors})", before.estimate.time_us, after.estimate.time_us
