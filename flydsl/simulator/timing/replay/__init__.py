"""The replay: what the waves of a die executed, laid out in time by a model of its units.

C, one file per unit: `issue.c` says when a wave may issue, `waits.c` what it waits for, `lds.c`, `vector_memory.c`,
`scalar_memory.c`, `l2.c` and `memory.c` when accesses end, `calendar.c` who has its turn where data comes late,
`dispatch.c` where workgroups go, `signals.c` how long they wait for others; `schedule.c` is the loop. `layout` has the
structures.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, Array, addressof, c_uint64, c_void_p, sizeof
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.simulator import arrays
from flydsl.simulator.native.library import library
from flydsl.simulator.native.runtime import TYPES
from flydsl.simulator.timing.replay import layout
from flydsl.simulator.timing.trace import EVENT, Stall, Unit

_UNITS = (
    "calendar.c", "memory.c", "l2.c", "vector_memory.c", "lds.c", "scalar_memory.c", "waits.c", "issue.c", "signals.c",
    "dispatch.c",
)  # fmt: skip
_FILES = ("replay.h", *_UNITS, "schedule.c")
_STEPS = 200_000
"""The number of steps after which C returns."""


@dataclass(frozen=True)
class Work:
    """The work of a die. streams: by workgroup and wave. bases, first_shares: of the buffers, see `layout.Replay`.

    pauses: for each signal, the cycles for which a wave waits for it.
    """

    streams: list[list[arrays.Array]]
    instructions: list[layout.Instruction]
    bases: arrays.Array
    first_shares: arrays.Array
    pauses: arrays.Array = field(default_factory=lambda: np.zeros(0, np.uint64))


@dataclass(frozen=True)
class Replayed:
    """The result of a replay; times are in cycles.

    starts, ends: (workgroups). waves: (waves, 6): workgroup, compute unit, SIMD, slot, start and end. asks, written:
    (signals), when a wave came to it, and when it was written. events: those of the recorded compute units, as
    `trace.EVENT`; complete: whether there was room for all of them.
    """

    gpu: layout.Gpu
    state: layout.Replay
    starts: arrays.Array
    ends: arrays.Array
    waves: arrays.Array
    asks: arrays.Array
    written: arrays.Array
    events: arrays.Array
    complete: bool

    @property
    def cycles(self) -> int:
        """The cycles until the last workgroup has ended and all that was written is in memory."""
        return int(max(self.state.end, self.state.memory_free, self.state.cache_free))

    @property
    def memory_cycles(self) -> float:
        """The cycles in which the die's share of the memory is busy."""
        reads = self.state.read_bytes / self.gpu.read_bytes_per_cycle
        return float(reads + self.state.write_bytes / self.gpu.write_bytes_per_cycle)

    @property
    def memory_part(self) -> float:
        """The part of the time in which the die's share of the memory is busy."""
        return self.memory_cycles / max(self.cycles, 1)

    @property
    def matrix_part(self) -> float:
        """The part of the time in which matrix cores are busy, of the compute units that have workgroups."""
        simds = min(self.gpu.compute_units, len(self.ends)) * self.gpu.simds
        return float(self.state.busy[Unit.MATRIX] / (simds * max(self.cycles, 1)))


def replayed(gpu: layout.Gpu, work: Work, *, recorded_compute_units: int, event_room: int) -> Replayed:
    """Replay the workgroups of a die."""
    streams = [stream for workgroup in work.streams for stream in workgroup]
    instructions = _array(layout.Instruction, len(work.instructions))
    for i, instruction in enumerate(work.instructions):
        instructions[i] = instruction
    workgroups, waves = _array(layout.Workgroup, len(work.streams)), _array(layout.Wave, len(streams))
    first = 0
    for i, of_workgroup in enumerate(work.streams):
        workgroups[i].first_wave, workgroups[i].wave_count = first, len(of_workgroup)
        for stream in of_workgroup:
            waves[first].at = stream.ctypes.data
            waves[first].end = stream.ctypes.data + stream.nbytes
            waves[first].workgroup = i
            first += 1
    memory = _DieMemory(gpu, work, len(waves))
    events = np.zeros(event_room, _EVENT)
    asks, written = np.zeros((2, len(work.pauses)), np.uint64)
    state = layout.Replay(
        gpu=addressof(gpu),
        instructions=addressof(instructions),
        workgroups=addressof(workgroups),
        workgroup_count=len(workgroups),
        waves=addressof(waves),
        events=events.ctypes.data,
        event_room=event_room,
        pauses=work.pauses.ctypes.data,
        asks=asks.ctypes.data,
        written=written.ctypes.data,
        recorded_compute_units=recorded_compute_units,
        **memory.fields(),
    )
    while _replay()(addressof(state), _STEPS):
        pass  # where Ctrl-C is heard
    found = events[: min(int(state.event_count), event_room)]
    return Replayed(
        gpu,
        state,
        np.array([w.start for w in workgroups], np.int64),
        np.array([w.end for w in workgroups], np.int64),
        np.array([(w.workgroup, w.compute_unit, w.simd, w.slot, w.start, w.ended) for w in waves], np.int64),
        asks,
        written,
        _as_events(found),
        bool(state.event_count <= event_room),
    )


