"""The memory that the replay shares with Python: `declarations` has the same structures for C.

- `Gpu` has the figures of the accelerator, `Instruction` what is known of each instruction.
- `Workgroup` and `Wave` are the work and its state, `ComputeUnit` and `Die` that of the hardware.
- `Replay` holds it all together, with what is measured.
"""

from __future__ import annotations

from ctypes import c_double, c_uint32, c_uint64

from flydsl.hsaco.operands import EXEC
from flydsl.simulator.native.layout import Shared, declarations_of

LOAD, STORE, ATOMIC, LOAD_TO_LDS, WAIT, BARRIER, END, BARRIER_SIGNAL, BARRIER_WAIT = range(1, 10)
"""Kinds of instructions, besides the unit."""
VECTOR_COUNTER, LDS_COUNTER, STORE_COUNTER, SCALAR_COUNTER = range(COUNTERS := 4)
"""What counts accesses under way. CDNA counts stores with the loads, and scalar loads with the accesses of LDS."""
MAX_RANGES = 16
REGISTERS = 129 + 2 * 256
IGNORED_REGISTERS = 3 << EXEC
QUEUE = 64
"""Accesses that a wave may have under way: what a counter counts to at most."""
SIMDS = 4
L1_LINES = 256
L1_CACHES = LDS_PIPES = LDS_PORTS = 2
"""Of a compute unit, at most."""
SPANS, SPAN_CYCLES = 1024, 32
"""Of a calendar: longer than any access is under way."""
PORTS = 9
"""One for each unit of `trace.Unit`."""


class Range(Shared):
    """Registers: `scc` is 128, v0 129, a0 129 + 256."""

    _fields_ = [("first", c_uint32), ("count", c_uint32)]


class Instruction(Shared):
    """busy: cycles for which it holds its unit; held: those for which it holds the port that it is issued through.
    latency: until its results are there. after: until the wave goes on. addressing: cycles in which the addresses of a
    vector access are taken. lds_in, lds_out: cycles that an access of LDS needs of the ports of its pair of SIMDs.

    counter: what counts it while it is under way, up to `room`. limits: of a wait, for each counter the accesses that
    may still be under way. early: cycles by which a matrix instruction may use the sum that it adds to before others
    may.
    """

    _fields_ = [
        ("unit", c_uint32),
        ("kind", c_uint32),
        ("busy", c_uint32),
        ("held", c_uint32),
        ("latency", c_uint32),
        ("after", c_uint32),
        ("addressing", c_uint32),
        ("lds_in", c_uint32),
        ("lds_out", c_uint32),
        ("counter", c_uint32),
        ("room", c_uint32),
        ("limits", c_uint32 * COUNTERS),
        ("early", c_uint32),
        ("read_count", c_uint32),
        ("write_count", c_uint32),
        ("reads", Range * MAX_RANGES),
        ("writes", Range * MAX_RANGES),
    ]


class Gpu(Shared):
    """Figures, in cycles and bytes per cycle. Of memory: the share of the die. Lines are of 128 bytes."""

    _fields_ = [
        ("compute_units", c_uint64),
        ("simds", c_uint64),
        ("l1_caches", c_uint64),
        ("lds_pipes", c_uint64),
        ("workgroups_per_compute_unit", c_uint64),
        ("dispatch_cycles", c_uint64),
        ("start_cycles", c_uint64),
        ("branch_cycles", c_uint64),
        ("barrier_cycles", c_uint64),
        ("lds_latency", c_uint64),
        ("lds_bytes_per_cycle", c_double),
        ("scalar_hit_latency", c_uint64),
        ("scalar_miss_latency", c_uint64),
        ("l1_sets", c_uint64),
        ("l1_ways", c_uint64),
        ("l1_latency", c_uint64),
        ("l1_bytes_per_cycle", c_double),
        ("l1_fill_bytes_per_cycle", c_double),
        ("l2_sets", c_uint64),
        ("l2_ways", c_uint64),
        ("l2_channels", c_uint64),
        ("l2_latency", c_uint64),
        ("l2_read_bytes", c_double),
        ("l2_write_bytes", c_double),
        ("cache_latency", c_uint64),
        ("cache_bytes_per_cycle", c_double),
        ("cache_keeps", c_double),
        ("memory_latency", c_uint64),
        ("read_bytes_per_cycle", c_double),
        ("write_bytes_per_cycle", c_double),
    ]


class Workgroup(Shared):
    """first_wave: its row of the waves. signalled: how many of its waves have come to the barrier, after `phase`
    barriers that all have come to. lds_pipe: through which its LDS is reached."""

    _fields_ = [
        ("first_wave", c_uint64),
        ("wave_count", c_uint64),
        ("running", c_uint64),
        ("signalled", c_uint64),
        ("phase", c_uint64),
        ("lds_pipe", c_uint64),
        ("compute_unit", c_uint64),
        ("start", c_uint64),
        ("end", c_uint64),
    ]


