"""A folder as `rocprofv3 --att` writes it, of a trace that is known."""

from __future__ import annotations

import json
from pathlib import Path

from flydsl.simulator.timing import Trace, Unit

# Numbers of rocprofiler_thread_trace_decoder_inst_category_t.
CATEGORY = {
    Unit.SCALAR_MEMORY: 1,
    Unit.SCALAR: 2,
    Unit.VECTOR_MEMORY: 3,
    Unit.LDS: 5,
    Unit.VALU: 6,
    Unit.TRANSCENDENTAL: 6,
    Unit.MATRIX: 6,
    Unit.BRANCH: 7,
    Unit.MESSAGE: 9,
}
HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"


def write_folder(folder: Path, trace: Trace, issue_cycles: int = 4) -> Path:
    """The folder's path. Instructions have numbers from 1, as there; 0 is the kernel's name."""
    code = [[f"; {trace.kernel}", 0, 0, trace.kernel, 1, 0, 0, 0, 0, 0]]
    for number, instruction in enumerate(trace.instructions, start=1):
        source = "" if instruction.file is None else f"{instruction.file}:{instruction.line} -> /src/caller.py:7"
        code.append([instruction.text, 0, number, source, 1, instruction.address, 0, 0, 0, 0])
    _write(folder / "code.json", {"code": code, "version": "3.0.0", "header": HEADER})
    names: dict = {}
    occupancy = []
    for row, wave in enumerate(trace.waves):
        simd, slot, begin, end = (int(wave[name]) for name in ("simd", "slot", "start", "end"))
        name = f"se0_sm{simd}_sl{slot}_wv0.json"
        records = [
            [
                int(event["issue"] - event["stall"]),
                CATEGORY[trace.instructions[event["instruction"]].unit],
                int(event["stall"]),
                int(event["stall"]) + issue_cycles,
                int(event["instruction"]) + 1,
            ]
            for event in trace.events[trace.events["wave"] == row]
        ]
        content = {"cu": 1, "id": 0, "simd": simd, "slot": slot, "begin": begin, "end": end}
        content |= {"instructions": records, "timeline": [[2, end - begin]], "waitcnt": []}
        _write(folder / name, {"name": "SE0", "duration": end - begin, "wave": content, "num_insts": len(records)})
        names.setdefault(str(simd), {}).setdefault(str(slot), {})["0"] = [name, begin, end]
        occupancy += [[begin, 1, simd, slot, 1, 1], [end, 1, simd, slot, 0, 1]]
    manifest = {"global_begin_time": 0, "gfxv": "vega", "gfxip": 9, "version": "3.0.0", "counter_names": []}
    _write(folder / "filenames.json", {**manifest, "wave_filenames": {"0": names}})
    dispatches = {"0": "0 / 0x0", "1": trace.kernel}
    _write(folder / "occupancy.json", {"0": occupancy, "dispatches": dispatches, "version": "3.0.0"})
    _write(folder / "realtime.json", {"metadata": {"frequency": 100_000_000}, "SE0": [[0, 0], [21_000, 1000]]})
    return folder


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content))
