"""The simulator as a device: it runs the machine code on CPU tensors, in their own memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.codegen import CodeObject
from flydsl.runtime.host_tensors import host_tensor_memory
from flydsl.runtime.interface import Device, LoadedCode, NamedTensor, PrintBuffer, raw_stream, reach_bytes
from flydsl.simulator import Memory, Program, launch, prepare
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.memory.allocations import allocations
from flydsl.simulator.memory.gaps import rows_of

allocations.find = host_tensor_memory


class SimulatedDevice(Device):
    """A simulated GPU. A launch is complete when the call returns."""

    name = "simulator"

    def session(self) -> Memory:
        """The address space of one call: its tensors, and memory that programs know by its address."""
        return allocations.memory()

    def address(self, name: str, tensor: Any, session: Memory) -> int:
        argument = NamedTensor(name, tensor)
        session.owners.append(tensor)
        shape, strides, element_bytes = tensor.shape, tensor.stride(), tensor.element_size()  # each asked once
        return session.map(
            argument.address,
            reach_bytes(shape, strides, element_bytes),
            name=name,
            element_bytes=element_bytes,
            label=argument.label,
            writable=argument.writable,
            rows=rows_of(shape, strides, element_bytes),
            offset_bytes=tensor.storage_offset() * element_bytes,
        )

    def stream_handle(self, stream: Any) -> int:
        return raw_stream(stream) or 0

    def load(self, code: CodeObject) -> LoadedCode:
        return _LoadedProgram(code)

    def print_buffer(self, size_bytes: int) -> PrintBuffer:
        return _HostBuffer(size_bytes)


class _HostBuffer(PrintBuffer):
    def __init__(self, size_bytes: int) -> None:
        self._bytes = np.zeros(size_bytes, np.uint8)

    def address(self, session: Memory) -> int:
        return session.map_array(self._bytes.view(np.uint32), name="what printf prints")

    def read(self, start: int, size_bytes: int, stream: int) -> bytes:
        return self._bytes[start : start + size_bytes].tobytes()

    def clear(self, header: bytes) -> None:
        self._bytes[:] = 0
        self._bytes[: len(header)] = np.frombuffer(header, np.uint8)


class _LoadedProgram(LoadedCode):
    def __init__(self, code: CodeObject) -> None:
        self.program = Program.load(code.hsaco, code.listing)
        self._explicit = {
            name: [(a.offset, a.size) for a in kernel.args if not a.kind.startswith("hidden_")]
            for name, kernel in self.program.kernels.items()
        }

    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Memory
    ) -> None:
        session.stream = stream
        self._start(launch, kernel, grid, block, dynamic_lds_bytes, params, session)

    def _start(
        self, start: Callable[..., Any], kernel: str, grid: Dim3, block: Dim3, lds: int, params: Any, session: Memory
    ) -> Any:
        """Call `simulator.launch` or `prepare` with what a launcher gives."""
        kernarg = self.kernarg(kernel, params)
        return start(
            self.program, kernel, grid=grid, block=block, kernarg=kernarg, memory=session, dynamic_lds_bytes=lds
        )

    def kernarg(self, kernel: str, params: Any) -> bytes:
        """The kernel argument segment: each explicit argument at its offset."""
        segment = (ctypes.c_char * self.program.kernels[kernel].kernarg_bytes)()
        start, explicit = ctypes.addressof(segment), self._explicit[kernel]
        for (offset, size), param in zip(explicit, params[: len(explicit)], strict=True):
            ctypes.memmove(start + offset, param, size)
        return segment.raw


class Recording(Memory):
    """The address space of a call, and the launches that it makes. after_kernel: called when a kernel has ended."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.in_place, memory.find, memory.others)
        self.launches: list[Dispatch] = []
        self.after_kernel: Callable[[], None] | None = None


class RecordingDevice(SimulatedDevice):
    """Prepares launches and runs none: `session.launches` holds those of a call, in order."""

    name = "simulator, for single steps"

    def session(self) -> Recording:
        return Recording(allocations.memory())

    def load(self, code: CodeObject) -> LoadedCode:
        return _RecordedProgram(code)

    def after_launch(self, flush: Callable[[], None], session: Recording) -> None:
        session.after_kernel = flush


@cache
def recording_device() -> RecordingDevice:
    """The device that all recorded calls share, so that a launcher is bound to it once."""
    return RecordingDevice()


class _RecordedProgram(_LoadedProgram):
    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Any
    ) -> None:
        session.launches.append(self._start(prepare, kernel, grid, block, dynamic_lds_bytes, params, session))
