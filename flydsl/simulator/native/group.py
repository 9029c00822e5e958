"""The memory of a workgroup in native execution, and the same memory as `Waves`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.simulator.native import layout
from flydsl.simulator.operands import SGPR_FILE_SIZE
from flydsl.simulator.waves import ACCUMULATION_ROW, ENDED, LANES, RUNNING, Dim3, Waves

Array = np.ndarray[Any, Any]
_ALIGNMENT_BYTES = 64


def aligned_zeros(size_bytes: int) -> Array:
    """Bytes that begin at a multiple of 64."""
    storage = np.zeros(size_bytes + _ALIGNMENT_BYTES, np.uint8)
    start = -storage.ctypes.data % _ALIGNMENT_BYTES
    return storage[start : start + size_bytes]


class Block:
    """Memory that native code knows, accessed field by field: 64 bits at a multiple of 8 bytes."""

    def __init__(self, storage: Array) -> None:
        self.storage = storage
        self._words = storage.view(np.int64)

    @property
    def address(self) -> int:
        return int(self.storage.ctypes.data)

    def get(self, offset: int) -> int:
        return int(self._words[offset >> 3])

    def set(self, offset: int, value: int) -> None:
        self._words[offset >> 3] = value


class Group(Block):
    """A place for one workgroup to execute, one after the other."""

    def __init__(self, template: Waves, launch: Block, counting_block: int = 0) -> None:
        """template: the waves of some workgroup of the launch. counting_block: where the thread counts, or 0."""
        super().__init__(aligned_zeros(layout.GROUP_BYTES))
        self._launch = launch
        self.wave_count = template.count
        self._waves = aligned_zeros(layout.WAVE_STRIDE * template.count)
        self._lds = aligned_zeros(max(template.lds_stride, 1))
        self._scratch = aligned_zeros(max(template.scratch.size, 1))
        self._workspace = aligned_zeros(layout.WORKSPACE_BYTES)
        self._template = template
        self.slices = 0
        self.set(layout.GROUP_LAUNCH, launch.address)
        self.set(layout.GROUP_WAVES, self._waves.ctypes.data)
        self.set(layout.GROUP_LDS, self._lds.ctypes.data)
        self.set(layout.GROUP_SCRATCH, self._scratch.ctypes.data)
        for w in range(template.count):
            wave = self.wave(w)
            wave.set(layout.LDS, self._lds.ctypes.data)
            wave.set(layout.SCRATCH, self._scratch.ctypes.data + LANES * template.scratch_stride * w)
            wave.set(layout.WORKSPACE, self._workspace.ctypes.data)
            wave.set(layout.COUNTING, counting_block)

    def wave(self, w: int) -> Block:
        """The block of wave w."""
        start = layout.WAVE_STRIDE * w
        return Block(self._waves[start : start + layout.WAVE_STRIDE])

    @property
    def is_active(self) -> bool:
        return self.get(layout.GROUP_ACTIVE) != 0

    @property
    def workgroup(self) -> int:
        return self.get(layout.GROUP_WORKGROUP)

    @property
    def current_wave(self) -> int:
        return self.get(layout.GROUP_WAVE)

    def instruction_index(self, w: int) -> int:
        """Of the next instruction of wave w."""
        wave = self.wave(w)
        return (wave.get(layout.PC) - wave.get(layout.RECORDS)) // layout.RECORD_BYTES

    def waves(self, workgroup_id: Dim3) -> SharedWaves:
        """The state of the workgroup, in place. Program counters, statuses and counts are copies: see `put_back`."""
        return SharedWaves(self, workgroup_id, self._template, (self._waves, self._lds, self._scratch))


class SharedWaves(Waves):
    """One workgroup of a `Group`."""

    def __init__(self, group: Group, workgroup_id: Dim3, like: Waves, storage: tuple[Array, Array, Array]) -> None:
        self._group = group
        waves, self.lds, scratch = storage
        self.workgroup_ids = [workgroup_id]
        self.block, self.vgprs = like.block, like.vgprs
        self.lds_bytes, self.scratch_bytes = like.lds_bytes, like.scratch_bytes
        self.lds_stride, self.scratch_stride = like.lds_stride, like.scratch_stride
        self.waves_per_workgroup = self.count = like.count
        self.workgroup = np.zeros(self.count, np.intp)
        self.scratch = scratch[: like.scratch.size]
        self.sgpr = self._field(waves, 0, np.uint32, (SGPR_FILE_SIZE,), (4,))
        self.scc = self._field(waves, layout.SCC, np.bool_, (1,), (1,))
        self.mode = self._field(waves, layout.MODE, np.uint32, (1,), (4,))
        rows = 2 * ACCUMULATION_ROW
        by_wave = self._field(waves, layout.VGPR, np.uint32, (rows, LANES), (layout.ROW_BYTES, 4))
        self.vgpr = by_wave.swapaxes(0, 1)
        status = self._field(waves, layout.STATUS, np.uint32, (), ())
        self.status = np.where(status <= ENDED, status, RUNNING).astype(np.uint8)  # others only left native code
        self.executed = self._field(waves, layout.EXECUTED, np.int64, (), ()).copy()
        self.pc = np.array([group.instruction_index(w) for w in range(self.count)])

    def _field(self, waves: Array, offset: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """A field of all wave blocks: the first axis is the wave."""
        full = (self.count, *shape)
        return np.ndarray(full, dtype, buffer=waves, offset=offset, strides=(layout.WAVE_STRIDE, *strides))

    def put_back(self, w: int) -> None:
        """Let the native code go on with wave w at its pc, with its status and count."""
        wave = self._group.wave(w)
        wave.set(layout.PC, wave.get(layout.RECORDS) + layout.RECORD_BYTES * int(self.pc[w]))
        wave.set(layout.EXECUTED, int(self.executed[w]))
        wave.storage[layout.STATUS : layout.STATUS + 4].view(np.uint32)[0] = self.status[w]
