"""Reading what `rocprofv3 --att` writes: the folder `ui_output_agent_*_dispatch_*`, as a `Trace`.

What is read, all of it JSON and nothing of it code that runs:

- `code.json`: the instructions; of each `[text, _, number, source, code object, address, hits, latency, stall, idle]`.
  A text that begins with ";" is the name of the kernel that begins there.
- `se<SE>_sm<SIMD>_sl<slot>_wv<id>.json`: a wave; its instructions are `[time, category, stall, duration, number]`.
  It is issued at time + stall. On CDNA duration is stall and issue, on RDNA stall and execution.
- `occupancy.json`, if there: when every wave of a shader engine begins and ends, and the names of kernels.
- `realtime.json`, if there: cycles against a clock of known frequency. Without it the clock is what the caller says.
- `filenames.json`, if there: the generation. `snapshots.json` and `source_*`, if there: the source as it was.

The hardware does not record why a wave stalled, nor when memory answered. The reason is that of the kind of instruction
(a wait: the counter that it waits for; a matrix instruction: its unit is busy; other vector and scalar ones: a
dependency), and the latency of a memory instruction lasts until the wait for it is over.

Source: ROCm/rocprofiler-sdk (source/lib/att-tool, trace_decoder_types.h), ROCm/rocprof-compute-viewer, both of 2025.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.arch import get_arch
from flydsl.arch.instruction_costs import peaks
from flydsl.errors import ArchError, ArgumentError
from flydsl.hsaco.operands import split_encoding
from flydsl.simulator.arrays import Array
from flydsl.simulator.timing.instructions import unit_of
from flydsl.simulator.timing.json_files import as_list, as_object, field, malformed, optional_object, read_json, whole
from flydsl.simulator.timing.memory_waits import counters_waited_for, producers
from flydsl.simulator.timing.trace import EVENT, WAVE, Stall, Trace, TracedInstruction, Unit

_WAVE_FILE = re.compile(r"se(\d+)_sm(\d+)_sl(\d+)_wv(\d+)\.json$")
_SOURCE = re.compile(r"(.+):(\d+)$")
_SOURCES_BETWEEN = " -> "  # a place and the calls that were inlined
_CODE_COLUMNS = 10
_EVENT_COLUMNS = 5
_UNMATCHED = TracedInstruction(0, "; an instruction that the decoder did not find in the code", Unit.MESSAGE)
_LARGEST = {name: np.iinfo(EVENT[name]).max for name in ("issue", "latency", "stall")}

# Of the instructions of RDNA, those whose class the simulator's own table does not know.
_OTHER_UNITS = (
    (Unit.MATRIX, re.compile(r"v_wmma|v_swmmac")),
    (Unit.VECTOR_MEMORY, re.compile(r"image_|tbuffer_|tensor_|cluster_")),
    (Unit.MESSAGE, re.compile(r"s_wait_|s_waitcnt_|s_delay_alu|s_clause|s_barrier_|s_prefetch|s_set_")),
)
_REASONS = {
    Unit.SCALAR: Stall.DEPENDENCY,
    Unit.VALU: Stall.DEPENDENCY,
    Unit.TRANSCENDENTAL: Stall.DEPENDENCY,
    Unit.MATRIX: Stall.MATRIX_BUSY,
    Unit.LDS: Stall.LDS_BUSY,
    Unit.VECTOR_MEMORY: Stall.MEMORY_BUSY,
    Unit.SCALAR_MEMORY: Stall.MEMORY_BUSY,
    Unit.BRANCH: Stall.INSTRUCTION_FETCH,
    Unit.MESSAGE: Stall.DEPENDENCY,
}


def read_thread_trace(folder: str | Path, *, arch: str | None = None, clock_mhz: float | None = None) -> Trace:
    """The trace in a folder that `rocprofv3 --att` wrote.

    arch: of the GPU, as only its generation is in the folder. clock_mhz: of the GPU; by default that of
    `realtime.json`, or the peak clock of `arch`. If it is unknown, the trace has cycles alone, and its time is NaN.

    Raises ArgumentError for a folder that is not one of these, and for a file in it that is not as described above.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ArgumentError(
            f"a trace of rocprofv3 must be a folder, got {place}",
            hint="give the folder ui_output_agent_*_dispatch_* of rocprofv3",
        )
    waves = sorted(_wave_files(place), key=lambda found: found[1])
    if not waves:
        inside = sorted(place.glob("ui_output_*"))
        hint = f"it is in {inside[0].name}" if inside else "rocprofv3 writes one for each wave of the target CU"
        raise ArgumentError(f"{place}: no file of a wave, such as se0_sm0_sl0_wv0.json", hint=hint)
    code = _Code.read(place)
    read = [_Wave.read(path, name, code) for path, name in waves]
    return _trace(place, code, read, arch, clock_mhz)


