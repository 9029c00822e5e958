"""The comparisons of `workbench.compare` and `%flydiff`: two compilations, stages, texts, runs or traces."""

from __future__ import annotations

from typing import Any

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Trace
from workbench.run.comparison import Run, RunComparison, compare_runs
from workbench.stages.comparison import Comparison, TextComparison
from workbench.stages.comparison import compare as compare_compilations
from workbench.thread_trace.comparison import TraceComparison, compare_traces


def compare(
    before: Any, after: Any, stage: str | int | None = None
) -> Comparison | TextComparison | TraceComparison | RunComparison:
    """Compare two pipelines or artifacts (stage: only that stage of both), two stages, texts, counted runs or traces.

    Of two runs (launches that were counted, or what `counting()` yields) the first one is the baseline.

    Raises ArgumentError for things that cannot be compared.
    """
    if isinstance(before, Run) and isinstance(after, Run):
        if stage is not None:
            raise ArgumentError("a run has no stages", hint="leave out the stage")
        return compare_runs(before, after)
    if not isinstance(before, Trace) and not isinstance(after, Trace):
        return compare_compilations(before, after, stage)
    if stage is not None:
        raise ArgumentError("a trace has no stages", hint="leave out the stage")
    return compare_traces(before, after)
