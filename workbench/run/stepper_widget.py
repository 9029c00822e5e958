"""The stepper view, live: a debugger. Go on, back and to any step, by lines, barriers and breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.compiler.debugging.lds_views import LdsView, views_of
from flydsl.errors import FlyError
from flydsl.layout import ComposedLayout, Layout, parse
from flydsl.simulator import Recording
from flydsl.simulator.stepping.simulation import Simulation
from workbench.kit.controls import dropdown
from workbench.kit.html import escape, message, title
from workbench.kit.live_view import HtmlPart, LiveView
from workbench.kit.notebook import ipywidgets as widgets
from workbench.kit.slider import Slider
from workbench.run.lds_picture import BYTES_SHOWN
from workbench.run.machine_state import FILES, LANES_SHOWN
from workbench.run.number_formats import DWORDS, FORMS
from workbench.run.stepper import AS_WRITTEN, CHANGED, VARIABLES, State, registers_html, simulation_html
from workbench.run.stepper_code import SteppedCode

_STYLE = {"description_width": "initial"}
_BYTES = "rows of bytes"
_AS_BYTES = ""  # its value: None would be no choice, and shown as none
_HINT = (
    "Choose a line (click, or arrow keys and Enter) to set a breakpoint or take it away; ▶ says which waves stand at a "
    "line. Step and Back go by instructions of the chosen wave."
)


class Stepper(LiveView):
    """A simulation with its past. An error of the simulated program is shown, and leaves it before the instruction."""

    def __init__(self, stepped: Simulation | Recording) -> None:
        self.recording = stepped if isinstance(stepped, Recording) else Recording(stepped)
        self.simulation = simulation = self.recording.simulation
        self._kernel = ""
        self.line = widgets.Text(description="Line", placeholder="17, kernel.py:17 or isa:42", style=_STYLE)
        self._position = Slider(description="Position", min=0, max=0, value=0)
        self._code = SteppedCode(simulation.listing, self._toggle)
        self._make_controls(simulation)
        self._shown = HtmlPart()
        self._make_buttons()
        self._is_showing = False
        self._follow_kernel()
        self._show()
        self._position.observe(self._slide, names="value")
        wrap = widgets.Layout(flex_flow="row wrap")
        going = widgets.Box([*self._buttons, self.line], layout=wrap)
        looking = widgets.Box(self._looking, layout=wrap)
        hint = HtmlPart(title(escape(_HINT)))
        super().__init__([going, self._position, hint, self._code, looking, self._shown])

    def _make_controls(self, simulation: Simulation) -> None:
        self._wave = dropdown("Wave", range(simulation.wave_count), 0)
        self._registers = dropdown("Registers", (CHANGED, VARIABLES, *FILES), CHANGED)
        firsts = range(0, simulation.wave(0).active.size, LANES_SHOWN)
        self._lanes = dropdown("Lanes", [(f"{lane} to {lane + LANES_SHOWN - 1}", lane) for lane in firsts], 0)
        self._form = dropdown("Values as", (AS_WRITTEN, *FORMS), AS_WRITTEN)
        self._lds_view = dropdown("LDS as", [(_BYTES, _AS_BYTES)], _AS_BYTES)
        self._lds_layout = widgets.Text(
            description="LDS layout", placeholder="(16,32):(33,1)", style=_STYLE, continuous_update=False
        )
        self._lds_start = widgets.BoundedIntText(description="LDS from byte", step=BYTES_SHOWN, style=_STYLE)
        lds = [self._lds_view, self._lds_layout, self._lds_start]
        self._looking = [self._wave, self._registers, self._lanes, self._form, *lds]
        for control in self._looking:
            control.observe(self._look, names="value")

    def _make_buttons(self) -> None:
        recording = self.recording
        self._backward = [
            self._button("Restart", recording.restart),
            self._button("Back", lambda: recording.back(wave=self._stepped_wave())),
        ]
        self._forward = [
            self._button("Step", lambda: recording.step(wave=self._stepped_wave())),
            self._button("Run to line", lambda: recording.run(until=self.line.value.strip())),
            self._button("Run to barrier", lambda: recording.run(until="barrier")),
            self._button("Continue", recording.run),
        ]
        self._buttons = [*self._backward, *self._forward]

    def _stepped_wave(self) -> int | None:
        """The chosen wave, or, if it has ended, one that continues."""
        now = self.recording.now
        wave = self._wave.value
        return None if wave is None or now.done or wave >= now.wave_count or now.wave(wave).done else wave

    def _button(self, label: str, action: Callable[[], Any]) -> Any:
        button = widgets.Button(description=label, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _: self._go_on(action))
        return button

    def _go_on(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except FlyError as error:
            self._show(message(str(error)))
        else:
            self._show()

    def _slide(self, change: Any) -> None:
        if not self._is_showing:
            self._go_on(lambda: self.recording.go_to(min(change["new"], self.recording.last)))

    def _toggle(self, place: str) -> None:
        for known in self.simulation.breakpoints:
            if known.place == place:
                self.simulation.clear(known)
                self._show()
                return
        self._go_on(lambda: self.recording.breakpoint(place))

    def _look(self, _change: Any) -> None:
        if not self._is_showing:
            self._show()

    def _show(self, error: str = "") -> None:
        self._is_showing = True
        try:
            self._follow_kernel()
            self._follow_position()
        finally:
            self._is_showing = False
        self._shown.show(error + self._where_html() + registers_html(self.recording.now, self._state()))
        stops = frozenset[int]().union(*(known.instructions for known in self.simulation.breakpoints))
        self._code.show(self.recording.now, self._wave.value or 0, stops)

    def _where_html(self) -> str:
        """The first line of what `where` says; the rest is in the panes."""
        return title(escape(self.recording.now.where().partition("\n")[0]))

    def _follow_position(self) -> None:
        recording = self.recording
        self._position.max = recording.last
        self._position.value = recording.position
        for button in self._forward:
            button.disabled = recording.done
        for button in self._backward:
            button.disabled = recording.position == 0

    def _follow_kernel(self) -> None:
        """The next kernel may have more or fewer waves, and another amount and other views of LDS."""
        now = self.recording.now
        if len(self._wave.options) != now.wave_count:
            self._wave.options = range(now.wave_count)
        if now.kernel != self._kernel:
            self._kernel = now.kernel
            known = views_of(now.program, now.kernel, self.simulation.traced_module())
            shown = [(view.name, view) for view in known if view.element in FORMS]
            self._lds_view.options = [(_BYTES, _AS_BYTES), *shown]
            self._lds_view.value = _AS_BYTES
        self._lds_start.max = max(now.lds.size - 1, 0)

    def _state(self) -> State:
        return State(
            wave=self._wave.value or 0,
            registers=self._registers.value,
            first_lane=self._lanes.value,
            form=self._form.value,
            lds_start=self._lds_start.value,
            lds_view=self._chosen_view(),
            is_open=True,
        )

    def _chosen_view(self) -> LdsView | None:
        """The view of LDS: one of the kernel's, or the layout that was typed, from the byte that was."""
        text = self._lds_layout.value.strip()
        if not text:
            chosen = self._lds_view.value
            return chosen if isinstance(chosen, LdsView) else None
        try:
            layout = parse(text)
        except FlyError:
            return None
        element = "ui32" if self._form.value in (AS_WRITTEN, DWORDS) else self._form.value
        return LdsView(element, layout, self._lds_start.value) if isinstance(layout, Layout | ComposedLayout) else None

    def static_html(self) -> str:
        """The present content as HTML that needs no JavaScript."""
        return simulation_html(self.recording.now, self._state())
