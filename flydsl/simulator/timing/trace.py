"""A thread trace as plain data: which wave issued which instruction when, and what it waited for before."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from flydsl.errors import ArgumentError
from flydsl.errors.missing_attributes import Explained
from flydsl.simulator.arrays import Array
from flydsl.simulator.estimates import Estimate


class Unit(IntEnum):
    """The unit that executes an instruction. MESSAGE: waits, barriers and all that no other unit does."""

    SCALAR = 0
    VALU = 1
    TRANSCENDENTAL = 2
    MATRIX = 3
    LDS = 4
    VECTOR_MEMORY = 5
    SCALAR_MEMORY = 6
    BRANCH = 7
    MESSAGE = 8


class Stall(IntEnum):
    """The reason why a wave did not issue an instruction earlier.

    WAIT_VECTOR_MEMORY: vmcnt, loadcnt or storecnt. WAIT_LDS: lgkmcnt or dscnt. WAIT_SCALAR: kmcnt, or an lgkmcnt that
    waits for scalar loads. *_BUSY: the unit was taken. NO_SLOT: another wave was issued.
    SIGNAL: another workgroup had not written what the wave looks for.
    """

    NONE = 0
    DEPENDENCY = 1
    WAIT_VECTOR_MEMORY = 2
    WAIT_LDS = 3
    WAIT_SCALAR = 4
    LDS_BUSY = 5
    MATRIX_BUSY = 6
    MEMORY_BUSY = 7
    BARRIER = 8
    NO_SLOT = 9
    INSTRUCTION_FETCH = 10
    SIGNAL = 11


@dataclass(frozen=True)
class TracedInstruction:
    """An instruction of the program. address: in bytes from its beginning; file, line: of the source, if known."""

    address: int
    text: str
    unit: Unit
    file: str | None = None
    line: int | None = None


WAVE = np.dtype(
    [
        ("workgroup", np.uint32),  # linear
        ("wave", np.uint16),  # within the workgroup
        ("xcd", np.uint16),
        ("cu", np.uint16),
        ("simd", np.uint8),
        ("slot", np.uint8),  # of the SIMD
        ("start", np.uint64),  # cycles
        ("end", np.uint64),
    ]
)
EVENT = np.dtype(
    [
        ("wave", np.uint32),  # row of `Trace.waves`
        ("instruction", np.uint32),  # index into `Trace.instructions`
        ("issue", np.uint64),  # cycle
        ("latency", np.uint32),  # cycles until its result is there, or its unit has ended
        ("stall", np.uint32),  # cycles that the wave waited before
        ("reason", np.uint8),  # a Stall
    ]
)


@dataclass(frozen=True)
class MemoryUse:
    """Use of the caches and the memory by a launch. Bytes are those of the whole launch, as lines of a cache."""

    l1_hit_percent: float
    l2_hit_percent: float
    hbm_read_bytes: int
    hbm_write_bytes: int

    @property
    def hbm_bytes(self) -> int:
        """Bytes that cross the memory's bus."""
        return self.hbm_read_bytes + self.hbm_write_bytes


_ORIGINS = ("model", "rocprofv3")


