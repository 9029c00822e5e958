"""The registers and LDS of a simulated workgroup as text, in a choice of number formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.stepping.wave_state import WaveState

LANES_SHOWN = 8
LDS_BYTES_SHOWN = 1024
_LDS_ROW_BYTES = 32
_TYPES: dict[str, np.dtype[Any]] = {
    "dwords": np.dtype("<u4"),
    "f32": np.dtype("<f4"),
    "f16": np.dtype("<f2"),
    "i32": np.dtype("<i4"),
}
FORMS = tuple(_TYPES)
FILES = {"VGPR": "v", "AGPR": "a", "SGPR": "s"}
_WIDTHS = {"dwords": 8, "f32": 12, "f16": 9, "i32": 11}  # of the longest value


def values_text(data: Array, form: str) -> str:
    """Memory or registers as values. data: u8 or u32, one row; bytes that do not fill a value are left out.

    >>> values_text(np.array([0x3C003800, 0x3F800000], np.uint32), "f16")
    '      0.5         1         0     1.875'
    >>> values_text(np.array([1, 0xFFFFFFFF], np.uint32), "dwords")
    '00000001 ffffffff'
    """
    kind, width = _TYPES[form], _WIDTHS[form]
    raw = np.ascontiguousarray(data).view(np.uint8)
    values = raw[: raw.size // kind.itemsize * kind.itemsize].view(kind)
    spec = {"dwords": "08x", "i32": "d"}.get(form, ".6g")
    return " ".join(f"{value:{spec}}".rjust(width) for value in values.tolist())


def register_file_lines(wave: WaveState, file: str, first_lane: int = 0, form: str = "dwords") -> Iterator[str]:
    """A file of registers, one a line. file: of FILES; of vector registers LANES_SHOWN lanes from one on."""
    letter = FILES[file]
    if letter == "s":
        for number in range(0, len(wave.sgpr), LANES_SHOWN):
            yield f"s{number:<4} {values_text(wave.sgpr[number : number + LANES_SHOWN], form)}"
        return
    registers = wave.vgpr if letter == "v" else wave.agpr
    for number, lanes in enumerate(registers):
        yield f"{letter}{number:<4} {values_text(lanes[first_lane : first_lane + LANES_SHOWN], form)}"


def lds_lines(lds: Array, start: int = 0, form: str = "dwords") -> Iterator[str]:
    """LDS from a byte on, LDS_BYTES_SHOWN of it. lds: (bytes,) u8. start is taken down to a whole row."""
    start = min(max(start, 0), max(lds.size - 1, 0)) // _LDS_ROW_BYTES * _LDS_ROW_BYTES
    end = min(start + LDS_BYTES_SHOWN, lds.size)
    for row in range(start, end, _LDS_ROW_BYTES):
        yield f"{row:5d}  {values_text(lds[row : min(row + _LDS_ROW_BYTES, end)], form)}"
    if start:
        yield f"... {start} bytes before"
    if end < lds.size:
        yield f"... {lds.size - end} more bytes"
