"""The stepper view: where a simulated workgroup stands, what the last step changed, and what LDS holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.simulator.stepping.simulation import Simulation
from flydsl.simulator.stepping.wave_state import WaveState
from workbench.kit.html import code, details, escape, listing, table, title
from workbench.run.machine_state import LANES_SHOWN, lds_lines, register_file_lines, values_text

CHANGED = "changed"
_GENERAL = re.compile(r"([sva])(\d+)")


@dataclass(frozen=True)
class State:
    """Display options for a workgroup.

    wave: the wave whose registers are shown. registers: CHANGED, or a file of `machine_state.FILES`. first_lane: the
    first lane shown of vector registers. form: the number format, one of `machine_state.FORMS`. lds_start: the first
    byte of LDS shown. is_open: whether LDS is unfolded.
    """

    wave: int = 0
    registers: str = CHANGED
    first_lane: int = 0
    form: str = "dwords"
    lds_start: int = 0
    is_open: bool = False


def simulation_html(simulation: Simulation, state: State = State()) -> str:
    """A simulation: the next instruction among its neighbours, registers of one wave, LDS."""
    parts = [listing(escape(simulation.where()))]
    parts.append(_changed_html(simulation, state) if state.registers == CHANGED else _file_html(simulation, state))
    if simulation.lds.size:
        lines = "\n".join(lds_lines(simulation.lds, state.lds_start, state.form))
        summary = f"LDS, {simulation.lds.size} bytes, as {state.form}"
        parts.append(details(summary, listing(escape(lines)), is_open=state.is_open))
    return f"<div>{''.join(parts)}</div>"


def _changed_html(simulation: Simulation, state: State) -> str:
    wave = simulation.wave(state.wave)
    names = simulation.changed.get(state.wave, ())
    if not names:
        return title(f"The last step changed no register of wave {state.wave}.")
    rows = [[code(name), escape(register_text(wave, name, state.first_lane, state.form))] for name in names]
    head = (f"changed in wave {state.wave}", f"value; of vector registers in {_lanes_text(state)}")
    return table(head, rows)


def _file_html(simulation: Simulation, state: State) -> str:
    lines = list(register_file_lines(simulation.wave(state.wave), state.registers, state.first_lane, state.form))
    lanes = "" if state.registers == "SGPR" else f", {_lanes_text(state)}"
    head = title(f"{state.registers}s of wave {state.wave}{lanes}, as {state.form}")
    return head + (listing(escape("\n".join(lines))) if lines else title("The kernel has none."))


def _lanes_text(state: State) -> str:
    return f"lanes {state.first_lane} to {state.first_lane + LANES_SHOWN - 1}"


def register_text(wave: WaveState, name: str, first_lane: int = 0, form: str = "dwords") -> str:
    """The value of a register: "s4", "v2", "a0" (some lanes), "vcc", "exec", "m0", "scc" (always in hexadecimal)."""
    found = _GENERAL.fullmatch(name)
    if found is None:
        special = {"vcc": wave.vcc, "exec": wave.exec, "m0": wave.m0, "scc": int(wave.scc)}
        return f"{special[name]:#x}" if name in special else ""
    file, number = found[1], int(found[2])
    if file == "s":
        value = values_text(wave.sgpr[number : number + 1], form).strip()
        return f"0x{value}" if form == "dwords" else value
    lanes = (wave.vgpr if file == "v" else wave.agpr)[number]
    return values_text(lanes[first_lane : first_lane + LANES_SHOWN], form) + " …"
