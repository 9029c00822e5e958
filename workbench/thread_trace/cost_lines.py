"""Lines of the source and of the machine code with the cycles that the traced waves spent at each."""

from __future__ import annotations

from collections.abc import Iterable

from flydsl.errors import SourceLocation
from flydsl.simulator.timing import Trace
from flydsl.simulator.timing.hot_spots import Cost, by_source_line, costs, total
from workbench.kit.html import CHARACTER_EM, escape
from workbench.run.counted_lines import BAR, CountedLine, lines_of_files
from workbench.thread_trace.palette import SHORT_REASONS

_BAR_EM = 5
_REASON_WIDTH = max(map(len, SHORT_REASONS.values()))
LEGEND = (
    "cycles: of a wave, as a mean: those that it stalled before the instruction, and those until it tried the next. "
    "share: of all cycles, which the bar shows, too: dark for issuing, pale for stalls. stalled: of the line's cycles, "
    "and mostly why"
)


def source_lines(trace: Trace) -> dict[str, list[CountedLine[Cost]]]:
    """The lines of each file, from the first to the last that an executed instruction comes from.

    The files in which most cycles go come first.
    """
    found = lines_of_files(by_source_line(trace))
    return dict(sorted(found.items(), key=lambda item: -_together(item[1]).cycles))


def _together(lines: Iterable[CountedLine[Cost]]) -> Cost:
    return total(line.counts for line in lines if line.counts is not None)


def isa_lines(trace: Trace) -> list[CountedLine[Cost]]:
    """Each instruction with its number: the address that was measured, or its place in the program, from 0.

    Without a cost where no traced wave executed it.
    """
    return [
        CountedLine(
            f"{instruction.address:04x}" if trace.origin == "rocprofv3" else str(index),
            " ".join(instruction.text.split()),
            None
            if instruction.file is None or instruction.line is None
            else SourceLocation(instruction.file, instruction.line, is_claimed=True),
            cost if cost.executions else None,
        )
        for index, (instruction, cost) in enumerate(zip(trace.instructions, costs(trace), strict=True))
    ]


class CostColumns:
    """The columns before the lines of a trace, as wide as its largest numbers."""

    def __init__(self, trace: Trace) -> None:
        parts = costs(trace)
        self._waves = max(len(trace.waves), 1)
        self._total = max(total(parts).cycles, 1)
        self._most = max((cost.cycles for cost in (*parts, *by_source_line(trace).values())), default=0) or 1
        self._width = max(6, len(self._cycles(Cost(issue_cycles=self._total))))

    @property
    def head(self) -> str:
        """The heads of the columns."""
        return f"{'cycles':>{self._width}}  share  stalled {'mostly':{_REASON_WIDTH}}"

    @property
    def width(self) -> int:
        """The width of what `html` returns in characters, the bar included."""
        return len(self.head) + 2 + round(_BAR_EM / CHARACTER_EM)

    def share(self, lines: Iterable[CountedLine[Cost]]) -> float:
        """The share of some lines of all cycles."""
        return _together(lines).cycles / self._total

    def text(self, cost: Cost | None) -> str:
        """The numbers of a line."""
        if cost is None:
            return " " * len(self.head)
        stalled = f"{cost.stall_cycles / cost.cycles:.0%}" if cost.stall_cycles else ""
        reason = SHORT_REASONS[cost.main_reason]
        share = f"{cost.cycles / self._total:.1%}"
        return f"{self._cycles(cost):>{self._width}} {share:>6}  {stalled:>7} {reason:{_REASON_WIDTH}}"

    def html(self, cost: Cost | None) -> str:
        """The numbers and the bar."""
        return f"{escape(self.text(cost))} {self.bar(cost)} "

    def short_html(self, cost: Cost | None) -> str:
        """The share, and how much of it is stalls, for where there is little room."""
        share = "" if cost is None else f"{cost.cycles / self._total:.1%}"
        stalled = f"{cost.stall_cycles / cost.cycles:.0%}" if cost is not None and cost.stall_cycles else ""
        return f"{share:>6} {stalled:>4} {self.bar(cost)} "

    def bar(self, cost: Cost | None) -> str:
        """The share of the line as a bar: what is issued, then what is stalled."""
        parts = () if cost is None else ((cost.issue_cycles, 1.0), (cost.stall_cycles, 0.45))
        pieces = "".join(
            f'<span style="display:inline-block;width:{percent}%;background-color:{BAR};opacity:{opacity}"> </span>'
            for cycles, opacity in parts
            if (percent := round(100 * cycles / self._most))
        )
        return f'<span style="display:inline-block;width:{_BAR_EM}em;text-indent:0">{pieces}</span>'

    def _cycles(self, cost: Cost) -> str:
        return f"{cost.cycles / self._waves:.0f}"
