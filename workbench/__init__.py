"""The workbench: FlyDSL's compiler in a notebook.

    %load_ext workbench

gives pipelines, stages, artifacts, kernels and layouts a rich display and `.explore()`, and adds the magics
`%%flykernel` and `%flydiff`. The same is available as functions: `explore`, `compare`, `find`, `listing`, `export` and
the figures. Everything here uses only the public interface of `flydsl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flydsl.compiler.user_error import user_facing

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from flydsl.binary import BinaryModule
    from flydsl.codegen import Kernel
    from flydsl.compiler import JitFunction, Launch, Pipeline
    from flydsl.simulator.counters import LaunchCounters
    from flydsl.sweeps import Table
    from workbench.machine_code.listing import IsaListing
    from workbench.stages.search import Search
    from workbench.thread_trace.comparison import TraceComparison
    from workbench.thread_trace.trace_view import TraceView

__all__ = [
    "compare",
    "explore",
    "export",
    "find",
    "heat_map_figure",
    "listing",
    "occupancy_figure",
    "open",
    "pareto_figure",
    "profile",
    "roofline_figure",
    "timeline",
    "trace",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        from flydsl.errors import MissingName, did_you_mean

        suggestion = f"{did_you_mean(name, __all__)}there are {', '.join(__all__)}"
        raise MissingName(f"module {__name__!r} has no attribute {name!r}", hint=suggestion)


@user_facing
def explore(value: Any, *arguments: Any, **keywords: Any) -> Any:
    """The live view of a pipeline, stage, artifact, kernel or layout: an ipywidgets widget.

    A launcher is compiled for the arguments of a call; nothing is launched. Raises ArgumentError for a value that has
    no live view.
    """
    from workbench.live_views import explore

    return explore(value, *arguments, **keywords)


@user_facing
def compare(before: Any, after: Any, stage: str | int | None = None) -> Any:
    """Compare two pipelines or artifacts (stage: only that stage of both), two stages, texts, counted runs or traces.

    Of two runs (launches that were counted, or what `counting()` yields) the first one is the baseline.

    Raises ArgumentError for things that cannot be compared.
    """
    from workbench.comparisons import compare

    return compare(before, after, stage)


@user_facing
def find(pipeline: Pipeline, text: str) -> Search:
    """Search a compilation for operations whose name contains a text: where they appear and where they disappear."""
    from workbench.kit.kinds import require
    from workbench.stages.search import find

    require("find", text, str, 'a part of a name, such as "logical_divide"')
    return find(pipeline, text)


@user_facing
def export(value: Any, path: str | Path) -> Path:
    """Write one self-contained HTML page of a pipeline, an artifact, a launch or a trace, or of several of them."""
    from workbench.page import export

    return export(value, path)


@user_facing
def listing(
    value: Any,
    kernel: str | None = None,
    *,
    first: int = 1,
    count: int = 300,
    registers: str = "",
    encodings: bool = False,
) -> IsaListing:
    """Any part of the machine code of a pipeline or artifact. The other views end after 300 lines of a kernel.

    kernel: the name of one; by default all. first, count: the lines to show. registers: such as "v[4:7], s2"; marks the
    instructions that read (r) or write (w) any of them, and those at which one is in use. encodings: show the bytes of
    each instruction, as dwords.

    Raises ArgumentError for objects without machine code, unknown kernels, and invalid line numbers.
    """
    from workbench.machine_code.listing import part_of

    return part_of(value, kernel, first=first, count=count, registers=registers, encodings=encodings)


@user_facing
def open(path: str | Path, listing: str | Path | None = None, *, check_listing: bool = True) -> BinaryModule:
    """Open a code object for an AMD GPU that any compiler made. It displays its ISA, resources and occupancy.

    listing: its assembly, by default the file beside it with the suffix .s. Each kernel is an attribute, and is
    launched on the simulator with tensors on the CPU: `module.add(x, y, 1000, grid=4, block=256)`.
    check_listing: if False, it is not compared with the code object.

    Without a listing the code is disassembled by an llvm-objdump that knows the GPU; if there is none, only the
    kernels, their resources and occupancy are shown, and a launch says what is missing.

    Raises ArgumentError, HsacoError and ListingError for files that do not hold what they should.
    """
    from flydsl.binary import open_binary

    return open_binary(path, listing, check_listing=check_listing)


@user_facing
def occupancy_figure(kernel: Kernel) -> Figure:
    """Waves per SIMD against each resource, with the kernel's point on each curve, as a plotly figure.

    kernel: of an artifact, `p.artifact.kernels[0]`. Raises ArgumentError for anything else.
    """
    from flydsl.arch.occupancy import Usage
    from flydsl.codegen import Kernel
    from workbench.kit.kinds import require
    from workbench.resources.occupancy_curves import occupancy_figure

    require("occupancy_figure", kernel, (Kernel, Usage), "a kernel: p.artifact.kernels[0] of a compilation p")
    return occupancy_figure(kernel)


@user_facing
def profile(launcher: JitFunction, *arguments: Any, **keywords: Any) -> Launch:
    """Launch, count what the simulator executes, and return the launch. It displays itself; `.counters` has the
    numbers.

    Raises the errors of the call.
    """
    from workbench.run.view import profile

    return profile(launcher, *arguments, **keywords)


@user_facing
def roofline_figure(counters: LaunchCounters) -> Figure:
    """The roofline of the GPU with the point of a launch, as a plotly figure.

    counters: of a launch, `workbench.profile(...).counters[0]`. Raises ArgumentError for anything else, and ArchError
    for an architecture whose peak figures are not known.
    """
    from flydsl.simulator.counters import LaunchCounters
    from workbench.kit.kinds import require
    from workbench.run.roofline import roofline_figure

    require("roofline_figure", counters, LaunchCounters, "counters: workbench.profile(launcher, ...).counters[0]")
    return roofline_figure(counters)


@user_facing
def timeline(
    source: Any,
    baseline: Any = None,
    *,
    counters: str | Path | Sequence[str | Path] = (),
    arch: str | None = None,
    clock_mhz: float | None = None,
) -> TraceView | TraceComparison:
    """The view of a thread trace, or of two over each other. Its `.explore()` zooms.

    source, baseline: a `Trace`, a launch that was timed, the folder `ui_output_*` that `rocprofv3 --att` wrote, or a
    file with `Trace.to_json()` in it. counters: files `*_counter_collection.csv` of rocprofv3, shown beside the trace.
    arch, clock_mhz: of the GPU, where the folder does not say it.

    Raises ArgumentError for other sources, and for files that are not as they should be.
    """
    from workbench.thread_trace.trace_view import timeline

    return timeline(source, baseline, counters=counters, arch=arch, clock_mhz=clock_mhz)


@user_facing
def heat_map_figure(
    table: Table, x: str | None = None, y: str | None = None, value: str | None = None, **where: Any
) -> Figure:
    """The times of a sweep (or another column) over two of its parameters, as a plotly figure.

    x, y: by default the first two parameters with several values. where: values of other columns, such as n=4096.
    Where several rows fall into a field, the smallest number counts.

    Raises ArgumentError for what is no table, and for names that no row has.
    """
    from flydsl.sweeps import Table
    from workbench.kit.kinds import require
    from workbench.sweeps.heat_map import heat_map_figure

    require("heat_map_figure", table, Table, "the table that flydsl.sweep returns")
    return heat_map_figure(table, x, y, value, **where)


@user_facing
def pareto_figure(table: Table, small: str | None = None, large: str = "waves_per_simd") -> Figure:
    """The rows of a sweep by time and waves per SIMD, and the front that no other row beats in both; for plotly.

    small, large: other columns, of which small and large numbers are good. Raises ArgumentError for what is no table,
    and for names that no row has.
    """
    from flydsl.sweeps import Table
    from workbench.kit.kinds import require
    from workbench.sweeps.pareto import pareto_figure

    require("pareto_figure", table, Table, "the table that flydsl.sweep returns")
    return pareto_figure(table, small, large)


@user_facing
def trace(launcher: JitFunction, *arguments: Any, **keywords: Any) -> Launch:
    """Launch, time what the simulator executes, and return the launch. `.trace` displays itself as a timeline.

    Raises the errors of the call.
    """
    from workbench.run.view import trace

    return trace(launcher, *arguments, **keywords)


def load_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%load_ext workbench`."""
    from flydsl.sweeps import show_progress_with
    from workbench.display import register_formatters
    from workbench.live_views import add_methods
    from workbench.magic import register_magics
    from workbench.progress_line import show_progress
    from workbench.sweeps.progress import Progress

    register_formatters(shell)
    register_magics(shell)
    add_methods()
    show_progress_with(Progress())
    show_progress(shell)


def unload_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%unload_ext workbench`: what loading it added is gone, and `%reload_ext` begins anew."""
    from flydsl.sweeps import show_progress_with
    from workbench.display import unregister_formatters
    from workbench.live_views import remove_methods
    from workbench.magic import unregister_magics
    from workbench.progress_line import hide_progress

    hide_progress(shell)
    show_progress_with(None)
    remove_methods()
    unregister_magics(shell)
    unregister_formatters(shell)
