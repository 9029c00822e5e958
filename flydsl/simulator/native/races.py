"""The proof that a launch has no race, by running it natively with an observer of its accesses (`runtime/races.c`).

The lock-step machine that finds races takes about a hundred times as long as native code. So where races are all that
is looked for, a launch first runs natively, one workgroup after the other, and all that is remembered is who accessed
each place last. Mostly that proves that there was no race. Whatever it does not prove, and whatever else happens, is
left to the lock-step machine on the memory as it was: it says what is the matter, if anything is.

A launch is left to it from the start if more than barriers may order its waves: atomics that return something, loads
past the caches, clusters, asynchronous copies.
"""

from __future__ import annotations

import ctypes
from ctypes import addressof
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.errors import SimulatorError
from flydsl.progress import Task
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import Dispatch, LaunchStatistics
from flydsl.simulator.lockstep.checked.clocks import LIMITS
from flydsl.simulator.lockstep.checked.races import is_ordered_by_barriers_alone
from flydsl.simulator.memory.buffers import writable_groups
from flydsl.simulator.native import layout
from flydsl.simulator.native.counting import doubled
from flydsl.simulator.native.group import WorkgroupSlot, aligned_zeros
from flydsl.simulator.native.library import library
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.native.turns import Turns

_ROWS_OF_CELLS = 4
"""The rows of a region: the stamps of writers, readers and atomics, and the numbers of stores."""
_ROOM_CELLS = 16
"""Cells are read and written eight at a time, of which seven may lie beyond the last one."""
_FIRST_SHIFT = 8
"""Cells of 256 bytes to begin with: they become smaller where accesses ask for it, and large ones take less time."""
_NO_WORKGROUP = (1 << 64) - 1
_HANDLERS = {"s_barrier": "watch_barrier", "s_barrier_signal": "watch_signal", "s_barrier_wait": "watch_wait"}


class _DoubtError(Exception):
    """The native run does not prove that the launch has no race."""


def run_without_races(dispatch: Dispatch, instruction_limit: int, task: Task) -> LaunchStatistics | None:
    """Run a launch and prove that it has no race. None, with the memory as it was, where there is no proof."""
    if not _may_be_proved(dispatch):
        return None
    try:
        execution = _Watched(dispatch, instruction_limit)
    except (SimulatorError, OSError, MemoryError):  # no compiler for the runtime, or no room for what is remembered
        return None
    task.done = execution.ended_workgroups
    try:
        execution.run(threads=1)
    except (SimulatorError, _DoubtError):
        execution.restore_memory()
        return None
    return execution.statistics()


_provable: WeakKeyDictionary[Program, bool] = WeakKeyDictionary()


def _may_be_proved(dispatch: Dispatch) -> bool:
    """False where waves are ordered by more than their workgroup's barrier, or there are too many."""
    program = dispatch.program
    if program not in _provable:
        _provable[program] = (
            is_ordered_by_barriers_alone(program) and len(program.instructions) <= LIMITS["instructions"]
        )
    waves = dispatch.workgroup_count * dispatch.waves_per_workgroup
    is_alone = dispatch.memory.others is None and dispatch.cluster_size == 1
    return is_alone and waves <= LIMITS["waves"] and _provable[program]


class _RaceWatch:
    """Remembers accesses: see `launch_block.Watch`."""

    @property
    def observer(self) -> int:
        return library().races["watch_access"]

    def records(self, records: Array, program: Program) -> Array:
        watched, handlers = doubled(records), library().races
        for instruction in program.instructions:
            name = instruction.mnemonic
            if name in _HANDLERS or name.startswith("s_endpgm"):
                watched[instruction.index, 0] = handlers[_HANDLERS.get(name, "watch_end")]
        return watched


class _Watched(Execution):
    """A launch that runs on one thread, one workgroup after the other, with all that is remembered of accesses."""

    def __init__(self, dispatch: Dispatch, instruction_limit: int) -> None:
        super().__init__(dispatch, instruction_limit, watch=_RaceWatch())
        self._storage: list[Array] = []
        groups = writable_groups(dispatch.memory)
        regions = [self._region(start, stop - start, is_kept=True) for start, stop, _ in groups]
        self._regions = (layout.RaceRegion * len(groups))(*regions)
        self._block = layout.RaceBlock(
            regions=addressof(self._regions),
            region_count=len(groups),
            waves_per_workgroup=dispatch.waves_per_workgroup,
            workgroup=_NO_WORKGROUP,
        )

    def _region(self, start: int, size_bytes: int, *, is_kept: bool) -> layout.RaceRegion:
        """Memory of the host whose accesses are remembered. is_kept: and what it held before.

        The host provides memory for this as far as it is written.
        """
        row_bytes, pages = 4 * (size_bytes + _ROOM_CELLS), -(-size_bytes // layout.PAGE_BYTES)
        storage = aligned_zeros(_ROWS_OF_CELLS * row_bytes + (size_bytes + pages if is_kept else 0))
        self._storage.append(storage)
        first = storage.ctypes.data
        rows = [first + row_bytes * i for i in range(_ROWS_OF_CELLS + 1)]
        copy, saved = (rows[-1], rows[-1] + size_bytes) if is_kept else (0, 0)
        return layout.RaceRegion(start, size_bytes, _FIRST_SHIFT, 0, *rows[:-1], copy, saved)

    def restore_memory(self) -> None:
        """Put back what memory held that has been written."""
        for region in self._regions:
            pages = -(-region.size // layout.PAGE_BYTES)
            saved = np.ctypeslib.as_array((ctypes.c_uint8 * pages).from_address(region.saved))
            for page in np.flatnonzero(saved).tolist():
                first = page * layout.PAGE_BYTES
                size_bytes = min(layout.PAGE_BYTES, region.size - first)
                ctypes.memmove(region.start + first, region.copy + first, size_bytes)

    def _group(self) -> WorkgroupSlot:
        self._resident += 1
        group = WorkgroupSlot(self.launch.template, self.launch.block, addressof(self._block))
        self._block.lds = self._region(group.block.lds, self.launch.template.lds.size, is_kept=False)
        return group

    def _be_patient(self, group: WorkgroupSlot, turns: Turns) -> None:
        """After a slice: the next one is of the same workgroup, if there is any reason for it."""
        if self._block.doubt:
            raise _DoubtError

    def _attend(self, group: WorkgroupSlot, reason: int) -> None:
        if reason != layout.MODE_CHANGED:
            raise _DoubtError
        super()._attend(group, reason)

    def run(self, threads: int) -> None:
        super().run(threads)
        if self._block.doubt:
            raise _DoubtError
