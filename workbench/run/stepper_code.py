"""The code that a simulation goes through, source and machine code side by side: the current lines, and breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.simulator.decoding.program import Instruction
from flydsl.simulator.stepping.description import Standing
from workbench.kit import line_list
from workbench.kit.assets import asset_text
from workbench.kit.highlight import highlight
from workbench.kit.line_list import TAGS
from workbench.kit.notebook import traitlets
from workbench.kit.scripted import Scripted
from workbench.stages.levels import Level, place_key, source_levels

_RENDER = """
export default { initialize: keepHearing, render: ({ model, el }) => mountCode(el, model) };
"""


class SteppedCode(Scripted):
    """Panes of the source and of the machine code. on_toggle: called with the place of a line that was chosen, as
    `Simulation.breakpoint` takes it.

    panes: the name, the lines as HTML, and the line numbers of each. at: the current row of each pane (-1: none), and
    the marks before its rows: waves, breakpoints.
    """

    _esm = line_list.script() + asset_text(__file__, "stepper_code.js") + _RENDER
    _css = line_list.style() + asset_text(__file__, "stepper_code.css")
    panes: traitlets.List[Any] = traitlets.List().tag(sync=True)
    at: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, listing: tuple[Instruction, ...], on_toggle: Callable[[str], None]) -> None:
        super().__init__()
        self._on_toggle = on_toggle
        self.take(listing)
        self.on_msg(self._answer)

    def take(self, listing: tuple[Instruction, ...]) -> None:
        """Show another program."""
        self._listing = listing
        places = tuple(instruction.location for instruction in listing)
        isa = Level("Machine code", "isa", tuple(f"  {i.listed.text}" for i in listing), places)
        self._sources = [place for level in source_levels([isa]) for place in level.places if place is not None]
        self._rows = {(place.file, place.line): row for row, place in enumerate(self._sources)}
        with_code = {(place.file, place.line) for place in places if place is not None}
        source = [highlight((place.source_line or "").expandtabs(4), "python", TAGS) for place in self._sources]
        panes = [
            {
                "name": "Machine code",
                "lines": [highlight(f" {i.listed.text}".replace("\t", " "), "isa", TAGS) for i in listing],
                "numbers": [str(i.listed.line) for i in listing],
                "stops": [True] * len(listing),
            }
        ]
        if source:
            numbers = [str(place.line) for place in self._sources]
            stops = [(place.file, place.line) in with_code for place in self._sources]
            panes.insert(0, {"name": "Source", "lines": source, "numbers": numbers, "stops": stops})
        self.panes = panes

    def show(self, moment: Standing, wave: int, breakpoints: frozenset[int]) -> None:
        """Show where a workgroup stands. wave: whose lines are current. breakpoints: indices of instructions."""
        if moment.listing is not self._listing:
            self.take(moment.listing)
        waiting = {number: state.pc for number, state in enumerate(moment.waves) if not state.done}
        own = None if moment.done or moment.wave(wave).done else moment.wave(wave).pc
        marks = dict.fromkeys(breakpoints, "●")
        isa = {"current": -1 if own is None else own, "waves": _grouped(waiting), "stops": _texts(marks)}
        shown = [isa]
        if len(self.panes) > 1:
            rows = {wave_: self._source_row(pc) for wave_, pc in waiting.items()}
            stops = {self._source_row(index): "●" for index in breakpoints}
            shown.insert(
                0,
                {
                    "current": -1 if own is None else self._source_row(own),
                    "waves": _grouped({wave_: row for wave_, row in rows.items() if row >= 0}),
                    "stops": _texts({row: mark for row, mark in stops.items() if row >= 0}),
                },
            )
        self.at = shown

    def _source_row(self, index: int) -> int:
        place = self._listing[index].location if index < len(self._listing) else None
        return -1 if place is None else self._rows.get((place.file, place.line), -1)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        pane, row = content.get("pane"), content.get("row")
        if not isinstance(row, int) or row < 0:
            return
        if pane == "Machine code" and row < len(self._listing):
            self._on_toggle(f"isa:{self._listing[row].listed.line}")
        elif pane == "Source" and row < len(self._sources):
            self._on_toggle(place_key(self._sources[row]))


def _texts(marks: dict[int, str]) -> dict[str, str]:
    return {str(row): mark for row, mark in marks.items()}


def _grouped(rows: dict[int, int]) -> dict[str, str]:
    """The waves at each row, as text.

    >>> _grouped({0: 7, 1: 7, 2: 7, 4: 7, 3: 9})
    {'7': '0-2,4', '9': '3'}
    """
    found: dict[int, list[list[int]]] = {}
    for wave, row in sorted(rows.items()):
        runs = found.setdefault(row, [])
        if runs and runs[-1][-1] == wave - 1:
            runs[-1].append(wave)
        else:
            runs.append([wave])
    return {
        str(row): ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
        for row, runs in found.items()
    }
