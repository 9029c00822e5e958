"""The memory of a workgroup, or a cluster of them, in native execution, and the same memory as `Waves`."""

from __future__ import annotations

import mmap
from ctypes import addressof, sizeof
from typing import Any

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.hsaco.operands import SGPR_FILE_SIZE
from flydsl.simulator.arrays import Array
from flydsl.simulator.native import layout
from flydsl.simulator.waves import ENDED, RUNNING, VECTOR_ROWS, Waves

_ALIGNMENT_BYTES = 64
_MAPPED_BYTES = 1 << 16
"""From so much on memory is mapped for itself: only what is used of it is ever cleared."""
_WORKSPACE = np.dtype(layout.Workspace)


def aligned_zeros(size_bytes: int) -> Array:
    """Zero bytes that start at a multiple of 64."""
    if size_bytes >= _MAPPED_BYTES:
        return np.frombuffer(mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    storage = np.zeros(size_bytes + _ALIGNMENT_BYTES, np.uint8)
    start = -storage.ctypes.data % _ALIGNMENT_BYTES
    return storage[start : start + size_bytes]


class WorkgroupSlot:
    """A slot that executes workgroups, or clusters of them, one after the other. `block`: its state in native code."""

    def __init__(
        self, template: Waves, launch: layout.LaunchState, counting: int = 0, *, watched: bool = False
    ) -> None:
        """template: the waves of some workgroup, or cluster, of the launch. counting: the address where the thread
        counts, or 0.

        watched: see whether waves wait for memory that other processes write.
        """
        self._launch = launch  # native code has its address
        self.wave_count = template.count
        self._waves = aligned_zeros(layout.WAVE_STRIDE * template.count)
        self._lds = aligned_zeros(max(template.lds.size, 1))
        self._scratch = aligned_zeros(max(template.scratch.size, 1))
        self._workspaces = aligned_zeros(sizeof(layout.Workspace) * len(template.workgroup_ids))
        self._template = template
        self.slices = 0
        self.is_waiting = False
        self._snapshots = aligned_zeros(sizeof(layout.Snapshot) * template.count) if watched else None
        lds, scratch, workspaces = (a.ctypes.data for a in (self._lds, self._scratch, self._workspaces))
        self.block = layout.Group(launch=addressof(launch), waves=self._waves.ctypes.data, lds=lds, scratch=scratch)
        for w in range(template.count):
            wave, workgroup = self.wave(w), int(template.workgroup[w])
            wave.lds = lds + template.lds_stride * workgroup
            wave.scratch = scratch + template.lanes * template.scratch_stride * w
            wave.workspace, wave.counting = workspaces + sizeof(layout.Workspace) * workgroup, counting
            wave.snapshot = 0 if self._snapshots is None else self._snapshots.ctypes.data + sizeof(layout.Snapshot) * w

    def forget(self) -> None:
        """Forget the workgroups of a launch; what they left in registers and LDS is cleared as each one starts."""
        self.slices, self.is_waiting = 0, False
        self.block.number = self.block.executed = 0

    @property
    def address(self) -> int:
        return addressof(self.block)

    def wave(self, w: int) -> layout.Wave:
        """The native state of wave w."""
        return layout.Wave.from_buffer(self._waves.data, layout.WAVE_STRIDE * w)

    @property
    def number(self) -> int:
        """The linear id of the workgroup, or cluster, in execution, or of the last one."""
        return self.block.number

    def instruction_index(self, w: int) -> int:
        """The index of wave w's next instruction."""
        wave = self.wave(w)
        return (wave.pc - wave.records) // layout.RECORD_BYTES

    def waves(self, workgroup_ids: list[Dim3]) -> SharedWaves:
        """The state of its workgroups, in place. Program counters, statuses and counts are copies: see `put_back`."""
        storage = (self._waves, self._lds, self._scratch, self._workspaces.view(_WORKSPACE))
        return SharedWaves(self, workgroup_ids, self._template, storage)


class SharedWaves(Waves):
    """The waves of a `WorkgroupSlot`."""

    def __init__(
        self, slot: WorkgroupSlot, workgroup_ids: list[Dim3], like: Waves, storage: tuple[Array, Array, Array, Array]
    ) -> None:
        self._slot = slot
        waves, self.lds, scratch, workspaces = storage
        self.lanes = like.lanes
        self.workgroup_ids, self.cluster_size = workgroup_ids, like.cluster_size
        self.block, self.vgprs, self.agprs = like.block, like.vgprs, like.agprs
        self.lds_bytes, self.scratch_bytes = like.lds_bytes, like.scratch_bytes
        self.lds_stride, self.scratch_stride = like.lds_stride, like.scratch_stride
        self.waves_per_workgroup, self.count = like.waves_per_workgroup, like.count
        self.workgroup = like.workgroup
        self.scratch = scratch[: like.scratch.size]
        self.sgpr = self._field(waves, 0, np.uint32, (SGPR_FILE_SIZE,), (4,))
        self.scc = self._field(waves, layout.Wave.scc.offset, np.bool_, (1,), (1,))
        self.mode = self._field(waves, layout.Wave.mode.offset, np.uint32, (1,), (4,))
        by_wave = self._field(
            waves, layout.Wave.vgpr.offset, np.uint32, (VECTOR_ROWS, self.lanes), (layout.ROW_BYTES, 4)
        )
        self.vgpr = by_wave.swapaxes(0, 1)
        self.may_pass = self._field(waves, layout.Wave.may_pass.offset, np.bool_, (), ())
        self.may_pass_cluster = self._field(waves, layout.Wave.may_pass_cluster.offset, np.bool_, (), ())
        self.signals, self.cluster_signals = workspaces["signals"], workspaces["cluster_signals"]
        status = self._field(waves, layout.Wave.status.offset, np.uint32, (), ())
        self.status = np.where(status <= ENDED, status, RUNNING).astype(np.uint8)  # others only left native code
        self.executed = self._field(waves, layout.Wave.executed.offset, np.int64, (), ()).copy()
        self.pc = np.array([slot.instruction_index(w) for w in range(self.count)])

    def _field(self, waves: Array, offset: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """A field of all wave blocks: the first axis is the wave."""
        full = (self.count, *shape)
        return np.ndarray(full, dtype, buffer=waves, offset=offset, strides=(layout.WAVE_STRIDE, *strides))

    def put_back(self, w: int) -> None:
        """Let native code continue with wave w at its pc, with its status and count."""
        wave = self._slot.wave(w)
        wave.pc = wave.records + layout.RECORD_BYTES * int(self.pc[w])
        wave.executed, wave.status = int(self.executed[w]), int(self.status[w])
