"""What `workbench.compare` and `%flydiff` compare: two compilations, stages or texts, or two traces."""

from __future__ import annotations

from typing import Any

from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Trace
from workbench.stages.comparison import Comparison, TextComparison
from workbench.stages.comparison import compare as compare_compilations
from workbench.thread_trace.comparison import TraceComparison, compare_traces


def compare(before: Any, after: Any, stage: str | int | None = None) -> Comparison | TextComparison | TraceComparison:
    """Compare two pipelines or artifacts (stage: only that stage of both), two stages, two texts, or two traces.

    Raises ArgumentError for things that cannot be compared.
    """
    if not isinstance(before, Trace) and not isinstance(after, Trace):
        return compare_compilations(before, after, stage)
    if stage is not None:
        raise ArgumentError("a trace has no stages", hint="leave out the stage")
    return compare_traces(before, after)
