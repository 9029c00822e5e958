"""The memory that the replay shares with Python: `declarations` has the same structures for C.

- `Gpu` has the figures of the accelerator, `Instruction` what is known of each instruction.
- `Workgroup` and `Wave` are the work and its state, `ComputeUnit` and `Die` that of the hardware.
- `Replay` holds it all together, with what is measured.
"""

from __future__ import annotations

from flydsl.hsaco.operands import EXEC
from flydsl.simulator.native.layout import Shared, declarations_of, fields

LOAD, STORE, ATOMIC, LOAD_TO_LDS, WAIT, BARRIER, END, BARRIER_SIGNAL, BARRIER_WAIT = range(1, 10)
"""Kinds of instructions, besides the unit."""
VECTOR_COUNTER, LDS_COUNTER, STORE_COUNTER, SCALAR_COUNTER = range(COUNTERS := 4)
"""The counters of accesses under way. CDNA counts stores with the loads, and scalar loads with the accesses of LDS."""
MAX_RANGES = 16
REGISTERS = 129 + 2 * 256
IGNORED_REGISTERS = 3 << EXEC
QUEUE = 64
"""Accesses that a wave may have under way: what a counter counts to at most."""
SIMDS = 4
L1_LINES = 256
L1_CACHES = LDS_PIPES = LDS_PORTS = 2
"""Of a compute unit, at most."""
SCALAR_SETS, SCALAR_WAYS = 64, 4
"""Of a scalar cache of 16 KiB: AMD Graphics Cores Next (GCN) Architecture, 2012; CDNA and RDNA have as much."""
SPANS, SPAN_CYCLES = 1024, 32
"""Of a calendar: longer than any access is under way."""
PORTS = 9
"""One for each unit of `trace.Unit`."""


class Range(Shared):
    """Registers: `scc` is 128, v0 129, a0 129 + 256."""

    _fields_, _points_to_ = fields(globals(), "u32 first, count;")


class Instruction(Shared):
    """busy: cycles for which it holds its unit; held: those for which it holds the port that it is issued through.
    latency: until its results are there. after: until the wave goes on. addressing: cycles in which the addresses of a
    vector access are taken. lds_in, lds_out: cycles that an access of LDS needs of the ports of its pair of SIMDs.

    counter: what counts it while it is under way, up to `room`. limits: of a wait, for each counter the accesses that
    may still be under way. early: cycles by which a matrix instruction may use the sum that it adds to before others
    may.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u32 unit, kind, busy, held, latency, after, addressing, lds_in, lds_out, counter, room,
            limits[{COUNTERS}], early, read_count, write_count;
        Range reads[{MAX_RANGES}], writes[{MAX_RANGES}];
    """)  # fmt: skip


class Gpu(Shared):
    """Figures, in cycles and bytes per cycle. Of memory: the share of the die. Lines are of 128 bytes.

    cache_keeps: the part of the lines that the Infinity Cache has when they are asked for again; cache_takes: the part
    of those written back that it has room for. l2_dirty_lines: how many wait at most to be written back.
    """

    _fields_, _points_to_ = fields(globals(), """
        u64 compute_units, simds, l1_caches, lds_pipes, workgroups_per_compute_unit, dispatch_cycles,
            start_cycles, branch_cycles, barrier_cycles, lds_latency;
        double lds_bytes_per_cycle;
        u64 scalar_hit_latency, scalar_miss_latency, l1_sets, l1_ways, l1_latency;
        double l1_bytes_per_cycle, l1_fill_bytes_per_cycle;
        u64 l2_sets, l2_ways, l2_channels, l2_latency, l2_atomic_cycles, l2_dirty_lines;
        double l2_read_bytes, l2_write_bytes;
        u64 cache_latency;
        double cache_bytes_per_cycle, cache_keeps, cache_takes;
        u64 memory_latency;
        double read_bytes_per_cycle, write_bytes_per_cycle;
    """)  # fmt: skip


class Workgroup(Shared):
    """first_wave: its row of the waves. signalled: how many of its waves have come to the barrier, after `phase`
    barriers that all have come to. lds_pipe: through which its LDS is reached."""

    _fields_, _points_to_ = fields(globals(), """
        u64 first_wave, wave_count, running, signalled, phase, lds_pipe, compute_unit, start, end;
    """)  # fmt: skip


