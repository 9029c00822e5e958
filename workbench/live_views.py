"""Live views: `workbench.explore(x)`, and `x.explore()` once the extension is loaded.

flydsl does not depend on the workbench: the extension adds the method to its classes when a notebook runs
`%load_ext workbench`. Widgets are imported when the first one is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.binary import BinaryKernel, BinaryLaunch
from flydsl.codegen import Kernel
from flydsl.compiler import CompiledArtifact, JitFunction, Launch, Pipeline, Stage
from flydsl.errors import ArgumentError, FlyError, SimulatorError
from flydsl.simulator.counters import Counting, LaunchCounters
from flydsl.simulator.stepping.recording import Recording
from flydsl.simulator.stepping.simulation import Simulation
from flydsl.simulator.timing import Trace, TracedLaunch, Tracing
from flydsl.sweeps import Table
from workbench.layouts.live_views import EXPLORERS as LAYOUT_EXPLORERS
from workbench.stages.comparison import Comparison
from workbench.stages.levels import Level
from workbench.thread_trace.comparison import TraceComparison
from workbench.thread_trace.trace_view import TraceView


def explore_launch(function: JitFunction, *arguments: Any, **keywords: Any) -> Any:
    """Compile a launcher for arguments, without launching, and explore the compilation; a failed stage is shown."""
    pipeline = function.lower(*arguments, **keywords)
    try:
        pipeline.run()
    except FlyError:
        if not any(stage.error for stage in pipeline):
            raise
    return explore_pipeline(pipeline)


def explore_pipeline(pipeline: Pipeline) -> Any:
    """The live view of a compilation, as far as it has run."""
    from workbench.compilation_explorer import Explorer

    return Explorer(pipeline)


def explore_artifact(artifact: CompiledArtifact) -> Any:
    """The live view of the compilation behind an artifact."""
    return explore_pipeline(artifact.pipeline)


def explore_stage(stage: Stage) -> Any:
    """The live diff of the module before and after a stage."""
    from workbench.stages.comparers import LevelComparer

    texts = {"before": stage.before, "after": stage.after if stage.state == "done" else ""}
    forms = [Level(name, "mlir", tuple(text.splitlines()), ()) for name, text in texts.items() if text]
    return LevelComparer(forms)


def explore_kernel(kernel: Kernel) -> Any:
    """The live occupancy of a kernel, with adjustable amounts."""
    from workbench.resources.what_if import WhatIf

    return WhatIf(kernel.usage, kernel.name)


def explore_binary_kernel(kernel: BinaryKernel) -> Any:
    """The live occupancy of a kernel of another compiler."""
    return explore_kernel(kernel.resources)


def explore_comparison(comparison: Comparison, stage: str | int | None = None) -> Any:
    """Compare stage by stage. stage: the one shown first, by name or number; None: the module as traced."""
    from workbench.stages.comparers import StageComparer

    return StageComparer(comparison, stage)


def explore_simulation(simulation: Simulation) -> Any:
    """The stepper."""
    from workbench.run.stepper_widget import Stepper

    return Stepper(simulation)


def explore_recording(recording: Recording) -> Any:
    """The stepper, where the recording stands."""
    from workbench.run.stepper_widget import Stepper

    return Stepper(recording)


def explore_fault(error: SimulatorError) -> Any:
    """The stepper, before the instruction that raised the error of a launch, with what led there."""
    return explore_recording(error.simulation)


def explore_run(launch: Launch | BinaryLaunch) -> Any:
    """The timeline of a past launch if it was timed, its counters, and a stepper on copies of its tensors."""
    from workbench.launch_explorer import LaunchExplorer
    from workbench.run.widget import RunExplorer

    return LaunchExplorer(launch) if launch.traces else RunExplorer(launch)


def explore_counters(counters: LaunchCounters) -> Any:
    """The live counters of a launch."""
    from workbench.run.widget import CountersExplorer

    return CountersExplorer([counters])


def explore_counting(counting: Counting) -> Any:
    """The counters of each launch. Raises ArgumentError if there was none."""
    from workbench.run.widget import CountersExplorer

    if not counting.launches:
        raise ArgumentError("no launch was counted", hint="launch inside the `with counting()` block")
    return CountersExplorer(counting.launches)


def explore_trace(trace: Trace) -> Any:
    """The timeline, zoomed and panned, with the code."""
    from workbench.thread_trace.widget import TraceExplorer

    return TraceExplorer(trace)


def explore_tracing(tracing: Tracing) -> Any:
    """The timeline of each launch. Raises ArgumentError if there was none."""
    from workbench.thread_trace.widget import TracesExplorer

    if not tracing.launches:
        raise ArgumentError("no launch was timed", hint="launch inside the `with tracing()` block")
    return TracesExplorer([launch.trace for launch in tracing.launches])


def explore_traced_launch(launch: TracedLaunch) -> Any:
    """The timeline of a launch."""
    return explore_trace(launch.trace)


def explore_trace_view(view: TraceView) -> Any:
    """The timeline, and what was measured."""
    from workbench.thread_trace.widget import TraceExplorer

    return TraceExplorer(view.trace, view.measured)


def explore_traces(comparison: TraceComparison) -> Any:
    """Two timelines over each other."""
    from workbench.thread_trace.widget import ComparisonExplorer

    return ComparisonExplorer(comparison)


def explore_sweep(table: Table) -> Any:
    """The live table of a sweep, and its heat map."""
    from workbench.sweeps.widget import SweepExplorer

    return SweepExplorer(table)


# Every type that has a live view, and what makes it: called with the value and whatever else `explore` was given.
EXPLORERS: dict[type, Callable[..., Any]] = {
    JitFunction: explore_launch,
    Pipeline: explore_pipeline,
    CompiledArtifact: explore_artifact,
    Stage: explore_stage,
    Kernel: explore_kernel,
    Comparison: explore_comparison,
    Simulation: explore_simulation,
    Recording: explore_recording,
    SimulatorError: explore_fault,
    Launch: explore_run,
    BinaryLaunch: explore_run,
    BinaryKernel: explore_binary_kernel,
    LaunchCounters: explore_counters,
    Counting: explore_counting,
    Trace: explore_trace,
    TracedLaunch: explore_traced_launch,
    Tracing: explore_tracing,
    TraceView: explore_trace_view,
    TraceComparison: explore_traces,
    Table: explore_sweep,
    **LAYOUT_EXPLORERS,
}


def explore(value: Any, *arguments: Any, **options: Any) -> Any:
    """The live view of a pipeline, stage, artifact, kernel or layout: an ipywidgets widget.

    A launcher is compiled for the arguments of a call; nothing is launched. Raises ArgumentError for a value that has
    no live view.
    """
    for kind in type(value).__mro__:
        if kind in EXPLORERS:
            return EXPLORERS[kind](value, *arguments, **options)
    names = ", ".join(sorted({kind.__name__ for kind in EXPLORERS}))
    raise ArgumentError(f"a {type(value).__name__} has no live view", hint=f"these have one: {names}")


def add_methods() -> None:
    """Give every type that has a live view the method `explore`."""
    for kind, explorer in EXPLORERS.items():
        kind.explore = explorer  # type: ignore[attr-defined]


def remove_methods() -> None:
    """Take it away again."""
    for kind in EXPLORERS:
        del kind.explore  # type: ignore[attr-defined]
