"""The memory that native code shares with Python, as structures: `declarations` has the same ones for C.

- A `Wave` is the state of one wave: scalar registers, control state, then the vector registers, one row of 64 dwords
  each, AGPRs from row 256.
- A `Record` is one decoded instruction: the address of its handler, then eight bytes for each operand in the order of
  the text (a register's offset in the wave, the bits of a constant, or the distance to a branch target), then the
  offset modifiers. A handler is called with its wave and its record, and ends by calling the next record's.
- A `Workspace` is what handlers and the runtime functions use to pass vectors; each workgroup in execution has one.
- A `Group` is a workgroup in execution, or a cluster of them; a `LaunchState` is what all threads share.
- A `CountingBlock` is where a thread counts, with an `Entry` for each instruction and a `Pattern` for each that has
  accesses.

Addresses are plain numbers in Python; `_points_to_` says what they point to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ctypes import Array, Structure, c_double, c_int64, c_uint8, c_uint32, c_uint64
from typing import Any, ClassVar

from flydsl.hsaco.operands import SGPR_FILE_SIZE
from flydsl.simulator.waves import LANES, VECTOR_ROWS

ROW_BYTES = 4 * LANES
OPERAND_SLOTS = 5
"""The slots for operands of an instruction with offsets, which take the next two. Without any, all are for operands."""
OFFSET_SLOT, SECOND_OFFSET_SLOT = 5, 6
HOST_AREAS = 4
MAX_MODES = 16
PAGE_BYTES = 4096  # of memory that is kept as it was
FRAGMENTS, FRAGMENT_ROWS = 8, 8  # of A and of B, that a workgroup keeps, and the most registers of one
MAX_PARTS = 8  # accesses that one instruction makes
MAX_BANKS = 64
SET_SIZE_LOG2 = 11  # more than twice of what one instruction can put into it: 2 lines of 8 parts of 64 lanes

# Statuses: those of `waves` for a wave, and why a wave or `run` returned.
FALL_BACK = 4  # the instruction at the pc is to be executed by the lock-step machine
MODE_CHANGED = 5
DONE, SLICE_OVER, DEADLOCK, LIMIT_REACHED, WAITING = 16, 17, 18, 19, 20

LOADS, STORES, ATOMIC = range(3)
"""The kinds of vector accesses, as `resolve` is told."""

SPACES = ("global", "lds", "scratch", "flat", "tensor_global", "tensor_lds", "scalar")
"""The spaces of accesses, as an observer is told of them; those of tensors are of a whole tile, told of as lines in
place of lanes, and bytes; "scalar" is a scalar load, told of as one lane's."""

DOUBTS = ("NONE", "UNORDERED", "TOGETHER", "BARRIERS", "UNKNOWN", "TOO_LONG")
"""The reasons why a launch cannot be proved to have no race: accesses that may not be ordered, lanes that store to one
place together, barriers that not all waves pass, memory that is not watched, numbers that ran out."""

_TYPES = {"u8": c_uint8, "u32": c_uint32, "u64": c_uint64, "i64": c_int64, "double": c_double}
_DECLARED = re.compile(r"(\*?)(\w+)((?:\[\d+\])*)")


class Shared(Structure):
    """A structure with the same name in C."""

    _points_to_: ClassVar[dict[str, str]] = {}


def fields(structures: Mapping[str, Any], declarations: str) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    """The `_fields_` of a structure from their declarations in C, and `_points_to_`: what its addresses point to.

    structures: those that it may contain, by name.

    >>> fields({}, "u64 next; const u32 *at;")[1]
    {'at': 'const u32'}
    """
    found, points_to = list[tuple[str, Any]](), dict[str, str]()
    for declaration in re.sub(r"//.*", "", declarations).split(";")[:-1]:
        type_, names = re.split(r"(?<!const)\s", declaration.strip(), maxsplit=1)
        for pointer, name, dimensions in _DECLARED.findall(names):
            if pointer:
                points_to[name] = type_
            kind: Any = c_uint64 if pointer else _TYPES.get(type_) or structures[type_]
            for size in reversed(re.findall(r"\d+", dimensions)):
                kind = kind * int(size)
            found.append((name, kind))
    return found, points_to


