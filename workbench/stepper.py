"""The stepper view: where a simulated workgroup stands, what the last step changed, and what LDS holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flydsl.simulator.stepper import Simulation
from flydsl.simulator.wave_state import WaveState
from workbench.html import code, details, escape, listing, table, title

_SHOWN_LANES = 8
_SHOWN_LDS_BYTES = 1024
_LDS_ROW_BYTES = 32
_GENERAL = re.compile(r"([sva])(\d+)")


def simulation_html(simulation: Simulation, wave: int = 0) -> str:
    """A simulation: the next instruction among its neighbours, registers of one wave that changed, LDS."""
    parts = [listing(escape(simulation.where())), _changed_html(simulation, wave)]
    if simulation.lds.size:
        parts.append(details(f"LDS, {simulation.lds.size} bytes", listing(escape("\n".join(_lds_lines(simulation))))))
    return f"<div>{''.join(parts)}</div>"


def _changed_html(simulation: Simulation, number: int) -> str:
    wave = simulation.wave(number)
    names = simulation.changed.get(number, ())
    if not names:
        return title(f"The last step changed no register of wave {number}.")
    rows = [[code(name), escape(register_text(wave, name))] for name in names]
    head = (f"changed in wave {number}", f"value; of vector registers in lanes 0 to {_SHOWN_LANES - 1}")
    return table(head, rows)


def register_text(wave: WaveState, name: str) -> str:
    """What a register holds, in hexadecimal: "s4", "v2", "a0" (the first lanes), "vcc", "exec", "m0", "scc"."""
    found = _GENERAL.fullmatch(name)
    if found is None:
        special = {"vcc": wave.vcc, "exec": wave.exec, "m0": wave.m0, "scc": int(wave.scc)}
        return f"{special[name]:#x}" if name in special else ""
    file, number = found[1], int(found[2])
    if file == "s":
        return f"{wave.sgpr[number]:#010x}"
    lanes = (wave.vgpr if file == "v" else wave.agpr)[number]
    return " ".join(f"{lane:08x}" for lane in lanes[:_SHOWN_LANES]) + " …"


def _lds_lines(simulation: Simulation) -> Iterator[str]:
    """The first bytes, as dwords."""
    shown = simulation.lds[:_SHOWN_LDS_BYTES]
    for start in range(0, shown.size, _LDS_ROW_BYTES):
        row = shown[start : start + _LDS_ROW_BYTES]
        yield f"{start:5d}  " + " ".join(row[i : i + 4][::-1].tobytes().hex() for i in range(0, row.size, 4))
    if simulation.lds.size > shown.size:
        yield f"... {simulation.lds.size - shown.size} more bytes"
