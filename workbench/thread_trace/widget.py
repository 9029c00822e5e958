"""The live timeline, which can be zoomed and panned, and is linked with the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flydsl.simulator.timing import Trace
from flydsl.simulator.timing.rocprofv3_counters import MeasuredDispatch
from workbench.kit import line_list
from workbench.kit.controls import dropdown
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.content import Content, script, style
from workbench.thread_trace.view import (
    MAX_ISA_LINES,
    heading,
    trace_head_html,
    trace_html,
    trace_tables_html,
    trace_text,
    traces_html,
    traces_text,
)

_RENDER = """
function render({ model, el }) {
  const { buffer, byteOffset, byteLength } = model.get("data");
  mountTimeline(el, model.get("meta"), buffer.slice(byteOffset, byteOffset + byteLength));
}
export default { initialize: keepHearing, render };
"""


class Timeline(Scripted):
    """One trace on a canvas, or two over each other, with their code. names: of each."""

    _esm = line_list.script() + script() + _RENDER
    _css = line_list.style() + style()
    meta = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)

    def __init__(self, traces: Sequence[Trace], names: Sequence[str]) -> None:
        content = Content(traces, names)
        super().__init__(meta=content.meta(), data=content.data())


class TraceExplorer(LiveView):
    """A trace: its limits, the timeline, and tables."""

    def __init__(self, trace: Trace, measured: Sequence[MeasuredDispatch] = ()) -> None:
        self._trace, self._measured = trace, measured
        tables = "".join(trace_tables_html(trace, measured, MAX_ISA_LINES))
        super().__init__([HtmlPart(trace_head_html(trace)), Timeline([trace], [trace.kernel]), HtmlPart(tables)])

    def static_html(self) -> str:
        """The view with the picture in place of the timeline."""
        return trace_html(self._trace, self._measured)

    def static_text(self) -> str:
        """The text for a terminal."""
        return trace_text(self._trace)


class TracesExplorer(LiveView):
    """Several traces, one of them shown."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._traces = list(traces)
        self._kernel = dropdown("Kernel", [(f"{i} {heading(t)}", i) for i, t in enumerate(self._traces)], 0)
        self._kernel.observe(self._show, names="value")
        self._shown = widgets.VBox()
        self._show()
        super().__init__([*([self._kernel] if len(self._traces) > 1 else []), self._shown])

    def _show(self, _change: Any = None) -> None:
        shown = self._shown.children
        self._shown.children = [TraceExplorer(self._traces[self._kernel.value])]
        for old in shown:
            old.close()

    def static_html(self) -> str:
        """Each trace, folded where there are several."""
        return f"<div>{traces_html(self._traces)}</div>"

    def static_text(self) -> str:
        """The text for a terminal."""
        return traces_text(self._traces)


class ComparisonExplorer(LiveView):
    """Two traces over each other."""

    def __init__(self, comparison: TraceComparison) -> None:
        self._comparison = comparison
        timeline = Timeline([comparison.before, comparison.after], comparison.names)
        super().__init__([timeline, HtmlPart(comparison._repr_html_())])

    def static_html(self) -> str:
        """Numbers and pictures."""
        return self._comparison._repr_html_()

    def static_text(self) -> str:
        """The text for a terminal."""
        return repr(self._comparison)