def _trace(place: Path, code: _Code, waves: list[_Wave], arch: str | None, clock_mhz: float | None) -> Trace:
    rows, events = _tables(waves)
    occupancy = _Occupancy.read(place)
    begin, end = int(rows["start"].min()), int(rows["end"].max())
    cycles = occupancy.cycles or end - begin
    kernel = code.kernel_of(events)
    trace = Trace(
        kernel=kernel or (occupancy.kernels[0] if len(occupancy.kernels) == 1 else place.name),
        arch=arch or _generation(place),
        clock_mhz=_clock(place, arch, clock_mhz),
        origin="rocprofv3",
        cycles=cycles,
        error_percent=None,
        sampling=_sampling(rows, occupancy),
        instructions=code.instructions,
        waves=rows,
        events=_with_reasons(events, code.instructions),
    )
    return _with_latencies(trace)


def unit_of_text(text: str) -> Unit:
    """The unit that executes an instruction, by its name.

    >>> [unit_of_text(text).name for text in ("v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v1, a[0:3]", "s_wait_kmcnt 0x0")]
    ['MATRIX', 'MESSAGE']
    """
    name = (text.split(None, 1) or [""])[0]
    other = next((unit for unit, pattern in _OTHER_UNITS if pattern.match(name)), None)
    return unit_of(split_encoding(name)[0]) if other is None else other


@dataclass(frozen=True)
class _Code:
    """The instructions, the index of each of their numbers, and where kernels begin, by index."""

    instructions: tuple[TracedInstruction, ...]
    index: dict[int, int]
    kernels: dict[int, str]

    @staticmethod
    def read(folder: Path) -> _Code:
        file = folder / "code.json"
        if not file.is_file():
            raise ArgumentError(
                f"{folder}: there is no code.json", hint="rocprofv3 --att writes it for --output-format json"
            )
        lines = field(file, read_json(file), "code", list)
        sources = _sources(folder)
        instructions, index, kernels = list[TracedInstruction](), dict[int, int](), dict[int, str]()
        for position, line in enumerate(lines):
            where = f"code[{position}]"
            if not isinstance(line, list) or len(line) < _CODE_COLUMNS:
                raise malformed(file, where, f"a list of at least {_CODE_COLUMNS}", line)
            text, number, source, address = line[0], line[2], line[3], line[5]
            if not isinstance(text, str) or not (source is None or isinstance(source, str)):
                raise malformed(file, where, "a text, and a source as text", line)
            if text.startswith(";"):
                kernels[len(instructions)] = text.lstrip("; ")
                continue
            index[whole(file, where, number)] = len(instructions)
            place = _place(source or "", sources)
            instructions.append(TracedInstruction(whole(file, where, address), text, unit_of_text(text), *place))
        return _Code((*instructions, _UNMATCHED), index, kernels)

    def kernel_of(self, events: Array) -> str | None:
        """The name of the kernel that most instructions belong to."""
        if not self.kernels:
            return None
        starts = np.array(sorted(self.kernels))
        which = np.searchsorted(starts, events["instruction"], side="right") - 1
        counts = np.bincount(np.maximum(which, 0), minlength=len(starts))
        return self.kernels[int(starts[counts.argmax()])]


@dataclass(frozen=True)
class _Wave:
    """A wave. place: shader engine, SIMD, slot, number. rows: instruction, issue, latency, stall of each event."""

    place: tuple[int, int, int, int]
    cu: int
    begin: int
    end: int
    rows: list[tuple[int, int, int, int]]

    @staticmethod
    def read(file: Path, place: tuple[int, int, int, int], code: _Code) -> _Wave:
        wave = field(file, read_json(file), "wave", dict)
        begin, end = (whole(file, f"wave.{name}", wave.get(name)) for name in ("begin", "end"))
        if end < begin:
            raise malformed(file, "wave.end", f"at least {begin}, where the wave begins", end)
        cu = whole(file, "wave.cu", wave.get("cu", 0))
        listed = wave.get("instructions") or []  # null for a wave without any
        if not isinstance(listed, list):
            raise malformed(file, "wave.instructions", "a list", listed)
        rows = sorted(_events(file, listed, code), key=lambda row: row[1])
        last = max((issue + latency for _, issue, latency, _ in rows), default=end)
        return _Wave(place, cu, begin, max(end, last), rows)


