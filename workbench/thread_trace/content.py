"""The data of the timeline's script: names, lines and colours as JSON, the columns of the events as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flydsl.errors import SourceLocation
from flydsl.simulator.arrays import Array
from flydsl.simulator.timing import Stall, Trace, Unit
from flydsl.simulator.timing.hot_spots import Cost, issue_cycles
from flydsl.simulator.timing.perfetto import group_name, has_clock, wave_name
from flydsl.simulator.timing.utilisation import OF_A_SIMD, UNITS, span
from workbench.kit.assets import asset_text
from workbench.kit.highlight import highlight
from workbench.kit.line_list import TAGS
from workbench.run.counted_lines import CountedLine, file_name
from workbench.stages.diff import clipped
from workbench.thread_trace.cost_lines import CostColumns, isa_lines, source_lines
from workbench.thread_trace.palette import REASON_COLORS, REASON_NAMES, UNIT_COLORS, UNIT_NAMES
from workbench.thread_trace.rows import rows

_SCRIPTS = ("timeline_data.js", "timeline_pixels.js", "timeline_draw.js", "timeline.js")
_ALIGNMENT = 8


class Content:
    """One trace, or two over each other. names: of each, where they are shown together."""

    def __init__(self, traces: Sequence[Trace], names: Sequence[str]) -> None:
        self._traces, self._names = traces, names
        self._sources = _Sources(traces)

    def meta(self) -> dict[str, Any]:
        """The `meta` of `mountTimeline`."""
        return {
            "units": [
                {
                    "name": UNIT_NAMES[unit],
                    "color": UNIT_COLORS[unit],
                    "isOfSimd": unit in OF_A_SIMD,
                    "isMeasured": unit in UNITS,
                }
                for unit in Unit
            ],
            "reasons": [{"name": REASON_NAMES[stall], "color": REASON_COLORS[stall]} for stall in Stall],
            "sources": self._sources.content(),
            "traces": [self._trace(trace, name) for trace, name in zip(self._traces, self._names, strict=True)],
        }

    def data(self) -> bytes:
        """The columns of all traces, as `decodeTraces` reads them."""
        return b"".join(_aligned(column) for trace in self._traces for column in _columns(trace))

    def _trace(self, trace: Trace, name: str) -> dict[str, Any]:
        first, last = span(trace)
        columns, lines = CostColumns(trace), isa_lines(trace)
        return {
            "name": name,
            "cycles": last - first,
            "zero": first,
            "clock": trace.clock_mhz if has_clock(trace) else 0,
            "counts": {"events": len(trace.events), "waves": len(trace.waves)},
            "rows": list(_rows(trace)),
            "waveNames": [f"{group_name(trace, w)} {wave_name(trace, w)}" for w in range(len(trace.waves))],
            "units": [int(i.unit) for i in trace.instructions],
            "mnemonics": [(i.text.split(None, 1) or [""])[0] for i in trace.instructions],
            "texts": [line.text for line in lines],
            "code": [_html(line, columns, "isa", " ") for line in lines],
            "places": [self._sources.place(line.place) for line in lines],
            "stallNames": {event: trace.stall_name(event) for event in trace.writers},
            "lineNumbers": [line.place.line if line.place is not None else 0 for line in lines],
        }


class _Sources:
    """The files of all traces; the costs beside their lines are those of the last trace that has the line."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._html: dict[SourceLocation, str] = {}
        self._blank = ""
        files: dict[str, list[int]] = {}
        for trace in traces:
            columns = CostColumns(trace)
            self._blank = columns.short_html(None)
            for file, lines in source_lines(trace).items():
                files.setdefault(file, [])
                self._html |= {
                    line.place: _html(line, columns, "python") for line in lines if line.place and line.counts
                }
            for instruction in trace.instructions:
                if instruction.file is not None and instruction.line is not None:
                    files.setdefault(instruction.file, []).append(instruction.line)
        self._first = {file: min(numbers) for file, numbers in files.items()}
        self._lines = {file: [self._line(file, n) for n in range(min(ns), max(ns) + 1)] for file, ns in files.items()}
        self._index = {file: index for index, file in enumerate(self._lines)}

    def _line(self, file: str, number: int) -> str:
        place = SourceLocation(file, number, is_claimed=True)
        if place in self._html:
            return self._html[place]
        return f"{self._blank}{_text(str(number), place.source_line or '', 'python')}"

    def content(self) -> list[dict[str, Any]]:
        return [{"name": file_name(file), "lines": lines} for file, lines in self._lines.items()]

    def place(self, location: SourceLocation | None) -> list[int] | None:
        """The file and the line of it, both counted from 0."""
        return None if location is None else [self._index[location.file], location.line - self._first[location.file]]


def _html(line: CountedLine[Cost], columns: CostColumns, language: str, indent: str = "") -> str:
    return f"{columns.short_html(line.counts)}{_text(line.number, line.text, language, indent)}"


def _text(number: str, text: str, language: str, indent: str = "") -> str:
    return f"{number:>5}  {highlight(indent + clipped(text).expandtabs(4), language, TAGS)}"


def _rows(trace: Trace) -> Iterable[dict[str, Any]]:
    """A head for each compute unit, then its slots."""
    group = ""
    for row in rows(trace):
        if row.group != group:
            group = row.group
            yield {"head": group}
        yield {"name": row.name, "waves": list(row.waves)}


def _columns(trace: Trace) -> Iterable[Array]:
    first = span(trace)[0]
    events, waves = trace.events, trace.waves
    yield events["issue"].astype("<f8") - first
    yield issue_cycles(trace).astype("<u4")
    for name in ("latency", "stall", "instruction"):
        yield events[name].astype("<u4")
    yield events["reason"].astype("u1")
    for name in ("start", "end"):
        yield waves[name].astype("<f8") - first
    yield np.searchsorted(events["wave"], np.arange(len(waves) + 1)).astype("<u4")
    compute_unit = waves["xcd"].astype("<u4") << 16 | waves["cu"]
    yield np.unique(compute_unit.astype("<u8") << 8 | waves["simd"], return_inverse=True)[1].astype("<u4")
    yield compute_unit


def _aligned(column: Array) -> bytes:
    content = column.tobytes()
    return content + bytes(-len(content) % _ALIGNMENT)


def script() -> str:
    """The JavaScript: a function `mountTimeline(element, meta, buffer)`. That of `kit.line_list` goes before."""
    return asset_text(__file__, *_SCRIPTS)


def style() -> str:
    """The CSS that goes with it."""
    return asset_text(__file__, "timeline.css")
