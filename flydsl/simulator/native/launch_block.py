"""What all threads of a launch share: the launch block, the table of buffers, and the program's records."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np

from flydsl.errors import SimulatorError, SourceLocation
from flydsl.simulator.memory import Memory
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.bound_program import bound_program
from flydsl.simulator.native.counting import counting_records
from flydsl.simulator.native.group import Block, aligned_zeros
from flydsl.simulator.native.library import library
from flydsl.simulator.operands import SGPR_FILE_SIZE
from flydsl.simulator.program import Program
from flydsl.simulator.waves import RUNNING, Dim3, Waves

Array = np.ndarray[Any, Any]


class Work(Protocol):
    """What to execute: `dispatch.Dispatch`."""

    program: Program
    memory: Memory
    symbols: dict[str, int]
    grid: Dim3
    mode: FloatMode
    vgprs: int
    agprs: int

    def waves(self, workgroup_ids: list[Dim3]) -> Waves: ...
    def workgroup_id_registers(self) -> tuple[int | None, int | None, int | None]: ...


class LaunchBlock(Block):
    """The launch block of some work. It keeps alive what native code has addresses of.

    template: the waves of the first workgroup, as they start. counts: whether native code counts what it does.
    """

    def __init__(self, work: Work, instruction_limit: int, *, counts: bool = False) -> None:
        super().__init__(aligned_zeros(layout.LAUNCH_BYTES))
        self._work, self._limit, self._counts = work, instruction_limit, counts
        self._lock = threading.Lock()
        self._records: dict[int, Array] = {}  # by MODE
        self.has_global_atomics = bound_program(work.program, work.mode).has_global_atomics
        self._buffers, self._rows = _buffer_table(work.memory)
        self.template = work.waves([(0, 0, 0)])
        self.records(work.mode)
        self._wave_templates = self._make_wave_templates()
        self._fill()

    @property
    def workgroup_count(self) -> int:
        x, y, z = self._work.grid
        return x * y * z

    def _fill(self) -> None:
        work, template = self._work, self.template
        self.set(layout.LAUNCH_COUNT, self.workgroup_count)
        self.set(layout.LAUNCH_GRID_X, work.grid[0])
        self.set(layout.LAUNCH_GRID_Y, work.grid[1])
        id_fields = (layout.LAUNCH_ID_X, layout.LAUNCH_ID_Y, layout.LAUNCH_ID_Z)
        for offset, register in zip(id_fields, work.workgroup_id_registers(), strict=True):
            self.set(offset, -1 if register is None else 4 * register)
        self.set(layout.LAUNCH_WAVES, template.count)
        self.set(layout.LAUNCH_TEMPLATE, self._wave_templates.ctypes.data)
        self.set(layout.LAUNCH_VGPR_BYTES, layout.ROW_BYTES * work.vgprs)
        self.set(layout.LAUNCH_AGPR_BYTES, layout.ROW_BYTES * work.agprs)
        self.set(layout.LAUNCH_LDS_BYTES, template.lds_stride)
        self.set(layout.LAUNCH_SCRATCH_BYTES, template.scratch.size)
        self.set(layout.LAUNCH_LIMIT, self._limit)

    def _make_wave_templates(self) -> Array:
        template = self.template
        storage = aligned_zeros(layout.TEMPLATE_BYTES * template.count)
        for w in range(template.count):
            start = layout.TEMPLATE_BYTES * w
            block = Block(storage[start : start + layout.TEMPLATE_BYTES])
            self.fill_wave(block, int(template.pc[w]))
            block.storage[: 4 * SGPR_FILE_SIZE] = template.sgpr[w].view(np.uint8)
            block.storage[layout.VGPR :] = template.vgpr[0, w].view(np.uint8)
        return storage

    def fill_wave(self, block: Block, pc: int) -> None:
        """The control state of a wave block that starts at instruction `pc`."""
        template, mode = self.template, self._work.mode
        records = self.records(mode)
        block.storage[layout.MODE : layout.MODE + 4].view(np.uint32)[0] = mode.bits
        block.storage[layout.STATUS : layout.STATUS + 4].view(np.uint32)[0] = RUNNING
        block.set(layout.PC, records.ctypes.data + layout.RECORD_BYTES * pc)
        block.set(layout.RECORDS, records.ctypes.data)
        block.set(layout.RECORD_COUNT, len(records))
        block.set(layout.LDS_BYTES, template.lds_bytes)
        block.set(layout.SCRATCH_BYTES, template.scratch_bytes)
        block.set(layout.SCRATCH_STRIDE, template.scratch_stride)
        block.set(layout.BUFFERS, self._buffers.ctypes.data)
        block.set(layout.BUFFER_COUNT, len(self._buffers))
        block.set(layout.VGPR_END, layout.VGPR + layout.ROW_BYTES * self._work.vgprs)
        block.set(layout.OBSERVER, library().counting["observe"] if self._counts else 0)

    def records(self, mode: FloatMode, pc: int | None = None) -> Array:
        """The program for waves of a mode, which one enters at instruction `pc`."""
        instructions = self._work.program.instructions
        at = instructions[pc].location if pc is not None and pc < len(instructions) else None
        bound = bound_program(self._work.program, mode)
        with self._lock:
            if mode.bits not in self._records:
                records = self._within_registers(bound.at_launch(self._work.symbols))
                if self._counts:
                    records = counting_records(records, self._work.program)
                self._add_records(mode, records, at)
            return self._records[mode.bits]

    def _within_registers(self, records: Array) -> Array:
        """What has registers that a wave does not have is left to the lock-step machine, which says so."""
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
        self.set(layout.LAUNCH_MODES + 16 * count, mode.bits)
        self.set(layout.LAUNCH_MODES + 16 * count + 8, records.ctypes.data)
        self.set(layout.LAUNCH_MODE_COUNT, count + 1)  # last: native code reads up to here


def _buffer_table(memory: Memory) -> tuple[Array, list[Array]]:
    """The table, (slots, 6) i64, and the rows of buffers that it points to. A slot without a buffer has size 0."""
    buffers = memory.buffers()
    table = np.zeros((max(buffers, default=0) + 1, layout.BUFFER_BYTES // 8), np.int64)
    rows: list[Array] = []
    for slot, buffer in buffers.items():
        rows.append(np.array(buffer.rows, np.int64))
        table[slot] = (
            buffer.base,
            buffer.data.ctypes.data,
            buffer.size_bytes,
            buffer.writable,
            rows[-1].ctypes.data,
            len(buffer.rows),
        )
    return table, rows