class Wave(Shared):
    """at, end: of its stream. ready: when it may issue its next instruction if nothing hinders. fetched: when that is
    there after a branch. key: when the wave will be looked at. signals: how many barriers it has come to. done: by
    counter, when accesses under way end, in a ring whose oldest is `first`. registers: when they have their
    values. asked: where it is in its stream at a signal that it has asked for.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        const u32 *at, *end, *asked;
        u64 workgroup, compute_unit, simd, slot, ready, key, reason, looked_at, start, ended, fetched,
            at_barrier, barrier_stall, signals, first[{COUNTERS}], count[{COUNTERS}], scalar_loads,
            done[{COUNTERS * QUEUE}], registers[{REGISTERS}];
    """)  # fmt: skip


class Calendar(Shared):
    """A unit that serves requests when they are due. used: of the spans of time in the ring, the cycles taken."""

    _fields_, _points_to_ = fields(globals(), f"""
        u64 span[{SPANS}];
        double used[{SPANS}];
    """)  # fmt: skip


class VectorCache(Shared):
    """A vector L1. free: when it takes the next access; from_l2: the way on which lines come. tags, filled, used: of
    its lines.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        double free;
        Calendar from_l2;
        u32 tags[{L1_LINES}], used[{L1_LINES}];
        u64 filled[{L1_LINES}];
    """)  # fmt: skip


class ScalarCache(Shared):
    """tags, filled, used: of its lines."""

    _fields_, _points_to_ = fields(globals(), f"""
        u32 tags[{SCALAR_SETS * SCALAR_WAYS}], used[{SCALAR_SETS * SCALAR_WAYS}];
        u64 filled[{SCALAR_SETS * SCALAR_WAYS}];
    """)  # fmt: skip


class ComputeUnit(Shared):
    """ports: when a unit of a SIMD is free. lds: its pipes; lds_in, lds_out: the ports of pairs of SIMDs to them.
    started: how many workgroups were.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u64 ports[{SIMDS * PORTS}], waves_on_simd[{SIMDS}], resident, started;
        Calendar lds[{LDS_PIPES}], lds_in[{LDS_PORTS}], lds_out[{LDS_PORTS}];
        VectorCache l1[{L1_CACHES}];
        ScalarCache scalar;
    """)  # fmt: skip


class Event(Shared):
    """See `trace.EVENT`."""

    _fields_, _points_to_ = fields(globals(), """
        u32 wave, instruction;
        u64 issue;
        u32 latency, stall, reason, unused;
    """)  # fmt: skip


class Replay(Shared):
    """One die at work. line_buffers, bases: which buffer a line is in; first_shares: of each buffer, the part of the
    lines that this die is the first to ask for. seen: a bit for each line that was ever asked for. pauses: by signal,
    for how long a wave waits for it; asks, written: when it comes to it, and when it is written."""

    _fields_, _points_to_ = fields(globals(), f"""
        const Gpu *gpu;
        const Instruction *instructions;
        Workgroup *workgroups;
        u64 workgroup_count, next_workgroup;
        Wave *waves;
        ComputeUnit *compute_units;
        u32 *heap;
        u64 heap_count;
        u32 *l2_tags, *l2_used;
        u64 *l2_filled;
        u8 *l2_dirty;
        double *channel_free;
        u64 clock;
        u8 *seen;
        const u32 *bases;
        const double *first_shares;
        u64 buffer_count;
        const u64 *pauses;
        u64 *asks, *written;
        double cache_free, memory_free;
        Event *events;
        u64 event_count, event_room, recorded_compute_units, executed, matrix_cycles, busy[{PORTS}],
            l1_requests, l1_misses, l2_requests, l2_misses, l2_dirty_count;
        double read_bytes, cache_bytes, write_bytes;
        u64 last_access, end, started;
    """)  # fmt: skip


def declarations() -> str:
    """The structures in C."""
    return declarations_of(
        [Range, Instruction, Gpu, Workgroup, Wave, Calendar, VectorCache, ScalarCache, ComputeUnit, Event, Replay]
    )
