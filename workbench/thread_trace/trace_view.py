"""`workbench.timeline`: the view of a trace from wherever it comes, the simulator or a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.errors import ArgumentError
from flydsl.simulator.timing import Trace, TracedLaunch, Tracing
from flydsl.simulator.timing.rocprofv3_counters import MeasuredDispatch, of_kernel, read_counters
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.view import trace_html, trace_text


@dataclass(frozen=True, eq=False)
class TraceView:
    """A trace, and what was measured of the same kernel."""

    trace: Trace
    measured: Sequence[MeasuredDispatch] = ()

    def _repr_html_(self) -> str:
        return trace_html(self.trace, self.measured)

    def __repr__(self) -> str:
        return trace_text(self.trace)


def timeline(
    source: Any,
    baseline: Any = None,
    *,
    counters: str | Path | Sequence[str | Path] = (),
    arch: str | None = None,
    clock_mhz: float | None = None,
) -> TraceView | TraceComparison:
    """The view of a thread trace, or of two over each other. Its `.explore()` zooms.

    source, baseline: a `Trace`, a launch that was timed, the folder that `rocprofv3 --att` wrote, or a file with
    `Trace.to_json()` in it.
    counters: files `*_counter_collection.csv` of rocprofv3, shown beside the trace. arch, clock_mhz: of the GPU, where
    the folder does not say it (see `read_thread_trace`).

    Raises ArgumentError for other sources, and for files that are not as they should be.
    """
    trace = open_trace(source, arch, clock_mhz)
    files = [counters] if isinstance(counters, str | Path) else list(counters)
    if baseline is None:
        return TraceView(trace, of_kernel(read_counters(*files), trace.kernel))
    if files:
        raise ArgumentError("counters are shown beside one trace", hint="leave out baseline, or counters")
    return TraceComparison(open_trace(baseline, arch, clock_mhz), trace)


def open_trace(source: Any, arch: str | None = None, clock_mhz: float | None = None) -> Trace:
    """The trace in a source, as `timeline` takes it."""
    if isinstance(source, Trace):
        return source
    if isinstance(source, TraceView | TracedLaunch | Launch | BinaryLaunch):
        return source.trace
    if isinstance(source, Tracing) and len(source.launches) == 1:
        return source.launches[0].trace
    if not isinstance(source, str | Path):
        several = f" of {len(source.launches)} launches" if isinstance(source, Tracing) else ""
        raise ArgumentError(
            f"a trace must be one launch or a path, got {type(source).__name__}{several}",
            hint="give a Trace, a folder that rocprofv3 --att wrote, or a file that has Trace.to_json() in it",
        )
    path = Path(source)
    if path.is_dir() or not path.exists():
        from flydsl.simulator.timing.rocprofv3 import read_thread_trace  # brings the model's instructions

        return read_thread_trace(path, arch=arch, clock_mhz=clock_mhz)
    if path.suffix == ".csv":
        raise ArgumentError(f"{path} has counters, and no trace", hint="give it as counters=, beside a trace")
    try:
        return Trace.from_json(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}", hint="give a file with Trace.to_json() in it") from error