def _events(file: Path, listed: list[Any], code: _Code) -> Iterator[tuple[int, int, int, int]]:
    for position, record in enumerate(listed):
        where = f"wave.instructions[{position}]"
        if not isinstance(record, list) or len(record) < _EVENT_COLUMNS:
            raise malformed(file, where, "[time, category, stall, duration, number]", record)
        time, _category, stall, duration, number = (whole(file, where, value) for value in record[:_EVENT_COLUMNS])
        if time + stall > _LARGEST["issue"] or max(stall, duration) > _LARGEST["stall"]:
            raise malformed(file, where, "cycles that fit into a trace", record)
        yield code.index.get(number, len(code.instructions) - 1), time + stall, max(duration - stall, 1), stall


def _tables(waves: list[_Wave]) -> tuple[Array, Array]:
    rows = np.zeros(len(waves), WAVE)
    for i, wave in enumerate(waves):
        engine, simd, slot, number = wave.place
        try:
            rows[i] = (0, number, engine, wave.cu, simd, slot, wave.begin, wave.end)
        except OverflowError as error:
            raise ArgumentError(f"a wave at {wave.place} of CU {wave.cu}: {error}") from error
    events = np.zeros(sum(len(wave.rows) for wave in waves), EVENT)
    flat = [(i, *row) for i, wave in enumerate(waves) for row in wave.rows]
    for column, name in enumerate(("wave", "instruction", "issue", "latency", "stall")):
        events[name] = [row[column] for row in flat]
    return rows, events


def _with_reasons(events: Array, instructions: tuple[TracedInstruction, ...]) -> Array:
    """Give each stall the reason that goes with its instruction."""
    reasons = np.array([_reason(instruction) for instruction in instructions], np.uint8)
    events["reason"] = np.where(events["stall"] > 0, reasons[events["instruction"]], Stall.NONE)
    waits = np.array([Stall(r) is Stall.WAIT_LDS for r in reasons])[events["instruction"]]
    scalar = _waits_for_scalar(events, instructions)
    events["reason"][waits & scalar & (events["stall"] > 0)] = Stall.WAIT_SCALAR
    return events


def _reason(instruction: TracedInstruction) -> Stall:
    if instruction.text.startswith("s_barrier"):
        return Stall.BARRIER
    names = counters_waited_for(instruction.text)
    if {"lgkmcnt", "dscnt"} & names.keys() and not {"vmcnt", "loadcnt"} & names.keys():
        return Stall.WAIT_LDS
    if "kmcnt" in names:
        return Stall.WAIT_SCALAR
    return Stall.WAIT_VECTOR_MEMORY if names else _REASONS[instruction.unit]


def _waits_for_scalar(events: Array, instructions: tuple[TracedInstruction, ...]) -> Array:
    """True where the last LDS or scalar memory instruction of the wave before an event was a scalar one."""
    units = np.array([i.unit for i in instructions])[events["instruction"]]
    counted = (units == Unit.LDS) | (units == Unit.SCALAR_MEMORY)
    rows = np.where(counted, np.arange(len(events)), -1)
    last = np.maximum.accumulate(rows) if len(rows) else rows
    same_wave = (last >= 0) & (events["wave"][np.maximum(last, 0)] == events["wave"])
    return same_wave & (units[np.maximum(last, 0)] == Unit.SCALAR_MEMORY)


def _with_latencies(trace: Trace) -> Trace:
    """Memory instructions last until the wait for them is over."""
    made = producers(trace)
    waits = np.flatnonzero(made >= 0)
    issue = trace.events["issue"].astype(np.int64)
    until = issue[waits] - issue[made[waits]]
    longest = trace.events["latency"].astype(np.int64)
    np.maximum.at(longest, made[waits], until)
    trace.events["latency"] = np.minimum(longest, _LARGEST["latency"])
    return trace


