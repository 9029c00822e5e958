"""The part of a launch that all launches of a kernel with the same sizes share, whatever their arguments are.

A program launches the same kernel thousands of times: what is here is made by the first of these launches.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import LaunchError
from flydsl.hsaco import KernelInfo
from flydsl.hsaco.data import DataSegment
from flydsl.simulator.decoding.program import CODE_BASE, INSTRUCTION_BYTES, Program
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SCRATCH_RESOURCE, SHARED_APERTURE, Memory
from flydsl.simulator.modes import FloatMode

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
class LdsSize:
    """LDS of a workgroup: what the kernel declares and what the launch adds."""

    static_bytes: int
    dynamic_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.static_bytes + self.dynamic_bytes


class PreparedKernel:
    """A kernel with a grid, a block and LDS.

    memory: of a launch. All launches must have mapped as many buffers, so that what the kernel finds besides them has
    the same addresses. symbols: the addresses of the module's names. null_hint: see `Memory`. sizes: equal to that
    of launches that share this alone. buffers: what the kernel finds besides its arguments, by slot.
    """

    def __init__(
        self, program: Program, kernel: KernelInfo, grid: Dim3, block: Dim3, lds: LdsSize, memory: Memory
    ) -> None:
        self.program, self.grid, self.block = program, grid, block
        self.kernel, self.lanes = kernel, kernel.wave_size
        self.lds_bytes = lds.total_bytes
        self.scratch_bytes = kernel.scratch_bytes + (_DYNAMIC_STACK_BYTES if kernel.uses_dynamic_stack else 0)
        self.cluster = kernel.cluster or (1, 1, 1)
        self.vgprs, self.agprs = max(kernel.vgprs, 1), kernel.agprs  # v0 is initialized in any case
        self.entry = program.labels[kernel.name]
        self.mode = FloatMode.of(kernel.descriptor)
        self.null_hint = _null_hint(kernel)
        self.sizes = object()
        around = memory.with_buffers({})
        self.symbols = _map_symbols(program, around)
        packet = _packet(kernel, grid, block, lds)
        packet_address = around.map_constant(packet, name="dispatch packet", label="hsa_kernel_dispatch_packet_t")
        self.buffers = {slot: b for slot, b in around.in_slots.items() if slot not in memory.in_slots}
        self.user_values = {
            "dispatch_ptr": halves(packet_address),
            "queue_ptr": (0, 0),
            "dispatch_id": (0, 0),
            "flat_scratch_init": (0, 0),
            "private_segment_buffer": SCRATCH_RESOURCE,
            "private_segment_size": (kernel.scratch_bytes,),
        }
        self._argument_bytes = max(
            (a.offset + a.size for a in kernel.args if not a.kind.startswith("hidden_")), default=0
        )
        # The segment is 16-byte aligned and LLVM loads wide, up to the next 16 bytes beyond the last argument.
        self._kernarg_bytes = -(-kernel.kernarg_bytes // 16) * 16
        self._hidden = _hidden_arguments(kernel, grid, block, lds)

    def complete_kernarg(self, explicit: bytes) -> bytes:
        """The kernarg segment with the hidden arguments filled in."""
        if len(explicit) < self._argument_bytes:
            raise LaunchError(
                f"kernarg has {len(explicit)} bytes; the arguments of {self.kernel.name!r} take {self._argument_bytes}"
            )
        segment = bytearray(explicit.ljust(self._kernarg_bytes, b"\0"))
        for offset, value in self._hidden:
            segment[offset : offset + len(value)] = value
        return bytes(segment)


def halves(value: int) -> tuple[int, int]:
    """The two dwords of an address."""
    return value & 0xFFFF_FFFF, value >> 32


def _map_symbols(program: Program, memory: Memory) -> dict[str, int]:
    """The address of every symbol, and, under `name@got`, of its entry in the global offset table."""
    symbols = {name: CODE_BASE + INSTRUCTION_BYTES * index for name, index in program.labels.items()}
    if program.variables.labels:
        label, storage = "global variables of the code object", program.variable_storage
        symbols |= program.variables.addresses(memory.map_array(storage, name="variables", label=label))
    if program.constants.labels:
        label, content = "constant data of the code object", bytearray(program.constants.content)
        constants = memory.map_constant(content, name="constants", label=label)
        symbols |= program.constants.addresses(constants)
        _relocate(program.constants, constants, symbols, memory)
    entries = b"".join(struct.pack("<Q", address) for address in symbols.values())
    table = memory.map_constant(entries, name="global offset table", label=f"{len(symbols)} symbols")
    return symbols | {f"{name}@got": table + 8 * i for i, name in enumerate(symbols)}


def _relocate(constants: DataSegment, base: int, symbols: Mapping[str, int], memory: Memory) -> None:
    """Write the addresses that constants hold."""
    buffer = memory.buffer_at(base)
    assert buffer is not None
    for relocation in constants.relocations:
        if relocation.symbol not in symbols:
            raise LaunchError(f"a constant holds the address of {relocation.symbol}, which the module does not define")
        address = (symbols[relocation.symbol] + relocation.addend) & 0xFFFF_FFFF_FFFF_FFFF
        where = slice(relocation.offset, relocation.offset + 8)
        buffer.data[where] = np.frombuffer(struct.pack("<Q", address), np.uint8)


def _hidden_arguments(kernel: KernelInfo, grid: Dim3, block: Dim3, lds: LdsSize) -> list[tuple[int, bytes]]:
    """The hidden arguments that are given, as runs of bytes at their offsets; the others (heap, queues) stay 0."""
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
    runs: list[tuple[int, bytes]] = []
    for argument in sorted((a for a in kernel.args if a.kind in hidden), key=lambda a: a.offset):
        value = (hidden[argument.kind] & ((1 << 8 * argument.size) - 1)).to_bytes(argument.size, "little")
        if runs and runs[-1][0] + len(runs[-1][1]) == argument.offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + value)
        else:
            runs.append((argument.offset, value))
    return runs


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
