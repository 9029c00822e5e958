"""Launch a kernel on the simulator: the part of the command processor.

It fills the hidden kernel arguments, and puts into the registers of each wave what the kernel descriptor asks for
(LLVM, AMDGPUUsage, "Initial Kernel Execution State").
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.arch import Arch
from flydsl.errors import LaunchError
from flydsl.hsaco import KernelInfo, UserSgpr
from flydsl.simulator.lockstep import Machine, Step
from flydsl.simulator.memory import Memory
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.numpy_memory import PRIVATE_APERTURE, SHARED_APERTURE
from flydsl.simulator.operands import EXEC
from flydsl.simulator.program import CODE_BASE, INSTRUCTION_BYTES, Program
from flydsl.simulator.registers import bind_program
from flydsl.simulator.waves import LANES, Waves

Dim3 = tuple[int, int, int]

_WAVES_PER_BATCH = 512
_STATE_BYTES_PER_BATCH = 1 << 28
_PAGE_BYTES = 4096
_DYNAMIC_STACK_BYTES = 4096
"""What a thread gets beyond the fixed size where the code object says that its stack grows."""
DEFAULT_INSTRUCTION_LIMIT = 10_000_000


@dataclass(frozen=True)
class LaunchStatistics:
    """What a launch executed: waves, and instructions summed over the waves."""

    waves: int
    wave_instructions: int


def launch(
    program: Program,
    kernel_name: str,
    *,
    grid: Dim3,
    block: Dim3,
    kernarg: bytes,
    memory: Memory,
    dynamic_lds_bytes: int = 0,
    instruction_limit: int = DEFAULT_INSTRUCTION_LIMIT,
) -> LaunchStatistics:
    """Run a kernel to its end.

    grid counts workgroups, block threads. kernarg holds the explicit arguments at the offsets of the kernel's
    metadata; pointers in it are addresses of `memory`. instruction_limit is per wave.

    LaunchError for a configuration that no device accepts; SimulatorError (see `flydsl.simulator.errors`) for what
    the program does wrong.
    """
    kernel = _kernel(program, kernel_name)
    lds = _Lds(kernel.lds_bytes, dynamic_lds_bytes)
    _check_configuration(program.arch, kernel, grid, block, lds.total_bytes)
    dispatch = _Dispatch(program, kernel, grid, block, kernarg, memory, lds)
    steps = _bound_steps(program)
    statistics = LaunchStatistics(0, 0)
    for workgroup_ids in _batches(grid, _workgroups_per_batch(kernel, block, lds.total_bytes)):
        waves = Waves(
            workgroup_ids,
            block,
            vgprs=max(kernel.vgprs, 1),  # v0 is initialized in any case
            agprs=kernel.agprs,
            lds_bytes=lds.total_bytes,
            scratch_bytes=kernel.scratch_bytes + (_DYNAMIC_STACK_BYTES if kernel.uses_dynamic_stack else 0),
            entry=program.labels[kernel_name],
            mode=FloatMode.of(kernel.descriptor).bits,
        )
        dispatch.initialize(waves)
        Machine(program, steps, waves, dispatch.memory, dispatch.symbols, instruction_limit).run()
        executed = statistics.wave_instructions + int(waves.executed.sum())
        statistics = LaunchStatistics(statistics.waves + waves.count, executed)
    return statistics


_bound: WeakKeyDictionary[Program, list[Step]] = WeakKeyDictionary()


def _bound_steps(program: Program) -> list[Step]:
    """The program's instructions as callables, bound at the first launch."""
    if program not in _bound:
        _bound[program] = bind_program(program)
    return _bound[program]


def _kernel(program: Program, name: str) -> KernelInfo:
    if name not in program.kernels:
        raise LaunchError(f"the program has no kernel {name!r}", hint=f"it has {', '.join(program.kernels)}")
    kernel = program.kernels[name]
    if kernel.wave_size != LANES:
        raise LaunchError(f"kernel {name!r} has waves of {kernel.wave_size} lanes; the simulator executes waves of 64")
    return kernel


def _check_configuration(arch: Arch, kernel: KernelInfo, grid: Dim3, block: Dim3, lds_bytes: int) -> None:
    if min(grid) < 1 or min(block) < 1:
        raise LaunchError(f"grid {grid} and block {block} must be at least 1 in every dimension")
    threads = block[0] * block[1] * block[2]
    if threads > arch.max_workgroup_size:
        raise LaunchError(f"block {block} has {threads} threads; a workgroup has at most {arch.max_workgroup_size}")
    if threads > kernel.max_workgroup_size:
        raise LaunchError(
            f"block {block} has {threads} threads, but {kernel.name!r} was compiled for at most "
            f"{kernel.max_workgroup_size}"
        )
    if kernel.required_workgroup_size not in (None, block):
        raise LaunchError(
            f"kernel {kernel.name!r} was compiled for block {kernel.required_workgroup_size}, not {block}"
        )
    if lds_bytes > arch.lds_bytes_per_workgroup:
        raise LaunchError(
            f"kernel {kernel.name!r} asks for {lds_bytes} bytes of LDS; there are {arch.lds_bytes_per_workgroup}"
        )