@dataclass(frozen=True, eq=False)
class Trace(Explained):
    """Some waves of a launch, instruction by instruction.

    cycles: of the whole launch. sampling: a sentence that says which waves are here, and how `cycles` follows from
    them. error_percent, is_compared: how far off such estimates are, for this kind of kernel, see
    `flydsl.simulator.estimates`; None if unknown. origin: "model" or "rocprofv3". waves, events: arrays of
    WAVE and EVENT; events are sorted by wave, then by issue.
    clock_mhz: NaN if unknown; the time is NaN then. memory: of the model; None of a recording. writers: of rows of
    events, the workgroup whose write ends the wait for a signal before them. idle_compute_units: those of the GPU that
    no workgroup of the launch runs on, 0 where it is not known. is_power_limited: whether `cycles` are those of the
    matrix instructions alone, at the clock that power allows when all matrix units work.

    Raises ArgumentError for arrays of another type, and for events in another order, or of waves, instructions or
    reasons that do not exist.
    """

    kernel: str
    arch: str
    clock_mhz: float
    origin: str
    cycles: int
    error_percent: float | None
    sampling: str
    instructions: tuple[TracedInstruction, ...]
    waves: Array
    events: Array
    is_compared: bool = True
    memory: MemoryUse | None = None
    writers: Mapping[int, int] = field(default_factory=dict)
    idle_compute_units: int = 0
    is_power_limited: bool = False

    def __post_init__(self) -> None:
        if self.origin not in _ORIGINS:
            raise ArgumentError(f"the origin of a trace must be one of {', '.join(_ORIGINS)}, got {self.origin!r}")
        for name, type_ in (("waves", WAVE), ("events", EVENT)):
            found = getattr(self, name).dtype
            if found != type_:
                raise ArgumentError(f"the {name} of a trace must be of type {type_}, got {found}")
        counts = {"wave": len(self.waves), "instruction": len(self.instructions), "reason": len(Stall)}
        for name, count in counts.items():
            if len(self.events) and int(self.events[name].max()) >= count:
                raise ArgumentError(
                    f"an event has {name} {int(self.events[name].max())}, and the trace has {count} of them"
                )
        order = np.lexsort((self.events["issue"], self.events["wave"]))
        if (order != np.arange(len(order))).any():
            raise ArgumentError("the events of a trace are not sorted", hint="sort them by wave, then by issue")
        if (self.waves["end"] < self.waves["start"]).any():
            raise ArgumentError("a wave of a trace ends before it starts")

    def stall_name(self, event: int) -> str | None:
        """The name of the stall before an event where it is for a signal of a known workgroup, else None."""
        writer = self.writers.get(event)
        return None if writer is None else f"waits for workgroup {writer}'s signal"

    @property
    def time_us(self) -> float:
        """The time of the whole launch."""
        return self.cycles / self.clock_mhz

    @property
    def estimate(self) -> Estimate:
        """The time of the whole launch with its error."""
        return Estimate(self.time_us, self.error_percent, self.is_compared)

    def __repr__(self) -> str:
        time = str(self.estimate) if self.origin == "model" else f"{self.time_us:.4g} us"
        cycles = f"{self.cycles} cycles at {self.clock_mhz:g} MHz, {self.origin}"
        shown = f"{len(self.waves)} waves, {len(self.events)} instructions; {self.sampling}"
        return f"{self.kernel} on {self.arch}: {time} ({cycles}); {shown}"

    def to_json(self) -> str:
        """The trace as text; `from_json` reads it."""
        fields = {name: getattr(self, name) for name in _SCALARS}
        fields["clock_mhz"] = self.clock_mhz if math.isfinite(self.clock_mhz) else None  # JSON has no NaN
        fields["instructions"] = [[i.address, i.text, int(i.unit), i.file, i.line] for i in self.instructions]
        fields["memory"] = None if self.memory is None else asdict(self.memory)
        fields["writers"] = list(self.writers.items())
        for name, array in (("waves", self.waves), ("events", self.events)):
            fields[name] = {column: array[column].tolist() for column in array.dtype.names or ()}
        return json.dumps(fields, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace of such a text. ArgumentError for another text."""
        try:
            fields = json.loads(text)
            instructions = tuple(TracedInstruction(a, t, Unit(u), f, n) for a, t, u, f, n in fields["instructions"])
            waves, events = _array(fields["waves"], WAVE), _array(fields["events"], EVENT)
            scalars = _scalars(fields)
            memory = None if fields.get("memory") is None else _memory_use(fields["memory"])
            writers = {int(row): int(workgroup) for row, workgroup in fields.get("writers", ())}
            if not all(isinstance(i.text, str) and isinstance(i.address, int) for i in instructions):
                raise TypeError("an instruction is [address, text, unit, file, line]")
            if not all(_is_place(i.file, i.line) for i in instructions):
                raise TypeError("the file and the line of an instruction are a text and a number, or null")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ArgumentError(f"this is not a trace: {error}", hint="Trace.to_json() writes one") from error
        return cls(**scalars, instructions=instructions, waves=waves, events=events, memory=memory, writers=writers)


_SCALARS: Mapping[str, type | tuple[type, ...]] = {
    "kernel": str,
    "arch": str,
    "clock_mhz": (int, float, type(None)),
    "origin": str,
    "cycles": int,
    "error_percent": (int, float, type(None)),
    "sampling": str,
    "is_compared": bool,
    "idle_compute_units": int,
    "is_power_limited": bool,
}
_LATER: Mapping[str, Any] = {"is_compared": True, "idle_compute_units": 0, "is_power_limited": False}
"""Fields that older files do not have, with their values there."""


def _scalars(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are no arrays, checked."""
    fields = {**_LATER, **fields}
    found = {name: fields[name] for name in _SCALARS}
    wrong = next((name for name, kind in _SCALARS.items() if not isinstance(found[name], kind)), None)
    if wrong is not None:
        raise TypeError(f"{wrong} is {found[wrong]!r}")
    return found | {"clock_mhz": math.nan if found["clock_mhz"] is None else found["clock_mhz"]}


def _memory_use(fields: Mapping[str, Any]) -> MemoryUse:
    """The use of memory, its numbers checked."""
    if not all(isinstance(number, int | float) for number in fields.values()):
        raise TypeError(f"memory is {fields!r}")
    return MemoryUse(**fields)


def _is_place(file: Any, line: Any) -> bool:
    return (file is None or isinstance(file, str)) and (line is None or isinstance(line, int))


def _array(columns: Mapping[str, Any], type_: np.dtype[Any]) -> Array:
    names = type_.names or ()
    array = np.zeros(len(columns[names[0]]), type_)
    for name in names:
        array[name] = columns[name]
    return array
