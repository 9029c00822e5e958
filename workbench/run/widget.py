"""The run view, live: counters by the measure of one's choice, linked lines, and stepping through the launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flydsl.binary import BinaryLaunch
from flydsl.compiler import Launch
from flydsl.compiler.arguments.copies import on_cpu
from flydsl.errors import FlyError
from flydsl.simulator import Simulation
from flydsl.simulator.counters import LaunchCounters
from workbench.kit.controls import dropdown
from workbench.kit.html import details, escape, message, title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.run.counted_lines import linked_levels
from workbench.run.counters import LEGEND, launches_html, totals_html
from workbench.run.measures import limiting, nonzero_measures
from workbench.run.stepper_widget import Stepper
from workbench.run.view import arguments_html, run_html, why_not_counted
from workbench.stages.linked_widget import LinkedCode

_STEPPING = (
    "Stepping works on copies of the tensors as they are now: the launch has run, so its results are in them, and "
    "nothing that is done here changes them. Click a line above to have it in the field Line."
)


class CountersExplorer(LiveView):
    """Launches of kernels, counted. on_choose: called with the line of the source that is chosen, as "kernel.py:17"."""

    def __init__(
        self, launches: Sequence[LaunchCounters], on_choose: Callable[[str], None] = lambda place: None
    ) -> None:
        self._launches = list(launches)
        self._on_choose = on_choose
        self._launch = dropdown("Kernel", [(f"{i} {c.heading}", i) for i, c in enumerate(self._launches)], 0)
        self._measure = dropdown("Sort and compare by", ["instructions"], "instructions")
        self._totals, self._legend, self._lines = HtmlPart(), HtmlPart(), widgets.VBox()
        self._launch.observe(lambda _: self._show_launch(), names="value")
        self._measure.observe(self._show_lines, names="value")
        self._show_launch()
        head = [self._launch] if len(self._launches) > 1 else []
        super().__init__([*head, self._totals, self._measure, self._legend, self._lines])

    def _show_launch(self) -> None:
        counters = self._launches[self._launch.value]
        self._totals.show(details("Totals, estimated time, roofline", totals_html(counters), is_open=True))
        self._measures = {measure.name: measure for measure in nonzero_measures(counters)}
        # Or each new option would show the lines once more. `unobserve_all` would take the widget's own observer too.
        self._measure.unobserve(self._show_lines, names="value")
        self._measure.options = list(self._measures)
        self._measure.value = limiting(counters).name
        self._measure.observe(self._show_lines, names="value")
        self._show_lines()

    def _show_lines(self, _change: Any = None) -> None:
        measure = self._measures[self._measure.value]
        self._legend.show(title(escape(f"{LEGEND.format(heat=measure.name)}.")))
        shown = self._lines.children
        levels = linked_levels(self._launches[self._launch.value], measure)
        self._lines.children = [LinkedCode(levels, on_choose=self._on_choose)]
        for old in shown:
            old.close()

    def static_html(self) -> str:
        """The content for a page without widgets."""
        return launches_html(self._launches)


class RunExplorer(LiveView):
    """A launch: arguments, counters where there are some, and the stepper."""

    def __init__(self, launch: Launch | BinaryLaunch) -> None:
        self._run = launch
        self._stepping = Stepping(launch)
        counted = (
            CountersExplorer(launch.counters, self._stepping.aim)
            if launch.counters
            else HtmlPart(title(escape(why_not_counted(launch))))
        )
        super().__init__([HtmlPart(arguments_html(launch)), counted, self._stepping])

    def static_html(self) -> str:
        """The content for a page without widgets."""
        return run_html(self._run)


class Stepping(widgets.VBox):
    """A button that starts the stepper in the workgroup of one's choice."""

    def __init__(self, launch: Launch | BinaryLaunch) -> None:
        self._launch = launch
        self._place = ""
        self._workgroup = widgets.Text(
            description="Workgroup", value="0, 0, 0", style={"description_width": "initial"}, continuous_update=False
        )
        self._start = widgets.Button(description="Step through it")
        self._start.on_click(lambda _: self._begin())
        self._shown = widgets.VBox()
        row = widgets.Box([self._start, self._workgroup], layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([HtmlPart(title(escape(_STEPPING))), row, self._shown])

    def aim(self, place: str) -> None:
        """Put a place into the field of the line to run to."""
        self._place = place
        for stepper in self._shown.children:
            if isinstance(stepper, Stepper):
                stepper.line.value = place

    def _begin(self) -> None:
        try:
            x, y, z = (int(number) for number in self._workgroup.value.split(","))
        except ValueError:
            self._show(
                HtmlPart(message(f"{self._workgroup.value!r} is not a workgroup: write three numbers, such as 0, 0, 0"))
            )
            return
        try:
            stepper = Stepper(_simulate_copies(self._launch, (x, y, z)))
        except FlyError as error:
            self._show(HtmlPart(message(str(error))))
            return
        stepper.line.value = self._place
        self._show(stepper)

    def _show(self, content: Any) -> None:
        shown, self._shown.children = self._shown.children, [content]
        for old in shown:
            old.close()


def _simulate_copies(launch: Launch | BinaryLaunch, workgroup: tuple[int, int, int] = (0, 0, 0)) -> Simulation:
    """Simulate a launch on copies of its tensors in their present state, which includes the results of the launch.

    Raises as `JitFunction.simulate` and `BinaryKernel.simulate` do.
    """
    if isinstance(launch, BinaryLaunch):
        grid, block, smem = launch.grid, launch.block, launch.smem
        return launch.kernel.simulate(*on_cpu(launch.arguments), grid=grid, block=block, smem=smem, workgroup=workgroup)
    return launch.function.simulate(*on_cpu(launch.arguments), workgroup=workgroup)