def _workgroups_per_batch(kernel: KernelInfo, block: Dim3, lds_bytes: int) -> int:
    """As many as keep the arrays in the host's cache, and within the budget where the kernel uses much memory."""
    waves = -(-block[0] * block[1] * block[2] // LANES)
    bytes_ = lds_bytes + waves * LANES * (kernel.scratch_bytes + 4 * max(kernel.total_vgprs, 1))
    return max(min(_WAVES_PER_BATCH // waves, _STATE_BYTES_PER_BATCH // bytes_), 1)


def _batches(grid: Dim3, size: int) -> Iterator[list[Dim3]]:
    """The workgroups in dispatch order, x fastest, `size` at a time."""
    ids = ((x, y, z) for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0])))
    while batch := list(itertools.islice(ids, size)):
        yield batch


class _Dispatch:
    """What is the same for every wave of a launch, and how a wave's registers start."""

    def __init__(
        self, program: Program, kernel: KernelInfo, grid: Dim3, block: Dim3, kernarg: bytes, memory: Memory, lds: _Lds
    ) -> None:
        self._kernel, self._block = kernel, block
        self.memory = memory.copy()
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
            "private_segment_size": (kernel.scratch_bytes,),
        }

    def _map_symbols(self, program: Program) -> dict[str, int]:
        """The address of every symbol, and as `name@got` of its entry in the global offset table."""
        symbols = {name: CODE_BASE + INSTRUCTION_BYTES * index for name, index in program.labels.items()}
        if program.data_labels:
            base = self._map("constants", "constant data of the code object", program.data)
            symbols |= {name: base + offset for name, offset in program.data_labels.items()}
        entries = b"".join(struct.pack("<Q", address) for address in symbols.values())
        table = self._map("global offset table", f"{len(symbols)} symbols", entries)
        return symbols | {f"{name}@got": table + 8 * i for i, name in enumerate(symbols)}

    def _map(self, name: str, label: str, content: bytes) -> int:
        # A page of its own: the segments are aligned more strictly than any numpy array.
        storage = np.zeros(2 * _PAGE_BYTES + len(content), np.uint8)
        start = -storage.ctypes.data % _PAGE_BYTES
        data = storage[start : start + len(content)]
        data[:] = np.frombuffer(content, np.uint8)
        return self.memory.map_array(data, name=name, label=label, writable=False)

    def initialize(self, waves: Waves) -> None:
        """Set the scalar registers, EXEC and v0 of a fresh batch."""
        descriptor = self._kernel.descriptor
        for register in descriptor.user_sgprs:
            values = self._user_value(register)
            waves.sgpr[:, register.first_sgpr : register.first_sgpr + len(values)] = np.array(values, np.uint32)
        ids = np.array(waves.workgroup_ids, np.uint32)[waves.workgroup]
        enabled = (descriptor.workgroup_id_x, descriptor.workgroup_id_y, descriptor.workgroup_id_z)
        columns = [axis for axis in range(3) if enabled[axis]]
        first = descriptor.user_sgpr_count
        waves.sgpr[:, first : first + len(columns)] = ids[:, columns]
        self._initialize_lanes(waves)

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
        """v0 holds x, y << 10 and z << 20; the last wave of a workgroup may be partial."""
        x, y, z = self._block
        thread = np.arange(waves.waves_per_workgroup * LANES)
        packed = (thread % x) | (thread // x % y) << 10 | (thread // (x * y)) << 20
        workgroups = len(waves.workgroup_ids)
        waves.vgpr[0] = np.tile(packed.reshape(-1, LANES), (workgroups, 1))
        active = np.packbits((thread < x * y * z).reshape(-1, LANES), axis=1, bitorder="little")
        waves.sgpr[:, EXEC : EXEC + 2] = np.tile(active.view(np.uint32), (workgroups, 1))


def _halves(value: int) -> tuple[int, int]:
    return value & 0xFFFF_FFFF, value >> 32


@dataclass(frozen=True)
class _Lds:
    static_bytes: int
    dynamic_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.static_bytes + self.dynamic_bytes


def _complete_kernarg(kernel: KernelInfo, explicit: bytes, hidden: dict[str, int]) -> bytes:
    """The kernarg segment with the hidden arguments filled in."""
    needed = max((a.offset + a.size for a in kernel.args if not a.kind.startswith("hidden_")), default=0)
    if len(explicit) < needed:
        raise LaunchError(f"kernarg has {len(explicit)} bytes; the arguments of {kernel.name!r} take {needed}")
    # The segment is 16-byte aligned and LLVM loads wide, up to the next 16 bytes beyond the last argument.
    segment = bytearray(explicit.ljust(-(-kernel.kernarg_bytes // 16) * 16, b"\0"))
    for argument in kernel.args:
        if argument.kind in hidden:
            value = hidden[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = value
    return bytes(segment)


def _hidden_arguments(grid: Dim3, block: Dim3, lds: _Lds) -> dict[str, int]:
    """The hidden arguments that mean something here; the others (printf, heap, queues) stay 0."""
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


def _packet(kernel: KernelInfo, grid: Dim3, block: Dim3, lds: _Lds) -> bytes:
    """hsa_kernel_dispatch_packet_t (HSA Runtime Specification 1.2, section 2.6); the grid is in work-items there."""
    work_items = [blocks * threads for blocks, threads in zip(grid, block, strict=True)]
    return struct.pack(
        "<HH3HH3IIIQQQQ", 0, 3, *block, 0, *work_items, kernel.scratch_bytes, lds.total_bytes, 0, 0, 0, 0
    )
