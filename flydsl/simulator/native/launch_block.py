"""The state that all threads of a launch share: the launch block, the table of buffers, and the program's records."""

from __future__ import annotations

import ctypes
import threading
from ctypes import addressof, sizeof
from typing import Protocol

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import SimulatorError, SourceLocation
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.memory.buffers import Buffer, Memory
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.bound_program import bound_program
from flydsl.simulator.native.group import WorkgroupSlot, aligned_zeros
from flydsl.simulator.native.library import library
from flydsl.simulator.waves import RUNNING, Waves

_TURN, _TURN_AMONG_PEERS = 20_000, 1_000
"""After this many instructions, a wave lets the others of its workgroup go on: it may wait for them in a loop."""


_MOST_KEPT_BYTES = 1 << 23
"""The memory of a group that launches leave to the next one: scratch may take a hundred times as much."""


class Work(Protocol):
    """The work to execute: `dispatch.Dispatch`. grid: in workgroups."""

    program: Program
    memory: Memory
    symbols: dict[str, int]
    grid: Dim3
    cluster: Dim3
    mode: FloatMode
    vgprs: int
    agprs: int

    def waves(self, workgroup_ids: list[Dim3]) -> Waves: ...
    def workgroups_of(self, cluster: Dim3) -> list[Dim3]: ...
    @property
    def workgroup_id_yz_bytes(self) -> int: ...
    def workgroup_id_places(self) -> tuple[int | None, int | None, int | None]: ...


class RepeatedWork(Work, Protocol):
    """Work of which all that has the same `sizes` differs in arguments and memory alone, and has the same `buffers`."""

    sizes: object
    buffers: dict[int, Buffer]

    def set_arguments(self, waves: Waves) -> None: ...


class Watch(Protocol):
    """Work besides executing: the handlers before each instruction's own, and the observer of accesses."""

    @property
    def observer(self) -> int: ...
    def records(self, records: Array, program: Program) -> Array: ...


