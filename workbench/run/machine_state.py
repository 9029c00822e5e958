"""The registers of a simulated workgroup as text, in a choice of number formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flydsl.simulator.arrays import Array
from flydsl.simulator.stepping.wave_state import WaveState
from workbench.run.number_formats import texts, width_of

LANES_SHOWN = 8
FILES = {"VGPR": "v", "AGPR": "a", "SGPR": "s"}


def values_text(data: Array, form: str) -> str:
    """Memory or registers as values. data: u8 or u32, one row; bytes that do not fill a value are left out.

    >>> import numpy as np
    >>> values_text(np.array([0x3C003800, 0x3F800000], np.uint32), "f16")
    '         0.5            1            0        1.875'
    >>> values_text(np.array([1, 0xFFFFFFFF], np.uint32), "dwords")
    '00000001 ffffffff'
    """
    width = width_of(form)
    return " ".join(value.rjust(width) for value in texts(data, form))


def register_file_lines(
    wave: WaveState, file: str, first_lane: int = 0, form_of: Callable[[str], str] = lambda register: "dwords"
) -> Iterator[str]:
    """The registers of a file as lines of text: a vector register a line, or LANES_SHOWN scalar ones.

    file: one of FILES. first_lane: of the LANES_SHOWN lanes of vector registers. form_of: the number format of a
    register; a line of scalar registers has that of its first.
    """
    letter = FILES[file]
    if letter == "s":
        for number in range(0, len(wave.sgpr), LANES_SHOWN):
            yield f"s{number:<4} {values_text(wave.sgpr[number : number + LANES_SHOWN], form_of(f's{number}'))}"
        return
    registers = wave.vgpr if letter == "v" else wave.agpr
    for number, lanes in enumerate(registers):
        form = form_of(f"{letter}{number}")
        yield f"{letter}{number:<4} {values_text(lanes[first_lane : first_lane + LANES_SHOWN], form)}"