class Record(Shared):
    _fields_, _points_to_ = fields(globals(), """
        Handler *handler;
        i64 slots[7];
    """)  # fmt: skip


class Wave(Shared):
    """run_start: the record where the current straight run of instructions began; executed counts those before it.

    stop_at: the instructions after which a taken branch returns to the scheduler. scratch_bytes is of one lane.
    observer: the function to call for every access that is possible, before it happens, or null. vgpr_end: the offset
    in the wave where the VGPRs end that the kernel was given. may_pass: whether all waves have arrived at the barrier,
    and this one has not passed it, may_pass_cluster the same of the cluster's. lane_mask: a one for each lane of
    waves. snapshot: null, or how the wave was, to see whether it waits. number: of the wave in the launch. arrivals,
    passes: the barriers that it has arrived at and passed, of a launch that is watched for races.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u32 sgpr[{SGPR_FILE_SIZE}];
        u8 scc;
        u32 mode, status;
        Record *pc, *run_start;
        u64 executed, stop_at;
        Record *records;
        i64 record_count;
        u64 lds;
        i64 lds_bytes;
        u64 scratch;
        i64 scratch_bytes, scratch_stride;
        BufferEntry *buffers;
        u64 buffer_count;
        InPlace *in_place;
        Snapshot *snapshot;
        Workspace *workspace;
        CountingBlock *counting;
        Observer *observer;
        i64 vgpr_end;
        u64 may_pass, lane_mask, may_pass_cluster;
        u64 number, arrivals, passes;
        u8 unused[296];  // registers begin at a multiple of their size
        u32 vgpr[{VECTOR_ROWS}][{LANES}];
    """)  # fmt: skip


# Not a multiple of 4 KiB, so that the same register of several waves does not fall into the same set of the cache.
WAVE_STRIDE = Wave.vgpr.offset + Wave.vgpr.size + 1216
# A wave as it starts: everything up to its registers, and the row of v0.
TEMPLATE_BYTES = Wave.vgpr.offset + ROW_BYTES


class Snapshot(Shared):
    """The registers of a wave when it had executed a number of instructions."""

    _fields_, _points_to_ = fields(globals(), f"""
        Record *pc;
        u64 executed, scc;
        u32 sgpr[{SGPR_FILE_SIZE}], vgpr[{VECTOR_ROWS}][{LANES}];
    """)  # fmt: skip


class Fragment(Shared):
    """An operand of matrix products: its registers, and the elements that `origin`, if not 0, made of them."""

    _fields_, _points_to_ = fields(globals(), f"""
        u64 origin;
        u8 unused[56];
        u32 registers[{FRAGMENT_ROWS}][{LANES}];
        double elements[32][{LANES}];
    """)  # fmt: skip


class Workspace(Shared):
    """A lane that does not read takes `nowhere`, which is zero; one that does not write writes to `dump`.

    signals: the waves of the workgroup that have arrived at its barrier. cluster_signals: whether the workgroup has
    arrived at its cluster's.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u64 addresses[{LANES}], host[{HOST_AREAS}][{LANES}];
        u32 data[32][{LANES}];
        double matrix_a[32][{LANES}], matrix_b[32][{LANES}];
        Fragment fragments_a[{FRAGMENTS}], fragments_b[{FRAGMENTS}];
        u8 nowhere[64], dump[64];
        u64 signals, cluster_signals;
        u8 unused[48];  // the rows of the next one begin at a multiple of 64 bytes, too
    """)  # fmt: skip


class Rows(Shared):
    """A level of a view with gaps: every `stride` bytes begin `extent` bytes that belong to it."""

    _fields_, _points_to_ = fields(globals(), "u64 stride, extent;")


class BufferEntry(Shared):
    """An entry of the table of buffers, by slot of the address space. rows: of a view with gaps, the longest first."""

    _fields_, _points_to_ = fields(globals(), """
        u64 base, host;
        i64 size;
        u64 writable;
        Rows *rows;
        i64 row_count;
    """)  # fmt: skip


class InPlace(Shared):
    """Memory at its address on the host, lowest first. It grows while waves run: `count` is read before `entries`."""

    _fields_, _points_to_ = fields(globals(), """
        u64 count;
        BufferEntry *entries;
    """)  # fmt: skip


