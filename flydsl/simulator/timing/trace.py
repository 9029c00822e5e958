"""A thread trace as plain data: which wave issued which instruction when, and what it waited for before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from flydsl.errors import ArgumentError
from flydsl.simulator.arrays import Array


class Unit(IntEnum):
    """What executes an instruction. MESSAGE: waits, barriers and all that no other unit does."""

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
    """Why a wave did not issue an instruction earlier.

    WAIT_VECTOR_MEMORY: vmcnt, loadcnt or storecnt. WAIT_LDS: lgkmcnt or dscnt. WAIT_SCALAR: kmcnt, or an lgkmcnt that
    waits for scalar loads. *_BUSY: the unit was taken. NO_SLOT: another wave was issued.
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
_ORIGINS = ("model", "rocprofv3")


@dataclass(frozen=True, eq=False)
class Trace:
    """Some waves of a launch, instruction by instruction.

    cycles: of the whole launch. sampling: a sentence that says which waves are here, and how `cycles` follows from
    them. error_percent: how far off such estimates are, for this kind of kernel; None where nobody knows. origin:
    "model" or "rocprofv3". waves, events: arrays of WAVE and EVENT; events are sorted by wave, then by issue.

    Raises ArgumentError for arrays of another type, or events of waves or instructions that are not there.
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

    def __post_init__(self) -> None:
        if self.origin not in _ORIGINS:
            raise ArgumentError(f"a trace of origin {self.origin!r}", hint=f"one of {', '.join(_ORIGINS)}")
        for name, type_ in (("waves", WAVE), ("events", EVENT)):
            found = getattr(self, name).dtype
            if found != type_:
                raise ArgumentError(f"the {name} of a trace have type {found}, not {type_}")
        for name, count in (("wave", len(self.waves)), ("instruction", len(self.instructions))):
            if len(self.events) and int(self.events[name].max()) >= count:
                raise ArgumentError(f"an event of {name} {int(self.events[name].max())}, but there are {count}")

    @property
    def time_us(self) -> float:
        """The time of the whole launch."""
        return self.cycles / self.clock_mhz

    def __repr__(self) -> str:
        about = " (error unknown)" if self.error_percent is None else f" +- {self.error_percent:.0f} %"
        cycles = f"{self.cycles} cycles at {self.clock_mhz:g} MHz, {self.origin}"
        shown = f"{len(self.waves)} waves, {len(self.events)} instructions; {self.sampling}"
        return f"{self.kernel} on {self.arch}: {self.time_us:.4g} us{about} ({cycles}); {shown}"

    def to_json(self) -> str:
        """The trace as text; `from_json` reads it."""
        fields = {name: getattr(self, name) for name in _SCALARS}
        fields["instructions"] = [[i.address, i.text, int(i.unit), i.file, i.line] for i in self.instructions]
        for name, array in (("waves", self.waves), ("events", self.events)):
            fields[name] = {column: array[column].tolist() for column in array.dtype.names or ()}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace of such a text. ArgumentError for another text."""
        try:
            fields = json.loads(text)
            instructions = tuple(TracedInstruction(a, t, Unit(u), f, n) for a, t, u, f, n in fields["instructions"])
            waves, events = _array(fields["waves"], WAVE), _array(fields["events"], EVENT)
            scalars = {name: fields[name] for name in _SCALARS}
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ArgumentError(f"this is not a trace: {error}", hint="Trace.to_json() writes one") from error
        return cls(**scalars, instructions=instructions, waves=waves, events=events)


_SCALARS = ("kernel", "arch", "clock_mhz", "origin", "cycles", "error_percent", "sampling")


def _array(columns: Mapping[str, Any], type_: np.dtype[Any]) -> Array:
    names = type_.names or ()
    array = np.zeros(len(columns[names[0]]), type_)
    for name in names:
        array[name] = columns[name]
    return array
