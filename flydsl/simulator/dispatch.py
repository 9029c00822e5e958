"""The state that a launch gives its waves, as the command processor would: kernel arguments, constants, registers.

(LLVM, AMDGPUUsage, "Initial Kernel Execution State".)
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import LaunchError
from flydsl.hsaco import KernelInfo, UserSgpr
from flydsl.hsaco.data import DataSegment, page_aligned
from flydsl.hsaco.operands import CLUSTER_STATE, EXEC, ttmp
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import CODE_BASE, INSTRUCTION_BYTES, Program
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SCRATCH_RESOURCE, SHARED_APERTURE, Memory
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.waves import Waves

_WAVE_NUMBER_BIT = 25
"""Of TTMP8: where the number of the wave in its workgroup begins."""
_CLUSTER_ID_BIT, _PLACE_IN_CLUSTER_BIT = 6, 21
"""Of IB_STS2: a number of the cluster, 0 for none, and the workgroup's number in it."""
_DYNAMIC_STACK_BYTES = 4096
"""Extra bytes of a thread beyond the fixed size, if the code object says that its stack grows."""


_NOT_GIVEN = {
    "hidden_hostcall_buffer": "calls of the host, by printf and failed assertions",
    "hidden_printf_buffer": "printf of OpenCL",
    "hidden_heap_v1": "malloc on the device",
    "hidden_default_queue": "kernels that launch kernels",
    "hidden_completion_action": "kernels that launch kernels",
    "hidden_multigrid_sync_arg": "synchronization of several grids",
}


@dataclass(frozen=True)
class LaunchStatistics:
    """Statistics of a launch: waves, and instructions summed over the waves."""

    waves: int
    wave_instructions: int


@dataclass(frozen=True)
class LdsSize:
    """LDS of a workgroup: what the kernel declares and what the launch adds."""

    static_bytes: int
    dynamic_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.static_bytes + self.dynamic_bytes


