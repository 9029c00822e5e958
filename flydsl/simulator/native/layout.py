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

from collections.abc import Sequence
from ctypes import Array, Structure, c_double, c_int64, c_uint8, c_uint32, c_uint64
from typing import Any, ClassVar

from flydsl.hsaco.operands import SGPR_FILE_SIZE
from flydsl.simulator.waves import LANES, VECTOR_ROWS

ROW_BYTES = 4 * LANES
OPERAND_SLOTS = 5
"""Of an instruction that has offsets, which take the slots after them; one without has those, too."""
OFFSET_SLOT, SECOND_OFFSET_SLOT = 5, 6
HOST_AREAS = 4
MAX_MODES = 16
MAX_PARTS = 8  # accesses that one instruction makes
MAX_BANKS = 64
SET_SIZE_LOG2 = 11  # more than twice of what one instruction can put into it: 2 lines of 8 parts of 64 lanes

# Statuses: those of `waves` for a wave, and why a wave or `run` returned.
FALL_BACK = 4  # the instruction at the pc is to be executed by the lock-step machine
MODE_CHANGED = 5
DONE, SLICE_OVER, DEADLOCK, LIMIT_REACHED, WAITING = 16, 17, 18, 19, 20

SPACES = ("global", "lds", "scratch", "flat", "tensor_global", "tensor_lds")
"""The spaces of vector accesses, as an observer is told of them; the last two are of a whole tile, told of as lines in
place of lanes, and bytes."""

_Row = c_uint32 * LANES
_Addresses = c_uint64 * LANES


class Shared(Structure):
    """A structure with the same name in C."""

    _points_to_: ClassVar[dict[str, str]] = {}


class Record(Shared):
    _fields_ = [("handler", c_uint64), ("slots", c_int64 * 7)]
    _points_to_ = {"handler": "Handler"}


class Wave(Shared):
    """run_start: the record where the current straight run of instructions began; executed counts those before it.

    stop_at: after so many instructions a taken branch returns to the scheduler. scratch_bytes is of one lane.
    observer: the function to call after every vector access that succeeded, or null. vgpr_end: the offset in the wave
    where the VGPRs end that the kernel was given. may_pass: whether all waves have arrived at the barrier, and this one
    has not passed it, may_pass_cluster the same of the cluster's. lane_mask: a one for each lane that waves have.
    snapshot: null, or how the wave was, to see whether it waits.
    """

    _fields_ = [
        ("sgpr", c_uint32 * SGPR_FILE_SIZE),
        ("scc", c_uint8),
        ("mode", c_uint32),
        ("status", c_uint32),
        ("pc", c_uint64),
        ("run_start", c_uint64),
        ("executed", c_uint64),
        ("stop_at", c_uint64),
        ("records", c_uint64),
        ("record_count", c_int64),
        ("lds", c_uint64),
        ("lds_bytes", c_int64),
        ("scratch", c_uint64),
        ("scratch_bytes", c_int64),
        ("scratch_stride", c_int64),
        ("buffers", c_uint64),
        ("buffer_count", c_uint64),
        ("in_place", c_uint64),
        ("snapshot", c_uint64),
        ("workspace", c_uint64),
        ("counting", c_uint64),
        ("observer", c_uint64),
        ("vgpr_end", c_int64),
        ("may_pass", c_uint64),
        ("lane_mask", c_uint64),
        ("may_pass_cluster", c_uint64),
        ("unused", c_uint8 * 320),  # registers begin at a multiple of their size
        ("vgpr", _Row * VECTOR_ROWS),
    ]
    _points_to_ = {
        "pc": "Record",
        "run_start": "Record",
        "records": "Record",
        "observer": "Observer",
        "buffers": "BufferEntry",
        "in_place": "InPlace",
        "snapshot": "Snapshot",
        "workspace": "Workspace",
        "counting": "CountingBlock",
    }


# Not a multiple of 4 KiB, so that the same register of several waves does not fall into the same set of the cache.
WAVE_STRIDE = Wave.vgpr.offset + Wave.vgpr.size + 1216
# A wave as it starts: everything up to its registers, and the row of v0.
TEMPLATE_BYTES = Wave.vgpr.offset + ROW_BYTES