class Mode(Shared):
    """A float mode that the program is bound for, and its first record then."""

    _fields_, _points_to_ = fields(globals(), """
        u64 bits;
        Record *records;
    """)  # fmt: skip


class LaunchState(Shared):
    """next: the linear id of the next workgroup to start, or of the next cluster, of which there are group_count, so
    many along x and y. id_*: offset of the scalar register with the id, or -1; y and z have id_yz_bytes.

    template: the `wave_count` waves of a group as they start, waves_per_workgroup of them of a workgroup. lds_bytes and
    scratch_bytes are per group; limit is the number of instructions per wave, turn that after which a wave lets the
    others of its group go on.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u64 next, group_count, groups_x, groups_y;
        i64 id_x, id_y, id_z;
        u64 id_yz_bytes, wave_count, waves_per_workgroup;
        u8 *template;
        u64 vgpr_bytes, agpr_bytes, lds_bytes, scratch_bytes, limit, turn, mode_count;
        Mode modes[{MAX_MODES}];
    """)  # fmt: skip


class Group(Shared):
    """A slot for a workgroup, or a cluster of them. active: whether it executes one, `number` its linear id.

    wave: whose turn it is. moved: whether a wave went on since the first one's turn.
    budget: instructions until `run` returns to Python. executed: instructions of all workgroups that ended here.
    """

    _fields_, _points_to_ = fields(globals(), """
        LaunchState *launch;
        u8 *waves;
        u64 active, number, wave, moved;
        i64 budget;
        u64 executed;
        u8 *lds, *scratch;
    """)  # fmt: skip


class Rule(Shared):
    """The lanes that compete for LDS: `lanes` has `lanes_per_phase` of them for each phase."""

    _fields_, _points_to_ = fields(globals(), f"u64 dwords, banks, phases, lanes_per_phase, lanes[{LANES}];")


class Pattern(Shared):
    """The last pattern of addresses of an instruction, what it costs, and the rest of the instruction's counts.

    relative: addresses relative to that of the first active lane; low: the lowest bits of that one. rule: null where it
    is not known. unaligned: whether the pattern has accesses to LDS that are not aligned to a dword; uncounted: of all.
    is_atomic: whether lanes at the same dword of LDS take turns.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        u64 active, low, result, phases, unaligned;
        Rule *rule;
        u64 max_ways, scratch_bytes, relative[{LANES}], uncounted, is_atomic;
        u64 unused[6];  // the addresses of the next one are at a multiple of 64 bytes, too
    """)  # fmt: skip


class Entry(Shared):
    """The counts of an instruction: as large as a record, so that both are at the same distance from the first one."""

    _fields_, _points_to_ = fields(globals(), """
        u64 executions, active_lanes, global_bytes, global_lines, lds_bytes, lds_passes, lds_phases;
        Pattern *pattern;
    """)  # fmt: skip


class Stamped(Shared):
    """A number that is in the set if its stamp is the set's."""

    _fields_, _points_to_ = fields(globals(), "u64 number, stamp;")


class SignalAccess(Shared):
    """An access of few lanes to memory that other workgroups may access: one of its lanes.

    at: where the wave's stream was. value: what the access finds. compared: what a load's value is compared with.
    """

    _fields_, _points_to_ = fields(globals(), "u64 address, value, at, group; u32 wave, instruction, compared, bytes;")


class Stream(Shared):
    """The instructions that a wave executes, as words. `at` goes beyond `end` where there is no room for all of it."""

    _fields_, _points_to_ = fields(globals(), "u32 *at, *end; SignalAccess *look, *look_end;")


class SignalLog(Shared):
    """Accesses in the order in which they were made. watched: of each instruction, -1, or the offset in a wave of a
    register that what it loads is compared with; looks: of each instruction, 1 where it only looks. `at` goes beyond
    `end` where there is no room for all of it.
    """

    _fields_, _points_to_ = fields(globals(), """
        SignalAccess *at, *end;
        const i64 *watched;
        const u8 *looks;
    """)  # fmt: skip


