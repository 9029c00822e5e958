"""The simulator as a device: it runs the machine code on CPU tensors, in their own memory."""

from __future__ import annotations

import ctypes
from typing import Any

from flydsl.arch import GFX942
from flydsl.codegen import CodeObject
from flydsl.errors import ArchError
from flydsl.runtime.device import Device, Dim3, LoadedCode, TensorArgument, raw_stream
from flydsl.simulator import Memory, Program, launch


class SimulatedDevice(Device):
    """A simulated GPU. A launch is complete when the call returns."""

    name = "simulator"

    def session(self) -> Memory:
        """Every call has its own address space with nothing in it but its tensors."""
        return Memory()

    def address(self, argument: TensorArgument, session: Memory) -> int:
        tensor = argument.tensor
        return session.map(
            tensor.data_ptr(),
            argument.size_bytes,
            name=argument.name,
            element_bytes=tensor.element_size(),
            label=argument.label,
        )

    def stream_handle(self, stream: Any) -> int:
        return raw_stream(stream) or 0

    def load(self, code: CodeObject) -> LoadedCode:
        if code.arch != GFX942:
            raise ArchError(
                f"the simulator runs {GFX942.name}, and this was compiled for {code.arch.name}",
                hint="look at it with .lower(...).artifact; to run it, use HIP tensors on such a GPU",
            )
        return _LoadedProgram(code)


class _LoadedProgram(LoadedCode):
    def __init__(self, code: CodeObject) -> None:
        self._program = Program.load(code.hsaco, code.listing)

    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Memory
    ) -> None:
        launch(
            self._program,
            kernel,
            grid=grid,
            block=block,
            kernarg=self._kernarg(kernel, params),
            memory=session,
            dynamic_lds_bytes=dynamic_lds_bytes,
        )

    def _kernarg(self, kernel: str, params: Any) -> bytes:
        """The kernel argument segment: each explicit argument at its offset."""
        info = self._program.kernels[kernel]
        segment = bytearray(info.kernarg_bytes)
        explicit = [argument for argument in info.args if not argument.kind.startswith("hidden_")]
        for i, argument in enumerate(explicit):
            segment[argument.offset : argument.offset + argument.size] = ctypes.string_at(params[i], argument.size)
        return bytes(segment)
