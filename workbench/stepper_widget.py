"""The stepper view, live: go on by instructions, to a line, to a barrier or to the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from flydsl.errors import FlyError
from flydsl.simulator.stepper import Simulation
from workbench.explorer import View
from workbench.html import message
from workbench.live_view import LiveView
from workbench.stepper import simulation_html

_STYLE = {"description_width": "initial"}


class Stepper(LiveView):
    """A simulation with buttons. An error of the simulated program is shown, and leaves it before the instruction."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._line = widgets.Text(description="Line", placeholder="17, kernel.py:17 or isa:42", style=_STYLE)
        self._wave = widgets.Dropdown(description="Wave", options=range(simulation.wave_count), style=_STYLE)
        self._wave.observe(lambda _: self._show(), names="value")
        self._shown = View()
        self._buttons = [
            self._button("Step", simulation.step),
            self._button("Run to line", lambda: simulation.run(until=self._line.value.strip())),
            self._button("Run to barrier", lambda: simulation.run(until="barrier")),
            self._button("Run to the end", simulation.run),
        ]
        self._show()
        wrap = widgets.Layout(flex_flow="row wrap")
        super().__init__([widgets.Box([*self._buttons, self._line, self._wave], layout=wrap), self._shown])

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
        for button in self._buttons:
            button.disabled = self.simulation.done
        self._shown.show(error + self.static_html())

    def static_html(self) -> str:
        """What it shows now as HTML that needs no JavaScript."""
        return simulation_html(self.simulation, self._wave.value)