class CountingBlock(Shared):
    """The counting block of a thread; an `Entry` for every record follows.

    entry: of the instruction with an access that is being executed, `part` how many accesses it has made. masks, rows:
    of each part, the lanes that took part and their addresses. ways: for each bank. Of a thread that traces:
    first_wave: where the waves are, streams: where each one is recorded, line_base: the number of each buffer's first
    line, lds_banks: 0 where they are not known; signals: null, or where accesses by few lanes are recorded, group: the
    workgroup that makes them.
    """

    _fields_, _points_to_ = fields(globals(), f"""
        Entry *entry;
        u64 part, stamp;
        u8 *first_wave;
        Stream *streams;
        u32 *line_base;
        SignalLog *signals;
        u64 group, lds_banks, unused[7], masks[{MAX_PARTS}], rows[{MAX_PARTS}][{LANES}], ways[{MAX_BANKS}];
        Stamped set[{1 << SET_SIZE_LOG2}];
    """)  # fmt: skip


class RaceRegion(Shared):
    """Memory of the host in which accesses may race, and for each cell of 1 << shift bytes the stamp (see `races.c`) of
    the last write, of reads and of atomics, and the number of the last store. seen: the kinds of access so far.

    copy: what pages held before they were written to, those that `saved` has a 1 for; null if nobody needs to know.
    """

    _fields_, _points_to_ = fields(globals(), """
        u64 start, size, shift, seen;
        u32 *writers, *readers, *updaters, *serials;
        u8 *copy, *saved;
    """)  # fmt: skip


class RaceBlock(Shared):
    """The state of a launch that is watched for races, which runs on one thread, one workgroup after the other.

    last: the region that was accessed last. doubt: the index in `DOUBTS`. serial: of the last access. Of the workgroup
    in execution: first_epoch, before its first barrier, epoch, the latest of any wave, and of the waves that have ended
    how many, and how many barriers the last one had arrived at.
    """

    _fields_, _points_to_ = fields(globals(), """
        RaceRegion lds;
        RaceRegion *regions;
        u64 region_count, last, waves_per_workgroup, doubt, serial;
        u64 workgroup, first_epoch, epoch, ended, last_arrivals;
    """)  # fmt: skip


assert CountingBlock.rows.offset % 64 == 0  # they are compared as vectors
assert Workspace.unused.offset % 64 == 16
RECORD_BYTES, ENTRIES = Record.handler.size + Record.slots.size, CountingBlock.set.offset + CountingBlock.set.size
assert RECORD_BYTES == 64 == Entry.pattern.offset + Entry.pattern.size

_FUNCTIONS = """typedef void Handler(Wave *, const Record *);
typedef void Observer(Wave *, u64 active, u64 size, u64 space, u64 access, const u64 *host);
"""
_C_NAMES = {kind: name for name, kind in _TYPES.items()}


def slot_offset(slot: int) -> int:
    return Record.slots.offset + 8 * slot


def declarations() -> str:
    """The structures of this module in C; see `declarations_of`.

    >>> print(declarations().splitlines()[0])
    typedef struct Record Record;
    """
    return declarations_of([s for s in Shared.__subclasses__() if s.__module__ == __name__])


def declarations_of(structures: Sequence[type[Shared]]) -> str:
    """Structures in C, with assertions that the compiler lays them out as ctypes does."""
    names = "".join(f"typedef struct {s.__name__} {s.__name__};\n" for s in structures)
    handler = _FUNCTIONS if Record in structures else ""
    return names + handler + "".join(_declaration(s) + _assertions(s) for s in structures)


def _declaration(structure: type[Shared]) -> str:
    fields = "\n".join(f"  {_field(structure, *f)};" for f in structure._fields_)
    return f"struct {structure.__name__} {{\n{fields}\n}};\n"


def _field(structure: type[Shared], name: str, type_: Any) -> str:
    """A field in C: `u32 sgpr[128]`."""
    if name in structure._points_to_:
        return f"{structure._points_to_[name]} *{name}"
    dimensions = ""
    while issubclass(type_, Array):
        dimensions, type_ = dimensions + f"[{type_._length_}]", type_._type_
    return f"{_C_NAMES.get(type_) or type_.__name__} {name}{dimensions}"


def _assertions(structure: type[Shared]) -> str:
    last = structure._fields_[-1][0]
    offset = getattr(structure, last).offset
    return f"_Static_assert(__builtin_offsetof({structure.__name__}, {last}) == {offset});\n"