class SharedLaunch:
    """Some work in native form: `block`. It keeps everything alive that native code has addresses of.

    It executes groups: workgroups, or clusters of them. grid: the groups along x, y and z. template: the waves of the
    first one, as they start. watch: what native code counts or records, if anything. is_repeatable: whether
    other launches may follow (`begin_again`). idle_slots: for their groups.
    """

    def __init__(self, work: Work, instruction_limit: int, *, watch: Watch | None = None) -> None:
        self.block = layout.LaunchState()
        self._work, self._limit, self._watch = work, instruction_limit, watch
        self._lock = threading.Lock()
        self._records: dict[int, Array] = {}  # by MODE
        self.has_global_atomics = bound_program(work.program, work.mode).has_global_atomics
        x, y, z = (extent // size for extent, size in zip(work.grid, work.cluster, strict=True))
        self.grid, self.group_count = (x, y, z), x * y * z
        self._buffers = (layout.BufferEntry * (max(work.memory.in_slots, default=0) + 1))()
        self._entered: dict[int, Buffer] = {}
        self._rows: dict[int, Array] = {}
        self._enter_buffers(work.memory.in_slots)
        self._in_place = layout.InPlace()
        self._tables: list[ctypes.Array[layout.BufferEntry]] = []  # native code may still use an older one
        self.update_in_place()
        self.is_watched = work.memory.others is not None
        self.template = work.waves(work.workgroups_of((0, 0, 0)))
        self.is_repeatable = watch is None and not self.is_watched and self._group_bytes() <= _MOST_KEPT_BYTES
        self.records(work.mode)
        self._wave_templates = self._make_wave_templates()
        self._fill()
        self.idle_slots: list[WorkgroupSlot] = []

    def begin_again(self, work: RepeatedWork, instruction_limit: int) -> None:
        """Execute a launch that differs from the one before in its arguments and its memory alone."""
        self._work = work
        self._enter_buffers(work.memory.in_slots)
        self._tables.clear()
        self._in_place.count = 0
        self.update_in_place()
        work.set_arguments(self.template)
        self.block.next, self.block.limit = 0, instruction_limit

    def end(self, work: RepeatedWork) -> None:
        """Let go of the launch, whose memory is the user's."""
        self._entered = work.buffers
        del self._work

    def _group_bytes(self) -> int:
        return layout.WAVE_STRIDE * self.template.count + self.template.lds.size + self.template.scratch.size

    def _enter_buffers(self, buffers: dict[int, Buffer]) -> None:
        """Fill rows of the table of buffers. A slot without a buffer has size 0."""
        for slot, buffer in buffers.items():
            if self._entered.get(slot) is buffer:
                continue
            rows = 0
            if buffer.rows:
                self._rows[slot] = np.array(buffer.rows, np.int64)
                rows = self._rows[slot].ctypes.data
            entry = (buffer.base, buffer.host_address, buffer.data.size, buffer.writable, rows, len(buffer.rows))
            self._buffers[slot] = layout.BufferEntry(*entry)
        self._entered = buffers

    def _fill(self) -> None:
        work, template = self._work, self.template
        block = self.block
        block.group_count = self.group_count
        block.groups_x, block.groups_y = self.grid[:2]
        id_offsets = (-1 if place is None else place for place in work.workgroup_id_places())
        block.id_x, block.id_y, block.id_z = id_offsets
        block.id_yz_bytes = work.workgroup_id_yz_bytes
        block.wave_count, block.waves_per_workgroup = template.count, template.waves_per_workgroup
        block.template = self._wave_templates.ctypes.data
        block.vgpr_bytes, block.agpr_bytes = layout.ROW_BYTES * work.vgprs, layout.ROW_BYTES * work.agprs
        block.lds_bytes, block.scratch_bytes = template.lds.size, template.scratch.size
        block.limit, block.turn = self._limit, _TURN_AMONG_PEERS if self.is_watched else _TURN

    def update_in_place(self) -> None:
        """Let native code access the memory that stands at its own address as far as it is known by now."""
        known = self._work.memory.in_place
        if len(known) == self._in_place.count:
            return
        entries = [layout.BufferEntry(b.base, b.host_address, b.size_bytes, b.writable, 0, 0) for b in known]
        self._tables.append((layout.BufferEntry * len(known))(*entries))
        self._in_place.entries = addressof(self._tables[-1])
        self._in_place.count = len(known)  # last: native code reads it first

    def _make_wave_templates(self) -> Array:
        template = self.template
        # The last one is followed by room for the registers that a template leaves out, so that it is a `Wave`, too.
        storage = aligned_zeros(layout.TEMPLATE_BYTES * template.count + sizeof(layout.Wave))
        self.fill_wave(layout.Wave.from_buffer(storage.data), 0)
        waves = storage[: layout.TEMPLATE_BYTES * template.count].reshape(template.count, layout.TEMPLATE_BYTES)
        waves[1:] = waves[0]
        strides = (layout.TEMPLATE_BYTES, 4)
        pc = np.ndarray(template.count, np.uint64, storage.data, layout.Wave.pc.offset, strides[:1])
        pc += layout.RECORD_BYTES * template.pc.astype(np.uint64)
        vgpr = np.ndarray((template.count, template.lanes), np.uint32, storage.data, layout.Wave.vgpr.offset, strides)
        vgpr[:] = template.vgpr[0]
        sgpr = np.ndarray(template.sgpr.shape, np.uint32, storage.data, layout.Wave.sgpr.offset, strides)
        sgpr[:] = template.sgpr
        template.sgpr = sgpr  # of the launches that follow, too
        return storage

    def fill_wave(self, wave: layout.Wave, pc: int) -> None:
        """Set the control state of a wave that starts at instruction `pc`."""
        template, mode = self.template, self._work.mode
        records = self.records(mode)
        wave.mode, wave.status = mode.bits, RUNNING
        wave.records, wave.record_count = records.ctypes.data, len(records)
        wave.pc = wave.records + layout.RECORD_BYTES * pc
        wave.lds_bytes = template.lds_bytes
        wave.lane_mask = (1 << template.lanes) - 1
        wave.scratch_bytes, wave.scratch_stride = template.scratch_bytes, template.scratch_stride
        wave.buffers, wave.buffer_count = addressof(self._buffers), len(self._buffers)
        wave.in_place = addressof(self._in_place)
        wave.vgpr_end = layout.Wave.vgpr.offset + layout.ROW_BYTES * self._work.vgprs
        wave.observer = self._watch.observer if self._watch else 0

    def records(self, mode: FloatMode, pc: int | None = None) -> Array:
        """The program for waves of a mode, entered at instruction `pc`."""
        instructions = self._work.program.instructions
        at = instructions[pc].location if pc is not None and pc < len(instructions) else None
        bound = bound_program(self._work.program, mode)
        with self._lock:
            if mode.bits not in self._records:
                records = self._within_registers(bound.at_launch(self._work.symbols))
                if self._watch:
                    records = self._watch.records(records, self._work.program)
                self._add_records(mode, records, at)
            return self._records[mode.bits]

    def _within_registers(self, records: Array) -> Array:
        """The records, where instructions with registers that the waves do not have go to the lock-step machine."""
        beyond = self._work.program.beyond(self._work.vgprs, self._work.agprs)
        if beyond:
            records = records.copy()
            records[beyond, 0] = library().fall_back_address
        return records

    def _add_records(self, mode: FloatMode, records: Array, at: SourceLocation | None) -> None:
        count = len(self._records)
        if count == layout.MAX_MODES:
            raise SimulatorError(f"the waves of a launch use more than {layout.MAX_MODES} float modes", at=at)
        self._records[mode.bits] = records
        self.block.modes[count] = layout.Mode(mode.bits, records.ctypes.data)
        self.block.mode_count = count + 1  # last: native code reads up to here
