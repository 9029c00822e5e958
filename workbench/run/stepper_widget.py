"""The stepper view, live: go on by instructions, to a line, to a barrier or to the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from flydsl.errors import FlyError
from flydsl.simulator.stepping.simulation import Simulation
from workbench.kit.controls import dropdown
from workbench.kit.html import message
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.run.machine_state import FILES, FORMS, LANES_SHOWN, LDS_BYTES_SHOWN
from workbench.run.stepper import CHANGED, State, simulation_html

_STYLE = {"description_width": "initial"}


class Stepper(LiveView):
    """A simulation with buttons. An error of the simulated program is shown, and leaves it before the instruction."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.line = widgets.Text(description="Line", placeholder="17, kernel.py:17 or isa:42", style=_STYLE)
        self._wave = dropdown("Wave", range(simulation.wave_count), 0)
        self._registers = dropdown("Registers", (CHANGED, *FILES), CHANGED)
        firsts = range(0, simulation.wave(0).active.size, LANES_SHOWN)
        self._lanes = dropdown("Lanes", [(f"{lane} to {lane + LANES_SHOWN - 1}", lane) for lane in firsts], 0)
        self._form = dropdown("Values as", FORMS, FORMS[0])
        self._lds_start = widgets.BoundedIntText(
            description="LDS from byte", max=max(simulation.lds.size - 1, 0), step=LDS_BYTES_SHOWN, style=_STYLE
        )
        looking = [self._wave, self._registers, self._lanes, self._form, self._lds_start]
        for control in looking:
            control.observe(lambda _: self._show(), names="value")
        self._shown = HtmlPart()
        self._buttons = [
            self._button("Step", simulation.step),
            self._button("Run to line", lambda: simulation.run(until=self.line.value.strip())),
            self._button("Run to barrier", lambda: simulation.run(until="barrier")),
            self._button("Run to the end", simulation.run),
        ]
        self._show()
        wrap = widgets.Layout(flex_flow="row wrap")
        going = widgets.Box([*self._buttons, self.line], layout=wrap)
        super().__init__([going, widgets.Box(looking, layout=wrap), self._shown])

    def _button(self, label: str, action: Callable[[], Any]) -> Any:
        button = widgets.Button(description=label)
        button.on_click(lambda _: self._go_on(action))
        return button

    def _go_on(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except FlyError as error:
            self._show(message(str(error)))
        else:
            self._show()

    def _show(self, error: str = "") -> None:
        self._follow_kernel()
        for button in self._buttons:
            button.disabled = self.simulation.done
        self._shown.show(error + self.static_html())

    def _follow_kernel(self) -> None:
        """The next kernel may have more or fewer waves, and another amount of LDS."""
        if len(self._wave.options) != self.simulation.wave_count:
            self._wave.options = range(self.simulation.wave_count)
        self._lds_start.max = max(self.simulation.lds.size - 1, 0)

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        state = State(
            wave=self._wave.value,
            registers=self._registers.value,
            first_lane=self._lanes.value,
            form=self._form.value,
            lds_start=self._lds_start.value,
            is_open=True,
        )
        return simulation_html(self.simulation, state)