class Snapshot(Shared):
    """The registers of a wave at an instruction, when it had executed so many."""

    _fields_ = [
        ("pc", c_uint64),
        ("executed", c_uint64),
        ("scc", c_uint64),
        ("sgpr", c_uint32 * SGPR_FILE_SIZE),
        ("vgpr", _Row * VECTOR_ROWS),
    ]
    _points_to_ = {"pc": "Record"}


class Workspace(Shared):
    """A lane that does not read takes `nowhere`, which is zero; one that does not write writes to `dump`.

    signals: the waves of the workgroup that have arrived at its barrier. cluster_signals: whether the workgroup has
    arrived at its cluster's.
    """

    _fields_ = [
        ("addresses", _Addresses),
        ("host", _Addresses * HOST_AREAS),
        ("data", _Row * 32),
        ("matrix_a", (c_double * LANES) * 32),
        ("matrix_b", (c_double * LANES) * 32),
        ("nowhere", c_uint8 * 64),
        ("dump", c_uint8 * 64),
        ("signals", c_uint64),
        ("cluster_signals", c_uint64),
        ("unused", c_uint8 * 48),  # the rows of the next one begin at a multiple of 64 bytes, too
    ]


class Rows(Shared):
    """A level of a view with gaps: every `stride` bytes begin `extent` bytes that belong to it."""

    _fields_ = [("stride", c_uint64), ("extent", c_uint64)]


class BufferEntry(Shared):
    """An entry of the table of buffers, by slot of the address space. rows: of a view with gaps, the longest first."""

    _fields_ = [
        ("base", c_uint64),
        ("host", c_uint64),
        ("size", c_int64),
        ("writable", c_uint64),
        ("rows", c_uint64),
        ("row_count", c_int64),
    ]
    _points_to_ = {"rows": "Rows"}


class InPlace(Shared):
    """Memory at its address on the host, lowest first. It grows while waves run: `count` is read before `entries`."""

    _fields_ = [("count", c_uint64), ("entries", c_uint64)]
    _points_to_ = {"entries": "BufferEntry"}


class Mode(Shared):
    """A float mode that the program is bound for, and its first record then."""

    _fields_ = [("bits", c_uint64), ("records", c_uint64)]
    _points_to_ = {"records": "Record"}


class LaunchState(Shared):
    """next: the linear id of the next workgroup to start, or of the next cluster, of which there are group_count, so
    many along x and y. id_*: offset of the scalar register with the id, or -1; y and z have id_yz_bytes.

    template: the `wave_count` waves of a group as they start, waves_per_workgroup of them of a workgroup. lds_bytes and
    scratch_bytes are per group; limit is the number of instructions per wave, turn that after which a wave lets the
    others of its group go on.
    """

    _fields_ = [
        ("next", c_uint64),
        ("group_count", c_uint64),
        ("groups_x", c_uint64),
        ("groups_y", c_uint64),
        ("id_x", c_int64),
        ("id_y", c_int64),
        ("id_z", c_int64),
        ("id_yz_bytes", c_uint64),
        ("wave_count", c_uint64),
        ("waves_per_workgroup", c_uint64),
        ("template", c_uint64),
        ("vgpr_bytes", c_uint64),
        ("agpr_bytes", c_uint64),
        ("lds_bytes", c_uint64),
        ("scratch_bytes", c_uint64),
        ("limit", c_uint64),
        ("turn", c_uint64),
        ("mode_count", c_uint64),
        ("modes", Mode * MAX_MODES),
    ]
    _points_to_ = {"template": "u8"}


class Group(Shared):
    """A slot for a workgroup, or a cluster of them. active: whether it executes one, `number` its linear id.

    wave: whose turn it is. moved: whether a wave went on since the first one's turn.
    budget: instructions until `run` returns to Python. executed: instructions of all workgroups that ended here.
    """

    _fields_ = [
        ("launch", c_uint64),
        ("waves", c_uint64),
        ("active", c_uint64),
        ("number", c_uint64),
        ("wave", c_uint64),
        ("moved", c_uint64),
        ("budget", c_int64),
        ("executed", c_uint64),
        ("lds", c_uint64),
        ("scratch", c_uint64),
    ]
    _points_to_ = {"launch": "LaunchState", "waves": "u8", "lds": "u8", "scratch": "u8"}


