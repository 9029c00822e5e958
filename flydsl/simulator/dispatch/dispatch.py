"""The state that a launch gives its waves, as the command processor would: kernel arguments, constants, registers.

(LLVM, AMDGPUUsage, "Initial Kernel Execution State".)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import LaunchError
from flydsl.hsaco import UserSgpr
from flydsl.hsaco.operands import CLUSTER_STATE, EXEC, ttmp
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch.prepared_kernel import PreparedKernel, halves
from flydsl.simulator.memory.buffers import Memory, copy_of
from flydsl.simulator.waves import Waves

_WAVE_NUMBER_BIT = 25
"""The bit of TTMP8 at which the number of the wave in its workgroup begins."""
_CLUSTER_ID_BIT, _PLACE_IN_CLUSTER_BIT = 6, 21
"""The bits of IB_STS2 at which the cluster's number (0: none) and the workgroup's number in it begin."""


@dataclass(frozen=True)
class LaunchStatistics:
    """Statistics of a launch: waves, and instructions summed over the waves."""

    waves: int
    wave_instructions: int


class Dispatch(PreparedKernel):
    """The part of a launch that all its waves share, and the initial registers of a wave."""

    def __init__(self, prepared: PreparedKernel, kernarg: bytes, memory: Memory) -> None:
        vars(self).update(vars(prepared))
        self.memory = memory.with_buffers(self.buffers)
        self.memory.null_hint = self.null_hint
        self._kernarg = self.complete_kernarg(kernarg)
        self._kernarg_pointer = halves(
            self.memory.map_constant(self._kernarg, name="kernarg", label="kernel arguments")
        )

    def with_copied_memory(self) -> Dispatch:
        """The same launch on a copy of the memory that it reaches."""
        launch = copy(self)
        launch.memory = self.memory.with_copied_content()
        if find := self.memory.find:
            launch.memory.find = lambda address: (found := find(address)) and copy_of(found)
        return launch

    @property
    def arguments(self) -> bytes:
        """The bytes of the kernel's arguments, those that the compiler adds among them."""
        return self._kernarg

    @property
    def kernel_name(self) -> str:
        return self.kernel.name

    @property
    def waves_per_workgroup(self) -> int:
        return -(-self.block[0] * self.block[1] * self.block[2] // self.lanes)

    @property
    def workgroup_count(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def cluster_size(self) -> int:
        """The workgroups of a cluster; 1 without clusters."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def cluster_of(self, workgroup: Dim3) -> Dim3:
        """The id of a workgroup's cluster; without clusters, the workgroup's own."""
        x, y, z = (i // size for i, size in zip(workgroup, self.cluster, strict=True))
        return x, y, z

    @property
    def workgroup_id_yz_bytes(self) -> int:
        """The bytes of y and z of the workgroup's id."""
        return 2 if self.program.arch.ids_in_trap_registers else 4

    def workgroup_id_places(self) -> tuple[int | None, int | None, int | None]:
        """The bytes of the scalar registers where x, y and z of the id of the workgroup, or of its cluster, begin; None
        for what the kernel does not ask for."""
        if self.program.arch.ids_in_trap_registers:
            return 4 * ttmp(9), 4 * ttmp(7), 4 * ttmp(7) + 2
        descriptor = self.kernel.descriptor
        register = descriptor.user_sgpr_count
        places: list[int | None] = []
        for enabled in (descriptor.workgroup_id_x, descriptor.workgroup_id_y, descriptor.workgroup_id_z):
            places.append(4 * register if enabled else None)
            register += bool(enabled)
        return places[0], places[1], places[2]

    def workgroup_ids(self) -> Iterator[Dim3]:
        """The ids of the workgroups in dispatch order, x fastest; those of a cluster follow each other."""
        counts = [extent // size for extent, size in zip(self.grid, self.cluster, strict=True)]
        return (id_ for cluster in _coordinates(counts) for id_ in self.workgroups_of(cluster))

    def workgroups_of(self, cluster: Dim3) -> list[Dim3]:
        """The ids of the workgroups of a cluster; without clusters, the workgroup of that id."""
        width, height, depth = self.cluster
        x, y, z = cluster
        return [(width * x + i, height * y + j, depth * z + k) for i, j, k in _coordinates(self.cluster)]

    def waves(self, workgroup_ids: Sequence[Dim3], leave_undefined: Callable[[Waves], None] | None = None) -> Waves:
        """The initial waves of some workgroups. leave_undefined fills what the hardware leaves undefined."""
        waves = Waves(
            workgroup_ids,
            self.block,
            vgprs=self.vgprs,
            agprs=self.agprs,
            lds_bytes=self.lds_bytes,
            scratch_bytes=self.scratch_bytes,
            entry=self.entry,
            mode=self.mode.bits,
            lanes=self.lanes,
            cluster_size=self.cluster_size,
        )
        if leave_undefined:
            leave_undefined(waves)
        self._initialize(waves)
        return waves

    def _initialize(self, waves: Waves) -> None:
        """Set the scalar registers, EXEC and v0 of a fresh batch."""
        self.set_arguments(waves)
        ids = np.array(waves.workgroup_ids, np.uint32)[waves.workgroup]
        if self.cluster_size > 1:
            self._initialize_clusters(waves, ids)
            ids //= np.array(self.cluster, np.uint32)
        waves.sgpr[:, self._scratch_offset_registers()] = 0
        registers = waves.sgpr.view(np.uint8)
        for axis, place in enumerate(self.workgroup_id_places()):
            if place is not None:
                size = self.workgroup_id_yz_bytes if axis else 4
                registers[:, place : place + size] = ids[:, axis, None].copy().view(np.uint8)[:, :size]
        if self.program.arch.ids_in_trap_registers:
            waves.sgpr[:, ttmp(8)] = np.arange(waves.count) % waves.waves_per_workgroup << _WAVE_NUMBER_BIT
        self._initialize_lanes(waves)

    def set_arguments(self, waves: Waves) -> None:
        """Set the scalar registers that lead to the arguments, which may differ between launches, or hold them."""
        for register in self.kernel.descriptor.user_sgprs:
            values = self._user_value(register)
            waves.sgpr[:, register.first_sgpr : register.first_sgpr + len(values)] = values

    def _scratch_offset_registers(self) -> list[int]:
        """The register, if any, that says where the wave's scratch begins in that of all waves: here in its own.

        It follows the workgroup's ids, where kernels reach scratch through a resource or FLAT_SCRATCH.
        """
        descriptor = self.kernel.descriptor
        names = {register.name for register in descriptor.user_sgprs}
        if not descriptor.private_segment or names.isdisjoint(("private_segment_buffer", "flat_scratch_init")):
            return []
        ids = (descriptor.workgroup_id_x, descriptor.workgroup_id_y, descriptor.workgroup_id_z)
        return [descriptor.user_sgpr_count + sum(ids) + descriptor.workgroup_info]

    def _initialize_clusters(self, waves: Waves, ids: Array) -> None:
        """TTMP6 and IB_STS2 of workgroups in clusters. ids: (waves, 3), of the workgroups.

        TTMP6: four bits each of the place in the cluster, and of its size less 1, along x, y and z, and the number of
        its workgroups less 1; IB_STS2: not 0 in a cluster, and the workgroup's number. (LLVM, SIISelLowering.cpp; AMD
        Instinct CDNA5 Instruction Set Architecture, 2.3.1.)
        """
        x, y, z = (ids % np.array(self.cluster, np.uint32)).T
        width, height, depth = self.cluster
        sizes = (width - 1) << 12 | (height - 1) << 16 | (depth - 1) << 20 | (self.cluster_size - 1) << 24
        waves.sgpr[:, ttmp(6)] = x | y << 4 | z << 8 | sizes
        number = x + width * (y + height * z)
        waves.sgpr[:, CLUSTER_STATE] = 1 << _CLUSTER_ID_BIT | number << _PLACE_IN_CLUSTER_BIT

    def _user_value(self, register: UserSgpr) -> tuple[int, ...]:
        if register.name == "kernarg_preload":
            first = self.kernel.descriptor.kernarg_preload >> 7
            dwords = np.frombuffer(self._kernarg[: len(self._kernarg) // 4 * 4], np.uint32)
            return tuple(int(d) for d in dwords[first : first + register.sgpr_count])
        if register.name == "kernarg_segment_ptr":
            return self._kernarg_pointer
        if register.name not in self.user_values:
            raise LaunchError(
                f"kernel {self.kernel.name!r} asks for {register.name}, which the simulator does not give"
            )
        return self.user_values[register.name]

    def _initialize_lanes(self, waves: Waves) -> None:
        """v0 holds x, y << 10 and z << 20, as far as the kernel asks for them: code that uses x alone does not mask it.
        The last wave of a workgroup may be partial."""
        x, y, z = self.block
        thread = np.arange(waves.waves_per_workgroup * self.lanes)
        ids = (thread % x, thread // x % y, thread // (x * y))[: self.kernel.descriptor.workitem_id_dims]
        packed = np.bitwise_or.reduce([id_ << 10 * axis for axis, id_ in enumerate(ids)])
        workgroups = len(waves.workgroup_ids)
        waves.vgpr[0] = np.tile(packed.reshape(-1, self.lanes), (workgroups, 1))
        active = np.packbits((thread < x * y * z).reshape(-1, self.lanes), axis=1, bitorder="little")
        waves.sgpr[:, EXEC : EXEC + self.lanes // 32] = np.tile(active.view(np.uint32), (workgroups, 1))


def _coordinates(extents: Sequence[int]) -> Iterator[Dim3]:
    """All coordinates below some extents, x fastest."""
    return ((x, y, z) for z, y, x in itertools.product(*map(range, reversed(extents))))