class _DieMemory:
    """The memory that C keeps the state of a die's units in, zero at first."""

    def __init__(self, gpu: layout.Gpu, work: Work, waves: int) -> None:
        lines = int(gpu.l2_sets * gpu.l2_ways)
        self._units = _array(layout.ComputeUnit, int(gpu.compute_units))
        self._arrays: dict[str, arrays.Array] = {
            "heap": np.zeros(waves + 1, np.uint32),
            "l2_tags": np.zeros(lines, np.uint32),
            "l2_used": np.zeros(lines, np.uint32),
            "l2_filled": np.zeros(lines, np.uint64),
            "l2_dirty": np.zeros(lines, np.uint8),
            "channel_free": np.zeros(int(gpu.l2_channels), np.float64),
            "seen": np.zeros(int(work.bases[-1]) // 16 + 2, np.uint8),
            "bases": work.bases,
            "first_shares": work.first_shares,
        }

    def fields(self) -> dict[str, int]:
        addresses = {name: int(array.ctypes.data) for name, array in self._arrays.items()}
        buffers = len(self._arrays["first_shares"])
        return {**addresses, "compute_units": addressof(self._units), "buffer_count": buffers}


_EVENT = np.dtype(
    [
        ("wave", np.uint32),
        ("instruction", np.uint32),
        ("issue", np.uint64),
        ("latency", np.uint32),
        ("stall", np.uint32),
        ("reason", np.uint32),
        ("unused", np.uint32),
    ]
)
assert sizeof(layout.Event) == _EVENT.itemsize


def _as_events(found: arrays.Array) -> arrays.Array:
    """The events as `trace.EVENT`, sorted by wave; those of one wave stay in the order of issue."""
    order = np.argsort(found["wave"], kind="stable")
    events = np.zeros(len(found), EVENT)
    for name in EVENT.names or ():
        events[name] = found[name][order]
    return events


def _array(structure: Any, count: int) -> Array[Any]:
    return (structure * count)()


@cache
def _replay() -> Any:
    """The function `replay` of schedule.c."""
    return CFUNCTYPE(c_uint64, c_void_p, c_uint64)(library().compiled(source(), ("replay",))["replay"])


def source() -> str:
    """The C of the replay."""
    folder = Path(__file__).parent
    names = {unit.name: int(unit) for unit in Unit} | {stall.name: int(stall) for stall in Stall}
    kinds = (
        "LOAD", "STORE", "ATOMIC", "LOAD_TO_LDS", "WAIT", "BARRIER_SIGNAL", "BARRIER_WAIT", "QUEUE", "PORTS", "SPANS",
        "SPAN_CYCLES", "SCALAR_SETS", "SCALAR_WAYS",
    )  # fmt: skip
    counters = ("LDS_COUNTER", "SCALAR_COUNTER", "COUNTERS")
    names |= {name: getattr(layout, name) for name in (*kinds, *counters)}
    names["BARRIER_KIND"] = layout.BARRIER
    constants = [f"#define {name} {value}" for name, value in names.items()] + ["#define LINE_WORD 0xC0000000u"]
    constants += ["#define LDS_WORD 0x80000000u", "#define SIGNAL_WORD 0xA0000000u"]
    files = [f'#line 1 "{file}"\n{(folder / file).read_text("utf-8")}' for file in _FILES]
    return "\n".join([TYPES, *constants, layout.declarations(), *files, ""])
