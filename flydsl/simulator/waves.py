"""The state of a batch of waves: registers, program counters, LDS and scratch, as arrays with one row per wave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flydsl.hsaco.operands import SGPR_FILE_SIZE, Register

LANES = 64
"""The most lanes of a wave: rows of vector registers have room for them."""
RUNNING, AT_BARRIER, AT_CLUSTER_BARRIER, ENDED = 0, 1, 2, 3
WAITING = (AT_BARRIER, AT_CLUSTER_BARRIER)
ACCUMULATION_ROW = 256
"""AGPR i is row 256 + i of the vector registers, where a GPU has AGPRs."""
VECTOR_ROWS = 1024
"""The most rows of vector registers that a wave has: VGPRs of gfx1250, or VGPRs and AGPRs."""


def row_of(register: Register) -> int:
    """The row of a vector or accumulation register."""
    return register.first + (ACCUMULATION_ROW if register.file == "a" else 0)


class Waves:
    """All waves of some workgroups, in the order of workgroups, and of waves within one.

    sgpr is (waves, 128) u32 with VCC, M0 and EXEC at their encodings; vgpr is (registers, waves, lanes) u32, AGPRs from
    row 256. lds is (workgroups * lds_stride) u8, scratch (waves * lanes * scratch_stride) u8.

    signals: by workgroup, the waves that have arrived at the barrier; may_pass: the waves for which all have, and that
    have not passed it. cluster_size: workgroups that run as a cluster, which follow each other. cluster_signals: by
    workgroup, whether it has arrived at its cluster's barrier, and may_pass_cluster as may_pass.
    """

    def __init__(
        self,
        workgroup_ids: Sequence[tuple[int, int, int]],
        block: tuple[int, int, int],
        *,
        vgprs: int,
        agprs: int,
        lds_bytes: int,
        scratch_bytes: int,
        entry: int,
        mode: int,
        lanes: int = LANES,
        cluster_size: int = 1,
    ) -> None:
        self.lanes = lanes
        self.workgroup_ids = workgroup_ids
        self.block = block
        self.lds_bytes = lds_bytes
        self.scratch_bytes = scratch_bytes
        self.lds_stride, self.scratch_stride = -(-lds_bytes // 16) * 16, -(-scratch_bytes // 16) * 16
        self.waves_per_workgroup = -(-block[0] * block[1] * block[2] // lanes)
        self.count = len(workgroup_ids) * self.waves_per_workgroup
        self.workgroup = np.repeat(np.arange(len(workgroup_ids)), self.waves_per_workgroup)
        self.sgpr = np.zeros((self.count, SGPR_FILE_SIZE), np.uint32)
        self.scc = np.zeros((self.count, 1), np.bool_)
        self.vgprs, self.agprs = vgprs, agprs
        rows = ACCUMULATION_ROW + agprs if agprs else vgprs
        self.vgpr = np.zeros((rows, self.count, lanes), np.uint32)
        self.pc = np.full(self.count, entry)
        self.status = np.full(self.count, RUNNING, np.uint8)
        self.executed = np.zeros(self.count, np.int64)
        self.mode = np.full((self.count, 1), mode, np.uint32)
        self.lds = np.zeros(len(workgroup_ids) * self.lds_stride, np.uint8)
        self.scratch = np.zeros(self.count * lanes * self.scratch_stride, np.uint8)
        self.signals = np.zeros(len(workgroup_ids), np.int64)
        self.may_pass = np.zeros(self.count, np.bool_)
        self.cluster_size = cluster_size
        self.cluster_signals = np.zeros(len(workgroup_ids), np.int64)
        self.may_pass_cluster = np.zeros(self.count, np.bool_)

    def workgroups_of_cluster(self, workgroup: int) -> range:
        """The workgroups of a workgroup's cluster; itself, if it is in none."""
        first = workgroup // self.cluster_size * self.cluster_size
        return range(first, first + self.cluster_size)

    @property
    def first_agpr(self) -> int:
        """The row of the first accumulation register, or, if there are none, the number of rows."""
        return ACCUMULATION_ROW if self.agprs else self.vgprs

    def thread(self, wave: int, lane: int) -> tuple[int, int, int]:
        """The (x, y, z) id of a lane within its workgroup."""
        x, y, _ = self.block
        linear = wave % self.waves_per_workgroup * self.lanes + lane
        return linear % x, linear // x % y, linear // (x * y)
