"""The report that `%%flykernel` shows for each compilation behind the launches of a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flydsl.arch import Arch
from flydsl.compiler import Launch, Pipeline
from flydsl.errors import FlyError
from workbench.kit.html import ON_PAPER, code, details, escape, faint, message, title
from workbench.kit.values import value_text
from workbench.machine_code.listing import isa_html, isa_text
from workbench.resources.occupancy import kernel_html, kernel_text, kernels_html
from workbench.run.other_target import launch_on_copies
from workbench.run.targets import Target
from workbench.run.view import run_html, run_text
from workbench.stages.layout_list import layouts_html
from workbench.stages.pipeline import failures_html, progress, stage_html, stage_text, stages_html
from workbench.thread_trace.view import launch_traces_html, launch_traces_text

SECTIONS = ("layout", "pipeline", "isa", "occupancy", "run", "trace")
DEFAULT_SECTIONS = ("pipeline", "isa", "occupancy")
_LIVE_HINT = title(faint(f"With controls: {code('%%flykernel --live')}"))


@dataclass(frozen=True)
class Shown:
    """Display options. sections: of `SECTIONS`. stage: one to show on its own. is_folded: start folded."""

    sections: tuple[str, ...] = DEFAULT_SECTIONS
    stage: str | int | None = None
    is_folded: bool = False


class Report:
    """One compilation: its stages, its kernels' resources, its machine code.

    launch: the first call that used it; of another target with the section run or trace, one on copies of its
    arguments. calls: the number of calls. arch: a target to compile it for, instead of the one of the launch;
    trace_only: only trace it for that target. error: the reason if that failed; the pipeline then shows the stages up
    to there, or is None if there was nothing to compile.
    """

    def __init__(
        self, launch: Launch, calls: int, shown: Shown, arch: Arch | None = None, *, trace_only: bool = False
    ) -> None:
        self.launch = launch
        self._call = call_text(launch)
        self._calls = "1 call" if calls == 1 else f"{calls} calls, the first one shown"
        self._shown = shown
        self.pipeline: Pipeline | None = None
        self.error: FlyError | None = None
        self.why_not_run = ""
        if arch is None or arch == launch.pipeline.arch:
            self.pipeline = launch.pipeline
            self._target = launch.pipeline.arch.name
        else:
            self._compile(launch, arch, trace_only)
            ran = "compiled only" if trace_only else self._ran_on_copies(shown.sections)
            self._target = f"{arch.name}, {ran}; the cell launched it for {launch.pipeline.arch.name}"
        self._stage = None if shown.stage is None or self.pipeline is None else self.pipeline[shown.stage]

    def _compile(self, launch: Launch, arch: Arch, trace_only: bool) -> None:
        try:
            self.pipeline = launch.function.lower(*launch.arguments, arch=arch.name)
            if not trace_only:
                self.pipeline.run()
        except FlyError as error:
            self.error = error

    def _ran_on_copies(self, sections: Sequence[str]) -> str:
        """Launch the compilation for another target, if a section shows that. Return what was done, in words."""
        counted, traced = "run" in sections, "trace" in sections
        if self.pipeline is None or not self.pipeline.finished or not (counted or traced):
            return "compiled only"
        try:
            self.launch = launch_on_copies(self.launch, self.pipeline, counted=counted, traced=traced)
        except FlyError as error:
            self.why_not_run = error.message.partition("\n")[0]
            return f"compiled only, as it did not run there ({self.why_not_run})"
        return "run on copies of the arguments"

    @property
    def target(self) -> Target | None:
        """The compilation and what ran of it, to show beside others; None if there is no machine code."""
        if self.pipeline is None or not self.pipeline.finished:
            return None
        counters = self.launch.counters if self.launch.pipeline is self.pipeline else []
        return Target(self.pipeline, counters, self.why_not_run)

    def explore(self) -> Any:
        """Return an ipywidgets widget with the same content and controls; without widgets it shows this report."""
        from workbench.compilation_explorer import Explorer

        if self.pipeline is None:
            return self
        sections = self._shown.sections
        return Explorer(self.pipeline, sections=sections, launch=self.launch, heading=self.call, static=self)

    @property
    def launched(self) -> str:
        """The call as the user would write it."""
        return self._call

    @property
    def call(self) -> str:
        """The call as the user would write it, and its target."""
        return f"{self._call} for {self._target} ({self._calls})"

    def _repr_html_(self) -> str:
        head = title(f"<strong>{code(self._call)}</strong> for {escape(self._target)} ({escape(self._calls)})")
        return f"<div>{head}{''.join(self._html_parts())}{ON_PAPER}</div>"

    def _html_parts(self) -> list[str]:
        if self.pipeline is None:
            return [message(str(self.error))]
        stage = [] if self._stage is None else [stage_html(self._stage)]
        return [*stage, *(self._section(name) for name in self._sections()), _LIVE_HINT]

    def _sections(self) -> list[str]:
        """The wanted sections that have content; an unfinished pipeline is always shown."""
        assert self.pipeline is not None
        if self.pipeline.finished:
            return list(self._shown.sections)
        return [name for name in SECTIONS if name == "pipeline" or (name == "layout" and name in self._shown.sections)]

    def _section(self, name: str) -> str:
        pipeline = self.pipeline
        assert pipeline is not None
        is_open = not self._shown.is_folded
        parts: dict[str, Callable[[], str]] = {
            "layout": lambda: details("Layouts", layouts_html(pipeline), is_open=is_open),
            "pipeline": lambda: details(
                f"Pipeline, {escape(progress(pipeline))}",
                stages_html(pipeline) + failures_html(pipeline),
                is_open=is_open,
            ),
            "isa": lambda: kernels_html(pipeline.artifact.kernels) + isa_html(pipeline.artifact, is_open=is_open),
            "occupancy": lambda: "".join(
                details(f"Occupancy of {code(kernel.name)}", kernel_html(kernel))
                for kernel in pipeline.artifact.kernels
            ),
            "run": lambda: details(f"Run, {escape(self._calls)}", run_html(self.launch), is_open=is_open),
            "trace": lambda: details(f"Time, {escape(self._calls)}", launch_traces_html(self.launch), is_open=is_open),
        }
        return parts[name]()

    def __repr__(self) -> str:
        parts = [self.call]
        pipeline = self.pipeline
        if pipeline is None:
            return "\n\n".join([*parts, str(self.error)])
        if self._stage is not None:
            parts.append(stage_text(self._stage))
        if "pipeline" in self._sections():
            parts.append(repr(pipeline))
        parts += [str(stage.error) for stage in pipeline if stage.error]
        if pipeline.finished:
            parts += map(kernel_text, pipeline.artifact.kernels)
        if pipeline.finished and "isa" in self._sections():
            parts.append(isa_text(pipeline.artifact))
        if pipeline.finished and "run" in self._sections():
            parts.append(run_text(self.launch))
        if pipeline.finished and "trace" in self._sections():
            parts.append(launch_traces_text(self.launch))
        return "\n\n".join(parts)


def reports(
    launches: Sequence[Launch], shown: Shown, arch: Arch | None = None, *, trace_only: bool = False
) -> list[Report]:
    """One report per compilation, in the order of the first launches; folded where there are several."""
    groups: dict[int, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(id(launch.pipeline), []).append(launch)
    if len(groups) > 1:
        shown = Shown(shown.sections, shown.stage, is_folded=True)
    return [Report(group[0], len(group), shown, arch, trace_only=trace_only) for group in groups.values()]


def call_text(launch: Launch) -> str:
    """A launch as the user would write it, with tensors as types."""
    parameters = launch.function.signature.parameters
    arguments = (
        f"{parameter.name}={value_text(value)}"
        for parameter, value in zip(parameters, launch.arguments, strict=True)
        if value is not parameter.default
    )
    return f"{launch.function.signature.name}({', '.join(arguments)})"
