"""The notebook display of the compiler's objects, active once the extension is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.arch import Occupancy
from flydsl.binary import BinaryKernel, BinaryLaunch, BinaryModule
from flydsl.codegen import CodeObject, Kernel, Resources
from flydsl.compiler import CompiledArtifact, Launch, Pipeline, Stage
from flydsl.simulator.counters import Counting, LaunchCounters
from flydsl.simulator.stepping.simulation import Simulation
from flydsl.simulator.timing import Trace, TracedLaunch, Tracing
from flydsl.sweeps import Row, Table
from workbench.binary_report import kernel_view_html, kernel_view_text, module_html, module_text
from workbench.kit.html import ON_PAPER
from workbench.launch_view import launch_html, launch_text
from workbench.layouts import SHOWN, layout_bundle
from workbench.machine_code.listing import isa_html, isa_text
from workbench.resources.occupancy import (
    kernel_html,
    kernel_text,
    kernels_html,
    occupancy_html,
    occupancy_text,
    resources_html,
    resources_text,
)
from workbench.run.counters import counters_html, counters_text, counting_html, counting_text
from workbench.run.stepper import simulation_html
from workbench.stages.pipeline import pipeline_html, stage_html, stage_text
from workbench.sweeps.rows import row_html, sweep_html, sweep_text
from workbench.thread_trace.view import trace_html, trace_text, tracing_html, tracing_text


def artifact_html(artifact: CompiledArtifact | CodeObject) -> str:
    """Resources of every kernel, and the ISA."""
    return f"<div>{kernels_html(artifact.kernels)}{isa_html(artifact)}</div>"


def artifact_text(artifact: CompiledArtifact | CodeObject) -> str:
    """Resources of every kernel, and the ISA, as text."""
    return "\n\n".join([*map(kernel_text, artifact.kernels), isa_text(artifact)])


# Every type with its HTML and its text.
VIEWS: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    Pipeline: (pipeline_html, repr),
    Stage: (stage_html, stage_text),
    CompiledArtifact: (artifact_html, artifact_text),
    CodeObject: (artifact_html, artifact_text),
    Kernel: (kernel_html, kernel_text),
    Resources: (resources_html, resources_text),
    Occupancy: (occupancy_html, occupancy_text),
    Simulation: (simulation_html, repr),
    Launch: (launch_html, launch_text),
    BinaryModule: (module_html, module_text),
    BinaryKernel: (kernel_view_html, kernel_view_text),
    BinaryLaunch: (launch_html, launch_text),
    LaunchCounters: (counters_html, counters_text),
    Counting: (counting_html, counting_text),
    Trace: (trace_html, trace_text),
    TracedLaunch: (lambda launch: trace_html(launch.trace), lambda launch: trace_text(launch.trace)),
    Tracing: (tracing_html, tracing_text),
    Table: (sweep_html, sweep_text),
    Row: (row_html, repr),
}


def register_formatters(shell: Any) -> None:
    """Teach an IPython shell to show each type of `VIEWS`."""
    formatters = shell.display_formatter.formatters
    for kind, (html, text) in VIEWS.items():
        formatters["text/html"].for_type(kind, _printable(html))
        formatters["text/plain"].for_type(kind, _pretty(text))
    for kind in SHOWN:
        shell.display_formatter.mimebundle_formatter.for_type(kind, layout_bundle)


def unregister_formatters(shell: Any) -> None:
    """Have an IPython shell show those types as before."""
    formatters = shell.display_formatter.formatters
    for kind in VIEWS:
        formatters["text/html"].pop(kind, None)
        formatters["text/plain"].pop(kind, None)
    for kind in SHOWN:
        shell.display_formatter.mimebundle_formatter.pop(kind, None)


def _printable(html: Callable[[Any], str]) -> Callable[[Any], str]:
    """The HTML of a value, with what it needs on paper."""
    return lambda value: html(value) + ON_PAPER


def _pretty(text: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    """A text as IPython's pretty printer takes it; inside a container an object stays what `repr` says."""

    def pretty(value: Any, printer: Any, cycle: bool) -> None:
        is_alone = len(printer.stack) == 1  # the printer keeps the objects that it is inside
        printer.text(text(value) if is_alone else repr(value))

    return pretty
