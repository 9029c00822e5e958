"""The live view of a compilation: tabs with controls, made of ipywidgets. Each tab is built when it is first opened."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Protocol

from flydsl.compiler import Launch, Pipeline
from flydsl.errors import FlyError
from workbench.kit.html import details, escape, title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.machine_code.isa_widget import isa_explorer
from workbench.page import page
from workbench.resources.what_if import WhatIf
from workbench.run.widget import RunExplorer
from workbench.stages.comparers import LevelComparer
from workbench.stages.layout_list import layouts_html
from workbench.stages.levels import levels
from workbench.stages.linked_widget import LinkedCode
from workbench.stages.pipeline import failures_html, pipeline_heading, pipeline_html, stages_html
from workbench.stages.strip_widget import StageStrip
from workbench.thread_trace.view import launch_traces_html
from workbench.thread_trace.widget import TracesExplorer


class StaticView(Protocol):
    """A view without controls, as notebooks show it."""

    def _repr_html_(self) -> str: ...


class Explorer(LiveView):
    """A compilation with controls.

    sections: the parts to show, among "layout", "pipeline", "isa", "occupancy" and, with a launch, "run" and "trace".
    heading: one line above the tabs. static: the content without widgets, by default the pipeline.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        sections: Collection[str] = ("layout", "pipeline", "isa", "occupancy"),
        launch: Launch | None = None,
        heading: str = "",
        static: StaticView | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._wanted, self._launch, self._static = sections, launch, static
        self._head = [HtmlPart(title(escape(heading)))] if heading else []
        self._tabs = widgets.Tab()
        self._tabs.observe(self._open, names="selected_index")
        super().__init__()
        self._fill()

    def _fill(self) -> None:
        """Make one tab for each part that can be shown now."""
        self._builders = self._sections()
        self._built: set[int] = set()
        self._tabs.children = [widgets.VBox() for _ in self._builders]
        self._tabs.titles = list(self._builders)
        self._tabs.selected_index = 0
        self._open({"new": 0})
        self.children = [*self._head, self._tabs]

    def _sections(self) -> dict[str, Callable[[], Any]]:
        """The function that builds each tab, by title. An unfinished compilation always shows its pipeline."""
        wanted, finished = self._wanted, self.pipeline.finished
        found: dict[str, Callable[[], Any]] = {}
        if "pipeline" in wanted or not finished:
            found |= {"Pipeline": self._pipeline_tab, "Lines": self._lines_tab, "Compare": self._compare_tab}
        if "isa" in wanted and finished:
            found["ISA"] = lambda: isa_explorer(self.pipeline.artifact.code)
        if "occupancy" in wanted and finished:
            found["Occupancy"] = lambda: widgets.VBox([WhatIf(k.usage, k.name) for k in self.pipeline.artifact.kernels])
        if "layout" in wanted:
            found["Layouts"] = lambda: HtmlPart(layouts_html(self.pipeline))
        if "run" in wanted and finished and (launch := self._launch) is not None:
            found["Run"] = lambda: RunExplorer(launch)
        if "trace" in wanted and finished and (traced := self._launch) is not None:
            found["Time"] = lambda: self._trace_tab(traced)
        return found

    def _open(self, change: Any) -> None:
        index = change["new"]
        if index is not None and index not in self._built:
            self._built.add(index)
            build = list(self._builders.values())[index]
            self._tabs.children[index].children = [build()]

    def _pipeline_tab(self) -> Any:
        step = widgets.Button(description="Run next stage", disabled=self._is_over)
        rest = widgets.Button(description="Run all stages", disabled=self._is_over)
        step.on_click(lambda _: self._advance(self.pipeline.step))
        rest.on_click(lambda _: self._advance(self.pipeline.run))
        head = HtmlPart(f"{pipeline_heading(self.pipeline)}{failures_html(self.pipeline)}")
        table = HtmlPart(details("All stages as a table", stages_html(self.pipeline, with_changes=False)))
        return widgets.VBox([widgets.HBox([step, rest]), head, StageStrip(self.pipeline), table])

    @property
    def _is_over(self) -> bool:
        return self.pipeline.finished or any(stage.state == "failed" for stage in self.pipeline)

    def _advance(self, run: Callable[[], Any]) -> None:
        with suppress(FlyError):  # the pipeline keeps the error with its stage, and shows it
            run()
        self._fill()

    @staticmethod
    def _trace_tab(launch: Launch) -> Any:
        if not launch.traces:
            return HtmlPart(launch_traces_html(launch))
        return TracesExplorer(launch.traces)

    def _lines_tab(self) -> Any:
        return LinkedCode(levels(self.pipeline))

    def _compare_tab(self) -> Any:
        return LevelComparer([level for level in levels(self.pipeline) if level.language != "python"])

    def static_html(self) -> str:
        """The compilation without controls."""
        return pipeline_html(self.pipeline) if self._static is None else self._static._repr_html_()

    def page(self) -> str:
        """The exported page: of the launch, if it is one of this compilation, else of the compilation."""
        launch = self._launch
        return page([launch if launch is not None and launch.pipeline is self.pipeline else self.pipeline])

    def static_text(self) -> str:
        """The text for a terminal."""
        return repr(self._static or self.pipeline)
