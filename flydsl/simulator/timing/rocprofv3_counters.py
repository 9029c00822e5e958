"""Reading the counters that `rocprofv3 --pmc ... --output-format csv` writes, and what a trace says to each.

The file `*_counter_collection.csv` has a row for each counter of each dispatch. Counters of one dispatch that were
collected in several passes are in several files.

Source: ROCm/rocprofiler-sdk (docs/how-to/using-rocprofv3.rst) for the columns; AMD, "MI300 and MI200 series performance
counters and metrics", for the counters.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flydsl.errors import ArgumentError
from flydsl.simulator.timing.hot_spots import costs
from flydsl.simulator.timing.perfetto import has_clock
from flydsl.simulator.timing.trace import Trace, Unit

_NEEDED = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
_WAVES = "SQ_WAVES"

# Wave-instructions that a counter counts. SQ_INSTS_VALU has those of the matrix unit, too.
_COUNTED: Mapping[str, frozenset[Unit]] = {
    "SQ_INSTS_VALU": frozenset({Unit.VALU, Unit.TRANSCENDENTAL, Unit.MATRIX}),
    "SQ_INSTS_MFMA": frozenset({Unit.MATRIX}),
    "SQ_INSTS_SALU": frozenset({Unit.SCALAR}),
    "SQ_INSTS_SMEM": frozenset({Unit.SCALAR_MEMORY}),
    "SQ_INSTS_VMEM": frozenset({Unit.VECTOR_MEMORY}),
    "SQ_INSTS_LDS": frozenset({Unit.LDS}),
    "SQ_INSTS_BRANCH": frozenset({Unit.BRANCH}),
}


@dataclass(frozen=True)
class MeasuredDispatch:
    """A dispatch as rocprofv3 counted it. time_us: None where the file has no timestamps."""

    dispatch: int
    kernel: str
    time_us: float | None = None
    counters: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A quantity, measured and by the trace; None where one of the two does not know it."""

    name: str
    unit: str
    measured: float | None
    traced: float | None

    @property
    def error_percent(self) -> float | None:
        """The trace's difference from the measurement."""
        if self.measured is None or self.traced is None or not self.measured:
            return None
        return 100 * (self.traced / self.measured - 1)


def read_counters(*files: str | Path) -> list[MeasuredDispatch]:
    """The dispatches in counters' files, in order; what several files say about one dispatch is put together.

    Raises ArgumentError for a file that is not such a CSV, with the line that is wrong.
    """
    found: dict[tuple[int, str], MeasuredDispatch] = {}
    for file in map(Path, files):
        for line, row in _rows(file):
            dispatch = _number(file, line, "Dispatch_Id", row["Dispatch_Id"])
            key = int(dispatch), row["Kernel_Name"]
            one = found.setdefault(key, MeasuredDispatch(*key, _time(file, line, row)))
            value = _number(file, line, "Counter_Value", row["Counter_Value"])
            one.counters[row["Counter_Name"]] = value
    return [found[key] for key in sorted(found)]


def of_kernel(dispatches: Iterable[MeasuredDispatch], kernel: str) -> list[MeasuredDispatch]:
    """The dispatches of a kernel, by its name; those of all kernels where none has it."""
    every = list(dispatches)
    return [one for one in every if one.kernel.removesuffix(".kd") == kernel] or every


def compared(trace: Trace, measured: MeasuredDispatch) -> list[Comparison]:
    """The measured figures beside the trace's: time, and instructions of a wave. Other counters stand alone."""
    found = []
    if measured.time_us is not None:
        found.append(Comparison("time", "us", measured.time_us, trace.time_us if has_clock(trace) else None))
    waves = measured.counters.get(_WAVES)
    executions = _executions(trace)
    for name, value in measured.counters.items():
        units = _COUNTED.get(name)
        if units is not None and waves and len(trace.waves):
            mine = sum(executions.get(unit, 0) for unit in units) / len(trace.waves)
            found.append(Comparison(f"{name} of a wave", "instructions", value / waves, mine))
        else:
            found.append(Comparison(name, "", value, None))
    return found


def _executions(trace: Trace) -> dict[Unit, int]:
    found: dict[Unit, int] = {}
    for instruction, cost in zip(trace.instructions, costs(trace), strict=True):
        found[instruction.unit] = found.get(instruction.unit, 0) + cost.executions
    return found


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line."""
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise ArgumentError(
                    f"{file}: no column {missing[0]}",
                    hint="give the file *_counter_collection.csv of rocprofv3 --pmc ... --output-format csv",
                )
            for row in reader:
                if any(row.get(name) is None for name in _NEEDED):
                    raise ArgumentError(f"{file}:{reader.line_num}: a row of {len(row)} columns is not complete")
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArgumentError(f"{file} cannot be read: {error}", hint="give a counters' CSV of rocprofv3") from error


def _number(file: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentError(f"{file}:{line}: {column} must be a number, got {text!r}")
    return value


def _time(file: Path, line: int, row: Mapping[str, str]) -> float | None:
    """Timestamps are in nanoseconds."""
    begin, end = row.get("Start_Timestamp"), row.get("End_Timestamp")
    if not begin or not end:
        return None
    return (_number(file, line, "End_Timestamp", end) - _number(file, line, "Start_Timestamp", begin)) / 1000