@dataclass(frozen=True)
class _Occupancy:
    """The contents of occupancy.json. cycles: from the first wave to the last, 0 without it. waves: that began."""

    cycles: int
    waves: int
    kernels: tuple[str, ...]

    @staticmethod
    def read(folder: Path) -> _Occupancy:
        file = folder / "occupancy.json"
        content = optional_object(file)
        times, began = [], 0
        for engine, records in content.items():
            if not engine.isdigit() or records is None:
                continue
            for position, record in enumerate(as_list(file, engine, records)):
                where = f"{engine}[{position}]"
                if not isinstance(record, list) or len(record) < 6:
                    raise malformed(file, where, "[time, cu, simd, slot, start, kernel]", record)
                times.append(whole(file, where, record[0]))
                began += bool(record[4])
        names = as_object(file, content.get("dispatches") or {})
        kernels = tuple(str(name) for identifier, name in names.items() if identifier != "0")
        return _Occupancy(max(times) - min(times) if times else 0, began, kernels)


def _sampling(rows: Array, occupancy: _Occupancy) -> str:
    places = {(int(row["xcd"]), int(row["cu"])) for row in rows}
    where = ", ".join(f"CU {cu} of shader engine {engine}" for engine, cu in sorted(places))
    seen = f", of {occupancy.waves} that began on the traced shader engines" if occupancy.waves else ""
    return f"measured by rocprofv3: {len(rows)} waves on {where}{seen}; reasons of stalls follow from the instructions"


def _generation(folder: Path) -> str:
    """The folder's facts about the GPU."""
    file = folder / "filenames.json"
    found = optional_object(file).get("gfxip")
    return "unknown" if found is None else f"gfx{whole(file, 'gfxip', found)}"


def _clock(folder: Path, arch: str | None, clock_mhz: float | None) -> float:
    if clock_mhz is not None:
        if not (math.isfinite(clock_mhz) and clock_mhz > 0):
            raise ArgumentError(f"clock_mhz must be a positive number, got {clock_mhz}", hint="pass 2100, for example")
        return float(clock_mhz)
    return _measured_clock(folder) or _peak_clock(arch)


def _measured_clock(folder: Path) -> float | None:
    """Cycles per microsecond between the first and the last pair of clocks."""
    file = folder / "realtime.json"
    content = optional_object(file)
    frequency = as_object(file, content.get("metadata") or {}).get("frequency")
    for name, points in content.items():
        if name.startswith("SE") and isinstance(points, list) and len(points) > 1 and frequency:
            first, last = (_pair(file, name, point) for point in (points[0], points[-1]))
            ticks, cycles = last[1] - first[1], last[0] - first[0]
            if ticks > 0 and cycles > 0:
                return cycles / ticks * whole(file, "metadata.frequency", frequency) / 1e6
    return None


def _peak_clock(arch: str | None) -> float:
    if arch is None:
        return math.nan
    try:
        return peaks(get_arch(arch)).clock_hz / 1e6
    except ArchError:
        return math.nan


def _sources(folder: Path) -> dict[str, str]:
    """Files of the source by the path that the code names, as copied into the folder."""
    file = folder / "snapshots.json"
    return dict(_flat(folder, file, optional_object(file), ()))


def _flat(folder: Path, file: Path, tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, below in tree.items():
        if isinstance(below, dict):
            yield from _flat(folder, file, below, (*path, name))
        elif not isinstance(below, str) or Path(below).name != below:
            raise malformed(file, "/".join((*path, name)), "the name of a file in the same folder", below)
        elif (folder / below).is_file():
            yield str(Path(*path, name)), str(folder / below)


def _place(source: str, sources: Mapping[str, str]) -> tuple[str | None, int | None]:
    """File and line of the innermost place that an instruction comes from."""
    match = _SOURCE.match(source.split(_SOURCES_BETWEEN)[0].strip())
    return (sources.get(match[1], match[1]), int(match[2])) if match else (None, None)


def _wave_files(folder: Path) -> Iterable[tuple[Path, tuple[int, int, int, int]]]:
    for file in folder.iterdir():
        if (match := _WAVE_FILE.match(file.name)) and file.is_file():
            engine, simd, slot, number = map(int, match.groups())
            yield file, (engine, simd, slot, number)


def _pair(file: Path, where: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) < 2:
        raise malformed(file, where, "[cycle, tick]", value)
    return whole(file, where, value[0]), whole(file, where, value[1])
