"""Lanes: EXEC, lane masks and data movement between lanes, on the currently executing waves of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flydsl.hsaco.operands import EXEC, Register
from flydsl.simulator.arrays import Array
from flydsl.simulator.errors import RegisterFault
from flydsl.simulator.isa.matrix import MatrixShape
from flydsl.simulator.lockstep.matrix import matmul
from flydsl.simulator.lockstep.values import NumpyValues
from flydsl.simulator.waves import Waves, row_of


class NumpyLanes(NumpyValues):
    """Lanes of the executing waves. `selection`: these waves of the batch, as a slice (all), or an array of indices."""

    def __init__(self, waves: Waves) -> None:
        super().__init__()
        self.waves = waves
        self.lane_count = waves.lanes
        self._lane_id = np.arange(waves.lanes, dtype=np.uint32)[None, :]
        self.selection: slice | Array = slice(None)
        self.selected_count = waves.count
        self.lane_enable: Array | None = None  # set while a DPP instruction executes
        self._exec: Array | None = None
        self._exec_is_full = False

    def select_waves(self, indices: Array) -> None:
        everyone = indices.size == self.waves.count
        self.selection = slice(None) if everyone else indices
        self.selected_count = indices.size
        self.exec_changed()

    def exec_changed(self) -> None:
        self._exec = None

    def exec_mask(self) -> Array:
        if self._exec is None:
            self._exec = self.mask_bits(self.lane_bits(EXEC))
            self._exec_is_full = bool(self._exec.all())
        return self._exec

    def exec_is_full(self) -> bool:
        self.exec_mask()
        return self._exec_is_full

    def lane_id(self) -> Array:
        return self._lane_id

    def mask_bits(self, bits: Array) -> Array:
        """The bits of a 64-bit scalar, (n, 1) i64 or (n, 2) i32, as i1 per lane."""
        as_bytes = np.ascontiguousarray(bits).view(np.uint8)
        return np.unpackbits(as_bytes, axis=1, count=self.lane_count, bitorder="little").view(np.bool_)

    def lane_bits(self, first: int) -> Array:
        """The bits of a lane mask, read from as many scalar registers as it needs, as (n, 1) i64."""
        if self.lane_count == 64:
            return np.ascontiguousarray(self.waves.sgpr[self.selection, first : first + 2]).view(np.uint64)
        return self.waves.sgpr[self.selection, first : first + 1].astype(np.uint64)

    def write_lane_bits(self, first: int, bits: Array) -> None:
        count = self.lane_count // 32
        self.waves.sgpr[self.selection, first : first + count] = np.ascontiguousarray(bits).view(np.uint32)[:, :count]

    def ballot(self, condition: Array) -> Array:
        """A 64-bit scalar with the condition's bit for each active lane, and 0 for the others."""
        active = condition & self.exec_mask()
        packed = np.packbits(active, axis=1, bitorder="little")
        return packed.view(np.uint64) if self.lane_count == 64 else packed.view(np.uint32).astype(np.uint64)

    def read_lane(self, x: Array, lane: Array) -> Array:
        return np.take_along_axis(self.per_lane(x), (lane & np.uint32(self.lane_count - 1)).astype(np.intp), axis=1)

    def read_first_lane(self, x: Array) -> Array:
        """The value in the lowest active lane; in lane 0 if none is active."""
        if self.exec_is_full():
            return x[:, :1]
        return np.take_along_axis(self.per_lane(x), self.exec_mask().argmax(axis=1)[:, None], axis=1)

    def permute(self, x: Array, lane: Array) -> Array:
        lane = np.broadcast_to(lane & lane.dtype.type(self.lane_count - 1), (self.selected_count, self.lane_count))
        return np.take_along_axis(self.per_lane(x), lane.astype(np.intp), axis=1)

    def permute_constant(self, x: Array, source: Sequence[int]) -> Array:
        """Each lane's value from the lane that `source` lists for it."""
        return self.per_lane(x)[:, list(source)]

    def scatter_lanes(self, x: Array, target: Array) -> Array:
        """Send active lanes' values to lanes `target`: of several senders the highest wins, without any it is 0."""
        result = np.zeros((self.selected_count, self.lane_count), x.dtype)
        x, target, active = self.per_lane(x), self.per_lane(target), self.exec_mask()
        for lane in range(self.lane_count):
            waves = np.flatnonzero(active[:, lane])
            result[waves, target[waves, lane]] = x[waves, lane]
        return result

    def read_register(self, register: Register, index: Array) -> Array:
        rows = self._indexed_rows(register, index)
        return self.waves.vgpr[rows, self._selected_indices()]

    def write_register(self, register: Register, index: Array, value: Array) -> None:
        rows = np.broadcast_to(self._indexed_rows(register, index), self.selected_count)
        waves = self._selected_indices()
        self.waves.vgpr[rows, waves] = np.where(self.exec_mask(), value, self.waves.vgpr[rows, waves])

    def _indexed_rows(self, register: Register, index: Array) -> Array:
        rows: Array = row_of(register) + index[:, 0].astype(np.intp)
        if rows.max() >= self.waves.vgprs:
            raise RegisterFault(
                f"v{rows.max()}, which is v{register.first} at index {int(index.max())}, is beyond the "
                f"{self.waves.vgprs} VGPRs that the kernel was given"
            )
        return rows

    def _selected_indices(self) -> Array:
        return np.arange(self.waves.count)[self.selection]

    def fragment(
        self,
        operand: str,
        registers: Sequence[Array],
        origin: str,
        shape: MatrixShape,
        make: Callable[[Sequence[Array]], list[Array]],
    ) -> list[Array]:
        return make(registers)

    def matmul(
        self, a: Sequence[Array], b: Sequence[Array], c: Sequence[Array], shape: MatrixShape
    ) -> tuple[Array, ...]:
        return tuple(matmul(a, b, c, shape, self.selected_count))

    def shared(self, compute: Callable[[Any, Array], Array], x: Array) -> Array:
        return compute(self, x)

    def per_lane(self, x: Array) -> Array:
        return np.broadcast_to(x, (self.selected_count, self.lane_count))
