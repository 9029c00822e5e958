"""The live view of a compilation: tabs with controls, made of ipywidgets. Each tab is built when it is first opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from flydsl.arch import ARCHS, get_arch
from flydsl.compiler import Pipeline
from flydsl.errors import ArchError, FlyError
from workbench.comparison import Comparison
from workbench.html import escape, message, title
from workbench.ir import Diff
from workbench.isa import isa_html
from workbench.layout_list import layouts_html
from workbench.levels import Level, levels
from workbench.linked_widget import LinkedCode
from workbench.live_view import LiveView
from workbench.occupancy import occupancy_text, usage_html
from workbench.pipeline import pipeline_html
from workbench.search import search
from workbench.slider import Slider
from workbench.usage import MAX_SGPRS, Usage

if TYPE_CHECKING:
    from workbench.report import Report

_STYLE = {"description_width": "initial"}
_ALIGNED = {"description_width": "8em"}
_WRAPPED = {"flex_flow": "row wrap"}
_MAX_DIFF_LINES = 3000
_MAX_SAVED_LINES = 600


class View(widgets.HTML):
    """A part of a static view. As wide as the page: what is wider scrolls inside of it."""

    def __init__(self, content: str = "") -> None:
        super().__init__()
        self.show(content)

    def show(self, content: str) -> None:
        """Show other HTML."""
        self.value = f'<div style="width:0;min-width:100%;line-height:1.4">{content}</div>'


class Explorer(LiveView):
    """A compilation with controls.

    report: what to show where there are no widgets, and which sections; by default all of them.
    """

    def __init__(self, pipeline: Pipeline, *, report: Report | None = None) -> None:
        self.pipeline = pipeline
        self._report = report
        self._tabs = widgets.Tab()
        self._tabs.observe(self._open, names="selected_index")
        super().__init__()
        self._fill()

    def _fill(self) -> None:
        """One tab for each thing there is to show now."""
        self._builders = self._sections()
        self._built: set[int] = set()
        self._tabs.children = [widgets.VBox() for _ in self._builders]
        self._tabs.titles = list(self._builders)
        self._tabs.selected_index = 0
        self._open({"new": 0})
        head = [] if self._report is None else [View(title(escape(self._report.call)))]
        self.children = [*head, self._tabs]

    def _sections(self) -> dict[str, Callable[[], Any]]:
        finished = self.pipeline.finished
        wanted = self._report.sections if self._report is not None else ("layout", "pipeline", "isa", "occupancy")
        found: dict[str, Callable[[], Any]] = {}
        if "pipeline" in wanted:
            found |= {"Pipeline": self._pipeline_tab, "Lines": self._lines_tab, "Compare": self._compare_tab}
        if "isa" in wanted and finished:
            found["ISA"] = lambda: RegisterMarker(self.pipeline)
        if "occupancy" in wanted and finished:
            found["Occupancy"] = lambda: widgets.VBox(
                [WhatIf(Usage.of(k), k.name) for k in self.pipeline.artifact.kernels]
            )
        if "layout" in wanted:
            found["Layouts"] = lambda: View(layouts_html(self.pipeline))
        if self._report is not None and "run" in wanted:
            found["Run"] = self._run_tab
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
        return widgets.VBox([widgets.HBox([step, rest]), View(pipeline_html(self.pipeline))])

    @property
    def _is_over(self) -> bool:
        return self.pipeline.finished or any(stage.state == "failed" for stage in self.pipeline)

    def _advance(self, run: Callable[[], Any]) -> None:
        with suppress(FlyError):  # the pipeline keeps the error with its stage, and shows it
            run()
        self._fill()

    def _lines_tab(self) -> Any:
        return LinkedCode(levels(self.pipeline))

    def _run_tab(self) -> Any:
        from workbench.run_widget import RunExplorer  # which shows its own parts in Views

        assert self._report is not None
        return RunExplorer(self._report.launch)

    def _compare_tab(self) -> Any:
        return LevelComparer([level for level in levels(self.pipeline) if level.language != "python"])

    def static_html(self) -> str:
        """The compilation without controls."""
        return pipeline_html(self.pipeline) if self._report is None else self._report._repr_html_()

    def static_text(self) -> str:
        """The same for a terminal."""
        return repr(self.pipeline if self._report is None else self._report)


class LevelComparer(LiveView):
    """The diff of any two levels, and where an operation is."""

    def __init__(self, forms: list[Level]) -> None:
        self._levels = {level.name: level for level in forms}
        names = list(self._levels)
        self._from = widgets.Dropdown(description="From", options=names, value=names[0], style=_STYLE)
        self._to = widgets.Dropdown(description="To", options=names, value=names[min(1, len(names) - 1)], style=_STYLE)
        self._search = widgets.Text(description="Find operation", placeholder="for example add", style=_STYLE)
        self._diff, self._found = View(), View()
        for control in (self._from, self._to):
            control.observe(self._show_diff, names="value")
        self._search.observe(self._show_found, names="value")
        self._show_diff()
        super().__init__([widgets.HBox([self._from, self._to, self._search], layout=_WRAPPED), self._found, self._diff])

    def static_html(self) -> str:
        """The diff without controls, as much of it as a saved notebook should hold."""
        return f"<div>{self._diff_html(_MAX_SAVED_LINES)}</div>"

    def static_text(self) -> str:
        """The same for a terminal."""
        return f"{self._heading}\n{self._chosen.text()}".rstrip()

    @property
    def _chosen(self) -> Diff:
        other = self._levels[self._to.value]
        return Diff.between(self._levels[self._from.value].text(), other.text(), other.language)

    @property
    def _heading(self) -> str:
        return f"{self._from.value} → {self._to.value}: {self._chosen.summary}"

    def _diff_html(self, max_lines: int) -> str:
        diff = self._chosen
        return title(escape(self._heading)) + ("" if diff.is_empty else diff.html(max_lines=max_lines))

    def _show_diff(self, _change: Any = None) -> None:
        self._diff.show(self._diff_html(_MAX_DIFF_LINES))

    def _show_found(self, _change: Any = None) -> None:
        text = self._search.value
        self._found.show(search(list(self._levels.values()), text)._repr_html_() if text.strip() else "")


class RegisterMarker(LiveView):
    """The ISA, with the instructions marked that use registers one names."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._registers = widgets.Text(description="Registers", placeholder="for example v[2:3], s4", style=_STYLE)
        self._registers.observe(self._show, names="value")
        self._isa = View()
        self._show()
        super().__init__([self._registers, self._isa])

    def static_html(self) -> str:
        """The listing without the field."""
        return f"<div>{self._isa.value}</div>"

    def _show(self, _change: Any = None) -> None:
        self._isa.show(isa_html(self._pipeline.artifact, registers=self._registers.value))