class Wave(Shared):
    """at, end: of its stream. ready: when it may issue its next instruction if nothing hinders. fetched: when that is
    there after a branch. key: when the wave will be looked at. signals: how many barriers it has come to. done: by
    counter, when accesses under way end, in a ring of which `first` is the oldest. registers: when they have their
    values.
    """

    _fields_ = [
        ("at", c_uint64),
        ("end", c_uint64),
        ("workgroup", c_uint64),
        ("compute_unit", c_uint64),
        ("simd", c_uint64),
        ("slot", c_uint64),
        ("ready", c_uint64),
        ("key", c_uint64),
        ("reason", c_uint64),
        ("looked_at", c_uint64),
        ("start", c_uint64),
        ("ended", c_uint64),
        ("fetched", c_uint64),
        ("at_barrier", c_uint64),
        ("barrier_stall", c_uint64),
        ("signals", c_uint64),
        ("first", c_uint64 * COUNTERS),
        ("count", c_uint64 * COUNTERS),
        ("scalar_loads", c_uint64),
        ("done", c_uint64 * (COUNTERS * QUEUE)),
        ("registers", c_uint64 * REGISTERS),
    ]
    _points_to_ = {"at": "const u32", "end": "const u32"}


class Calendar(Shared):
    """A unit that serves requests when they are due. used: of the spans of time in the ring, the cycles taken."""

    _fields_ = [("span", c_uint64 * SPANS), ("used", c_double * SPANS)]


class VectorCache(Shared):
    """A vector L1. free: when it takes the next access; from_l2: the way on which lines come. tags, filled, used: of
    its lines.
    """

    _fields_ = [
        ("free", c_double),
        ("from_l2", Calendar),
        ("tags", c_uint32 * L1_LINES),
        ("used", c_uint32 * L1_LINES),
        ("filled", c_uint64 * L1_LINES),
    ]


class ComputeUnit(Shared):
    """ports: when a unit of a SIMD is free. lds: its pipes; lds_in, lds_out: the ports of pairs of SIMDs to them.
    started: how many workgroups were.
    """

    _fields_ = [
        ("ports", c_uint64 * (SIMDS * PORTS)),
        ("waves_on_simd", c_uint64 * SIMDS),
        ("resident", c_uint64),
        ("started", c_uint64),
        ("lds", Calendar * LDS_PIPES),
        ("lds_in", Calendar * LDS_PORTS),
        ("lds_out", Calendar * LDS_PORTS),
        ("l1", VectorCache * L1_CACHES),
        ("scalar_seen", c_uint64),
    ]
    _points_to_ = {"scalar_seen": "u8"}


class Event(Shared):
    """See `trace.EVENT`."""

    _fields_ = [
        ("wave", c_uint32),
        ("instruction", c_uint32),
        ("issue", c_uint64),
        ("latency", c_uint32),
        ("stall", c_uint32),
        ("reason", c_uint32),
        ("unused", c_uint32),
    ]


class Replay(Shared):
    """One die at work. line_buffers, bases: which buffer a line is in; first_shares: of each buffer, the part of the
    lines that this die is the first to ask for. seen: a bit for each line that was ever asked for."""

    _fields_ = [
        ("gpu", c_uint64),
        ("instructions", c_uint64),
        ("workgroups", c_uint64),
        ("workgroup_count", c_uint64),
        ("next_workgroup", c_uint64),
        ("waves", c_uint64),
        ("compute_units", c_uint64),
        ("heap", c_uint64),
        ("heap_count", c_uint64),
        ("l2_tags", c_uint64),
        ("l2_used", c_uint64),
        ("l2_filled", c_uint64),
        ("channel_free", c_uint64),
        ("clock", c_uint64),
        ("scalar_seen", c_uint64),
        ("seen", c_uint64),
        ("bases", c_uint64),
        ("first_shares", c_uint64),
        ("buffer_count", c_uint64),
        ("cache_free", c_double),
        ("memory_free", c_double),
        ("events", c_uint64),
        ("event_count", c_uint64),
        ("event_room", c_uint64),
        ("recorded_compute_units", c_uint64),
        ("executed", c_uint64),
        ("matrix_cycles", c_uint64),
        ("busy", c_uint64 * PORTS),
        ("l1_requests", c_uint64),
        ("l2_requests", c_uint64),
        ("l2_misses", c_uint64),
        ("read_bytes", c_double),
        ("cache_bytes", c_double),
        ("write_bytes", c_double),
        ("last_access", c_uint64),
        ("started", c_uint64),
    ]
    _points_to_ = {
        "gpu": "const Gpu",
        "instructions": "const Instruction",
        "workgroups": "Workgroup",
        "waves": "Wave",
        "compute_units": "ComputeUnit",
        "heap": "u32",
        "l2_tags": "u32",
        "l2_used": "u32",
        "l2_filled": "u64",
        "channel_free": "double",
        "scalar_seen": "u8",
        "seen": "u8",
        "bases": "const u32",
        "first_shares": "const double",
        "events": "Event",
    }


def declarations() -> str:
    """The structures in C."""
    return declarations_of(
        [Range, Instruction, Gpu, Workgroup, Wave, Calendar, VectorCache, ComputeUnit, Event, Replay]
    )