class Dispatch:
    """The part of a launch that all its waves share, and the initial registers of a wave."""

    def __init__(
        self,
        program: Program,
        kernel: KernelInfo,
        grid: Dim3,
        block: Dim3,
        kernarg: bytes,
        memory: Memory,
        lds: LdsSize,
    ) -> None:
        self.program, self.grid, self.block = program, grid, block
        self._kernel, self.lanes = kernel, kernel.wave_size
        self.lds_bytes = lds.total_bytes
        self.scratch_bytes = kernel.scratch_bytes + (_DYNAMIC_STACK_BYTES if kernel.uses_dynamic_stack else 0)
        self.cluster = kernel.cluster or (1, 1, 1)
        self.vgprs, self.agprs = max(kernel.vgprs, 1), kernel.agprs  # v0 is initialized in any case
        self.entry = program.labels[kernel.name]
        self.mode = FloatMode.of(kernel.descriptor)
        self.memory = memory.copy()
        self.memory.null_hint = _null_hint(kernel)
        self.symbols = self._map_symbols(program)
        self._kernarg = _complete_kernarg(kernel, kernarg, _hidden_arguments(grid, block, lds))
        kernarg_address = self._map("kernarg", "kernel arguments", self._kernarg)
        packet = self._map("dispatch packet", "hsa_kernel_dispatch_packet_t", _packet(kernel, grid, block, lds))
        self._user_values = {
            "kernarg_segment_ptr": _halves(kernarg_address),
            "dispatch_ptr": _halves(packet),
            "queue_ptr": (0, 0),
            "dispatch_id": (0, 0),
            "flat_scratch_init": (0, 0),
            "private_segment_buffer": SCRATCH_RESOURCE,
            "private_segment_size": (kernel.scratch_bytes,),
        }

    def _map_symbols(self, program: Program) -> dict[str, int]:
        """The address of every symbol, and, under `name@got`, of its entry in the global offset table."""
        symbols = {name: CODE_BASE + INSTRUCTION_BYTES * index for name, index in program.labels.items()}
        if program.variables.labels:
            label, storage = "global variables of the code object", program.variable_storage
            base = self.memory.map_array(storage, name="variables", label=label)
            symbols |= program.variables.addresses(base)
        if program.constants.labels:
            constants = self._map("constants", "constant data of the code object", program.constants.content)
            symbols |= program.constants.addresses(constants)
            self._relocate(program.constants, constants, symbols)
        entries = b"".join(struct.pack("<Q", address) for address in symbols.values())
        table = self._map("global offset table", f"{len(symbols)} symbols", entries)
        return symbols | {f"{name}@got": table + 8 * i for i, name in enumerate(symbols)}

    def _relocate(self, constants: DataSegment, base: int, symbols: Mapping[str, int]) -> None:
        """Write the addresses that constants hold."""
        buffer = self.memory.buffer_at(base)
        assert buffer is not None
        for relocation in constants.relocations:
            if relocation.symbol not in symbols:
                raise LaunchError(
                    f"a constant holds the address of {relocation.symbol}, which the module does not define"
                )
            address = (symbols[relocation.symbol] + relocation.addend) & 0xFFFF_FFFF_FFFF_FFFF
            where = slice(relocation.offset, relocation.offset + 8)
            buffer.data[where] = np.frombuffer(struct.pack("<Q", address), np.uint8)

    def _map(self, name: str, label: str, content: bytes) -> int:
        return self.memory.map_array(page_aligned(content), name=name, label=label, writable=False)

    @property
    def kernel_name(self) -> str:
        return self._kernel.name

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
        descriptor = self._kernel.descriptor
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
        descriptor = self._kernel.descriptor
        for register in descriptor.user_sgprs:
            values = self._user_value(register)
            waves.sgpr[:, register.first_sgpr : register.first_sgpr + len(values)] = np.array(values, np.uint32)
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

    def _scratch_offset_registers(self) -> list[int]:
        """The register, if any, that says where the wave's scratch begins in that of all waves: here in its own.

        It follows the workgroup's ids, where kernels reach scratch through a resource or FLAT_SCRATCH.
        """
        descriptor = self._kernel.descriptor
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
            first = self._kernel.descriptor.kernarg_preload >> 7
            dwords = np.frombuffer(self._kernarg[: len(self._kernarg) // 4 * 4], np.uint32)
            return tuple(int(d) for d in dwords[first : first + register.sgpr_count])
        if register.name not in self._user_values:
            raise LaunchError(
                f"kernel {self._kernel.name!r} asks for {register.name}, which the simulator does not give"
            )
        return self._user_values[register.name]

    def _initialize_lanes(self, waves: Waves) -> None:
        """v0 holds x, y << 10 and z << 20, as far as the kernel asks for them: code that uses x alone does not mask it.
        The last wave of a workgroup may be partial."""
        x, y, z = self.block
        thread = np.arange(waves.waves_per_workgroup * self.lanes)
        ids = (thread % x, thread // x % y, thread // (x * y))[: self._kernel.descriptor.workitem_id_dims]
        packed = np.bitwise_or.reduce([id_ << 10 * axis for axis, id_ in enumerate(ids)])
        workgroups = len(waves.workgroup_ids)
        waves.vgpr[0] = np.tile(packed.reshape(-1, self.lanes), (workgroups, 1))
        active = np.packbits((thread < x * y * z).reshape(-1, self.lanes), axis=1, bitorder="little")
        waves.sgpr[:, EXEC : EXEC + self.lanes // 32] = np.tile(active.view(np.uint32), (workgroups, 1))


def _coordinates(extents: Sequence[int]) -> Iterator[Dim3]:
    """All coordinates below some extents, x fastest."""
    return ((x, y, z) for z, y, x in itertools.product(*map(range, reversed(extents))))


def _halves(value: int) -> tuple[int, int]:
    return value & 0xFFFF_FFFF, value >> 32


def _complete_kernarg(kernel: KernelInfo, explicit: bytes, hidden: dict[str, int]) -> bytes:
    """The kernarg segment with the hidden arguments filled in."""
    needed = max((a.offset + a.size for a in kernel.args if not a.kind.startswith("hidden_")), default=0)
    if len(explicit) < needed:
        raise LaunchError(f"kernarg has {len(explicit)} bytes; the arguments of {kernel.name!r} take {needed}")
    # The segment is 16-byte aligned and LLVM loads wide, up to the next 16 bytes beyond the last argument.
    segment = bytearray(explicit.ljust(-(-kernel.kernarg_bytes // 16) * 16, b"\0"))
    for argument in kernel.args:
        if argument.kind in hidden:
            value = (hidden[argument.kind] & ((1 << 8 * argument.size) - 1)).to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = value
    return bytes(segment)


def _hidden_arguments(grid: Dim3, block: Dim3, lds: LdsSize) -> dict[str, int]:
    """The supported hidden arguments; the others (printf, heap, queues) stay 0."""
    hidden = {
        "hidden_grid_dims": 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1,
        "hidden_dynamic_lds_size": lds.dynamic_bytes,
        "hidden_private_base": PRIVATE_APERTURE >> 32,
        "hidden_shared_base": SHARED_APERTURE >> 32,
    }
    for axis, blocks, threads in zip("xyz", grid, block, strict=True):
        hidden[f"hidden_block_count_{axis}"] = blocks
        hidden[f"hidden_group_size_{axis}"] = threads
        hidden[f"hidden_remainder_{axis}"] = 0
        hidden[f"hidden_global_offset_{axis}"] = 0
    return hidden


def _null_hint(kernel: KernelInfo) -> str | None:
    """A hint naming an address that the kernel asks for and that is 0 here; None if it asks for none."""
    wanted = {argument.kind for argument in kernel.args}
    for kind, purpose in _NOT_GIVEN.items():
        if kind in wanted:
            return f"the kernel asks for {kind} ({purpose}), which the simulator does not give: it is a null pointer"
    return None


def _packet(kernel: KernelInfo, grid: Dim3, block: Dim3, lds: LdsSize) -> bytes:
    """An hsa_kernel_dispatch_packet_t (HSA Runtime Specification 1.2, section 2.6); its grid is in work-items."""
    work_items = [blocks * threads for blocks, threads in zip(grid, block, strict=True)]
    return struct.pack(
        "<HH3HH3IIIQQQQ", 0, 3, *block, 0, *work_items, kernel.scratch_bytes, lds.total_bytes, 0, 0, 0, 0
    )
