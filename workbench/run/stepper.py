"""The stepper view: where a simulated workgroup stands, what the last step changed, and what LDS holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flydsl.compiler.debugging.lds_views import LdsView
from flydsl.errors import FlyError
from flydsl.simulator.stepping.description import Standing
from flydsl.simulator.stepping.wave_state import WaveState
from workbench.kit.html import code, details, escape, listing, message, table, title
from workbench.run.lds_picture import lds_html
from workbench.run.machine_state import LANES_SHOWN, register_file_lines, values_text
from workbench.run.number_formats import DWORDS, FORMS, bits_of

CHANGED, VARIABLES = "changed", "variables"
"""What is shown of a wave, beside the files of registers; variables are found by a second compilation."""
AS_WRITTEN = "as written"
"""The format of values for which each register has the type of the instruction that wrote it."""
_GENERAL = re.compile(r"([sva])(\d+)")


@dataclass(frozen=True)
class State:
    """Display options for a workgroup.

    wave: the wave whose registers are shown. registers: CHANGED, VARIABLES, or a file of `machine_state.FILES`.
    first_lane: the first lane shown of vector registers and variables. form: the number format, AS_WRITTEN or one of
    `number_formats.FORMS`. lds_start: the first byte of LDS shown, or row of lds_view. is_open: whether LDS is
    unfolded.
    """

    wave: int = 0
    registers: str = CHANGED
    first_lane: int = 0
    form: str = "dwords"
    lds_start: int = 0
    lds_view: LdsView | None = None
    is_open: bool = False


def simulation_html(at: Standing, state: State = State()) -> str:
    """A simulation: the next instruction among its neighbours, registers of one wave, LDS."""
    return f"<div>{listing(escape(at.where()))}{registers_html(at, state)}</div>"


def registers_html(at: Standing, state: State) -> str:
    """Registers of one wave, and LDS."""
    part = {CHANGED: _changed_html, VARIABLES: _variables_html}.get(state.registers, _file_html)
    parts = [part(at, state)]
    if at.lds.size:
        plain = DWORDS if state.form == AS_WRITTEN else state.form
        form = plain if state.lds_view is None else state.lds_view.element
        summary = f"LDS, {at.lds.size} bytes, as {form}"
        shown = lds_html(at, plain, state.lds_start, state.lds_view)
        parts.append(details(summary, shown, is_open=state.is_open))
    return "".join(parts)


def _changed_html(at: Standing, state: State) -> str:
    wave = at.wave(state.wave)
    names = at.changed.get(state.wave, ())
    if not names:
        return title(f"The last step changed no register of wave {state.wave}.")
    forms = {name: form_of(at, state, name) for name in names}
    rows = [[code(name), escape(register_text(wave, name, state.first_lane, forms[name]))] for name in names]
    head = [f"changed in wave {state.wave}", f"value; of vector registers in {_lanes_text(state)}"]
    if state.form == AS_WRITTEN:
        head.insert(1, "type")
        rows = [[name, code("" if forms[register] == DWORDS else forms[register]), value]
                for register, (name, value) in zip(names, rows, strict=True)]  # fmt: skip
    return table(head, rows)


def _variables_html(at: Standing, state: State) -> str:
    try:
        variables = at.variables(state.wave)
    except FlyError as error:
        return message(str(error))
    rows = [[code(v.name), code(v.element), escape(v.text(state.first_lane))] for v in variables]
    head = [f"variables of wave {state.wave}", "type", f"value; where lanes differ, in {_lanes_text(state)}"]
    return table(head, rows) if rows else title("The kernel has none whose names are known.")


def form_of(at: Standing, state: State, register: str) -> str:
    """The number format of a register: the one that was chosen, or that of the instruction that wrote it, if it is of
    one register."""
    if state.form != AS_WRITTEN:
        return state.form
    kind = at.type_of(state.wave, register)
    return kind if kind in FORMS and bits_of(kind) <= 32 else DWORDS


def _file_html(at: Standing, state: State) -> str:
    def form(register: str) -> str:
        return form_of(at, state, register)

    lines = list(register_file_lines(at.wave(state.wave), state.registers, state.first_lane, form))
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
