"""The workbench: FlyDSL's compiler in a notebook.

    %load_ext workbench

gives pipelines, stages, artifacts, kernels and layouts a rich display and `.explore()`, and adds the magics
`%%flykernel` and `%flydiff`. The same is available as functions: `explore`, `compare`, `find`, `listing`, `export` and
the figures. Everything here uses only the public interface of `flydsl`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from flydsl.binary import BinaryModule
    from flydsl.codegen import Kernel
    from flydsl.compiler import JitFunction, Launch, Pipeline
    from flydsl.simulator.counters import LaunchCounters
    from workbench.machine_code.listing import IsaListing
    from workbench.stages.search import Search

__all__ = [
    "compare",
    "explore",
    "export",
    "find",
    "listing",
    "occupancy_figure",
    "open",
    "profile",
    "roofline_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def explore(value: Any, *arguments: Any, **keywords: Any) -> Any:
    """The live view of a pipeline, stage, artifact, kernel or layout: an ipywidgets widget.

    A launcher is compiled for the arguments of a call; nothing is launched. Raises ArgumentError for a value that has
    no live view.
    """
    from workbench.live_views import explore

    return explore(value, *arguments, **keywords)


def compare(before: Any, after: Any, stage: str | int | None = None) -> Any:
    """Compare two pipelines or artifacts (stage: only that stage of both), two stages, or two texts.

    Raises ArgumentError for things that cannot be compared.
    """
    from workbench.stages.comparison import compare

    return compare(before, after, stage)


def find(pipeline: Pipeline, text: str) -> Search:
    """Search a compilation for operations whose name contains a text: where they appear and where they disappear."""
    from workbench.stages.search import find

    return find(pipeline, text)


def export(value: Any, path: str | Path) -> Path:
    """Write one self-contained HTML page of a pipeline, an artifact or a launch, or of several of them."""
    from workbench.page import export

    return export(value, path)


def listing(
    value: Any, kernel: str | None = None, *, first: int = 1, count: int = 300, registers: str = ""
) -> IsaListing:
    """Any part of the machine code of a pipeline or artifact. The other views end after 300 lines of a kernel.

    kernel: the name of one; by default all. first, count: the lines to show. registers: such as "v[4:7], s2"; marks the
    instructions that read or write any of them.

    Raises ArgumentError for objects without machine code, unknown kernels, and invalid line numbers.
    """
    from workbench.machine_code.listing import part_of

    return part_of(value, kernel, first=first, count=count, registers=registers)


def open(path: str | Path, listing: str | Path | None = None) -> BinaryModule:
    """Open a code object for an AMD GPU that any compiler made. It displays its ISA, resources and occupancy.

    listing: its assembly, by default the file beside it with the suffix .s. Each kernel is an attribute, and is
    launched on the simulator with tensors on the CPU: `module.add(x, y, 1000, grid=4, block=256)`.

    Raises ArgumentError, HsacoError and ListingError for files that do not hold what they should, and CompileError if
    there is no listing and nothing to disassemble the code with.
    """
    from flydsl.binary import open_binary

    return open_binary(path, listing)


def occupancy_figure(kernel: Kernel) -> Figure:
    """Waves per SIMD against each resource, with the kernel's point on each curve, as a plotly figure."""
    from workbench.resources.occupancy_curves import occupancy_figure

    return occupancy_figure(kernel)


def profile(launcher: JitFunction, *arguments: Any, **keywords: Any) -> Launch:
    """Launch, count what the simulator executes, and return the launch. It displays itself; `.counters` has the
    numbers.

    Raises the errors of the call.
    """
    from workbench.run.view import profile

    return profile(launcher, *arguments, **keywords)


def roofline_figure(counters: LaunchCounters) -> Figure:
    """The roofline of the GPU with the estimated point of a launch, as a plotly figure.

    Raises ArchError for an architecture whose peak figures are not known.
    """
    from workbench.run.roofline import roofline_figure

    return roofline_figure(counters)


def load_ipython_extension(shell: Any) -> None:
    """IPython's hook for `%load_ext workbench`."""
    from workbench.display import register_formatters
    from workbench.live_views import add_methods
    from workbench.magic import register_magics

    register_formatters(shell)
    register_magics(shell)
    add_methods()