class Rule(Shared):
    """The lanes that compete for LDS: `lanes` has `lanes_per_phase` of them for each phase."""

    _fields_ = [
        ("dwords", c_uint64),
        ("banks", c_uint64),
        ("phases", c_uint64),
        ("lanes_per_phase", c_uint64),
        ("lanes", c_uint64 * LANES),
    ]


class Pattern(Shared):
    """The last pattern of addresses of an instruction, what it costs, and the rest of the instruction's counts.

    relative: addresses relative to that of the first active lane; low: the lowest bits of that one. rule: null where it
    is not known. unaligned: whether the pattern has accesses to LDS that are not aligned to a dword; uncounted: of all.
    is_atomic: whether lanes at the same dword of LDS take turns.
    """

    _fields_ = [
        ("active", c_uint64),
        ("low", c_uint64),
        ("result", c_uint64),
        ("phases", c_uint64),
        ("unaligned", c_uint64),
        ("rule", c_uint64),
        ("max_ways", c_uint64),
        ("scratch_bytes", c_uint64),
        ("relative", _Addresses),
        ("uncounted", c_uint64),
        ("is_atomic", c_uint64),
        ("unused", c_uint64 * 6),  # the addresses of the next one are at a multiple of 64 bytes, too
    ]
    _points_to_ = {"rule": "Rule"}


class Entry(Shared):
    """The counts of an instruction: as large as a record, so that both are at the same distance from the first one."""

    _fields_ = [
        ("executions", c_uint64),
        ("active_lanes", c_uint64),
        ("global_bytes", c_uint64),
        ("global_lines", c_uint64),
        ("lds_bytes", c_uint64),
        ("lds_passes", c_uint64),
        ("lds_phases", c_uint64),
        ("pattern", c_uint64),
    ]
    _points_to_ = {"pattern": "Pattern"}


class Stamped(Shared):
    """A number that is in the set if its stamp is the set's."""

    _fields_ = [("number", c_uint64), ("stamp", c_uint64)]


class Stream(Shared):
    """The instructions that a wave executes, as words. `at` goes beyond `end` where there is no room for all of it."""

    _fields_ = [("at", c_uint64), ("end", c_uint64)]
    _points_to_ = {"at": "u32", "end": "u32"}


class CountingBlock(Shared):
    """The counting block of a thread; an `Entry` for every record follows.

    entry: of the instruction with an access that is being executed, `part` how many accesses it has made. masks, rows:
    of each part, the lanes that took part and their addresses. ways: for each bank. Of a thread that traces:
    first_wave: where the waves are, streams: where each one is recorded, line_base: the number of each buffer's first
    line, lds_banks: 0 where they are not known.
    """

    _fields_ = [
        ("entry", c_uint64),
        ("part", c_uint64),
        ("stamp", c_uint64),
        ("first_wave", c_uint64),
        ("streams", c_uint64),
        ("line_base", c_uint64),
        ("lds_banks", c_uint64),
        ("unused", c_uint64),
        ("masks", c_uint64 * MAX_PARTS),
        ("rows", _Addresses * MAX_PARTS),
        ("ways", c_uint64 * MAX_BANKS),
        ("set", Stamped * (1 << SET_SIZE_LOG2)),
    ]
    _points_to_ = {"entry": "Entry", "first_wave": "u8", "streams": "Stream", "line_base": "u32"}


assert Workspace.unused.offset % 64 == 16
RECORD_BYTES, ENTRIES = Record.handler.size + Record.slots.size, CountingBlock.set.offset + CountingBlock.set.size
assert RECORD_BYTES == 64 == Entry.pattern.offset + Entry.pattern.size

_FUNCTIONS = "typedef void Handler(Wave *, const Record *);\ntypedef void Observer(Wave *, u64, u64, u64);\n"
_C_NAMES = {c_uint8: "u8", c_uint32: "u32", c_uint64: "u64", c_int64: "i64", c_double: "double"}


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