class WhatIf(LiveView):
    """The occupancy of other amounts: a slider for each resource, and the architecture."""

    def __init__(self, usage: Usage, name: str = "") -> None:
        self._usage, self._name = usage, name
        self._arch = widgets.Dropdown(
            description="Architecture", options=[arch.name for arch in ARCHS], value=usage.arch.name, style=_ALIGNED
        )
        self._sliders = {
            "vgprs": self._slider("VGPRs", usage.vgprs, 1024),
            "agprs": self._slider("AGPRs", usage.agprs, 256),
            "sgprs": self._slider("SGPRs", usage.sgprs, MAX_SGPRS),
            "lds_bytes": self._slider("LDS bytes", usage.lds_bytes, 320 * 1024, step=256),
            "workgroup_size": self._slider("Workgroup size", usage.workgroup_size, 1024, low=1),
        }
        reset = widgets.Button(description="Reset")
        reset.on_click(lambda _: self._reset())
        self._shown = View()
        for control in (self._arch, *self._sliders.values()):
            control.observe(self._show, names="value")
        self._show()
        head = [View(title(escape(name)))] if name else []
        super().__init__([*head, widgets.HBox([self._arch, reset]), *self._sliders.values(), self._shown])

    def _slider(self, name: str, value: int, most: int, *, low: int = 0, step: int = 1) -> Any:
        return Slider(
            description=name, value=value, min=low, max=most, step=step, label_width="8em", layout={"width": "36em"}
        )

    def _reset(self) -> None:
        self._arch.value = self._usage.arch.name
        for name, slider in self._sliders.items():
            slider.value = getattr(self._usage, name)

    @property
    def usage(self) -> Usage:
        """The amounts that the controls say."""
        arch = get_arch(self._arch.value)
        wave_size = self._usage.wave_size if self._usage.wave_size in arch.vgpr_files else arch.wave_size
        amounts = {name: slider.value for name, slider in self._sliders.items()}
        return replace(self._usage, arch=arch, wave_size=wave_size, **amounts)

    def static_html(self) -> str:
        """The occupancy without controls."""
        amounts = ", ".join(f"{slider.description} {slider.value}" for slider in self._sliders.values())
        head = " ".join(filter(None, [self._name, f"for {self._arch.value}: {amounts}"]))
        return f"<div>{title(escape(head))}{self._content()}</div>"

    def static_text(self) -> str:
        """The same for a terminal."""
        try:
            return occupancy_text(self.usage.occupancy)
        except ArchError as error:
            return str(error)

    def _content(self) -> str:
        try:
            return usage_html(self.usage)
        except ArchError as error:
            return message(str(error))

    def _show(self, _change: Any = None) -> None:
        self._shown.show(self._content())


class StageComparer(LiveView):
    """One stage of two compilations."""

    def __init__(self, comparison: Comparison, stage: str | int | None = None) -> None:
        self._comparison = comparison
        self._diffs = dict(comparison.stages())
        names = list(self._diffs)
        self._stage = widgets.Dropdown(description="Stage", options=names, value=names[0], style=_STYLE)
        if stage is not None:
            self._stage.value = comparison.stage_name(stage)
        self._stage.observe(self._show, names="value")
        self._diff = View()
        self._show()
        super().__init__([View(comparison.kernels_html()), self._stage, self._diff])

    def static_html(self) -> str:
        """The whole comparison, which names every stage."""
        return self._comparison._repr_html_()

    def static_text(self) -> str:
        """The same for a terminal."""
        return repr(self._comparison)

    def _show(self, _change: Any = None) -> None:
        diff = self._diffs[self._stage.value]
        listing = "" if diff.is_empty else diff.html(max_lines=_MAX_DIFF_LINES)
        self._diff.show(title(escape(diff.summary)) + listing)
