"""`--gpu local`: the GPU that is there. Its launches are measured, and the model of time estimates the same launches.

Torch's events around a launch have its time. The first launch of each size is estimated, too: on copies of its tensors,
in the memory of the host. Launches of FlyDSL's kernels are compared; those of Triton and of torch are not seen here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from flydsl.arch.launch_limits import Dim3
from flydsl.arch.products import PRODUCTS, Product, plain_name, product_of
from flydsl.errors import ArchError, SimulatorError
from flydsl.gpu.launches import KernelTime, Summary
from flydsl.hsaco.kernels import KernelArg
from flydsl.runtime import hip
from flydsl.runtime.interface import NamedTensor
from flydsl.runtime.simulated import SimulatedDevice
from flydsl.simulator import Memory, Program, launch, tracing
from flydsl.simulator.checks import no_checks
from flydsl.simulator.memory.gaps import rows_of
from flydsl.sweeps.limits import main_stall

Key = tuple[bytes, str, Dim3, Dim3, int, bytes]
"""Code, kernel, grid, block, bytes of dynamic LDS, and arguments, in which tensors are numbered."""


class LocalGpu:
    """The launches on torch's GPU since `begin`."""

    def __init__(self) -> None:
        self.product = _product()
        self._times: dict[Key, KernelTime | str] = {}
        self._events: dict[Key, list[tuple[Any, Any]]] = {}
        self._programs: dict[bytes, Any] = {}

    def begin(self) -> None:
        hip.put_around(self._launch)

    def end(self) -> None:
        hip.put_around(None)

    def summary(self) -> Summary:
        """The kernels with their measured and modelled times. Waits for the GPU."""
        torch.cuda.synchronize()
        kernels, not_timed = [], Counter[str]()
        for key, time in self._times.items():
            times = [1000 * start.elapsed_time(end) for start, end in self._events.get(key, ())]
            if isinstance(time, str):
                not_timed[time] += len(times)
            elif times:
                kernels.append(replace(time, launches=len(times), measured_us=median(times)))
        kernels.sort(key=lambda time: -time.total_us)
        return Summary(self.product, tuple(kernels), 0, 0.0, dict(not_timed))

    def _launch(self, made: hip.HipLaunch, run: Callable[[], None]) -> None:
        """Make a launch between two events; estimate it before, if it is the first of its size."""
        loaded: Any = self._programs.get(made.code.hsaco)
        if loaded is None:
            loaded = self._programs[made.code.hsaco] = SimulatedDevice().load(made.code)
        kernarg = loaded.kernarg(made.kernel, made.params)
        pointers = _pointers(loaded.program.kernels[made.kernel].args, kernarg, made.tensors)
        sizes = _with(kernarg, {offset: place for offset, (_, _, place) in pointers.items()})
        key = made.code.hsaco, made.kernel, made.grid, made.block, made.dynamic_lds_bytes, sizes
        if key not in self._times:
            self._times[key] = self._estimated(made, loaded.program, kernarg, pointers)
        stream = torch.cuda.ExternalStream(made.stream) if made.stream else torch.cuda.current_stream()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(stream)
        run()
        end.record(stream)
        self._events.setdefault(key, []).append((start, end))

    def _estimated(
        self, made: hip.HipLaunch, program: Program, kernarg: bytes, pointers: Mapping[int, Pointer]
    ) -> KernelTime | str:
        """The time of a launch by the model, or why it has none."""
        memory = Memory()
        copies: dict[int, int] = {}
        for tensor, _, place in pointers.values():
            if place not in copies:
                copies[place] = _copied(tensor, memory)
        addresses = {offset: copies[place] + within for offset, (_, within, place) in pointers.items()}
        try:
            with no_checks(), tracing(gpu=self.product) as traced:
                launch(
                    program, made.kernel, grid=made.grid, block=made.block, kernarg=_with(kernarg, addresses),
                    memory=memory, dynamic_lds_bytes=made.dynamic_lds_bytes,
                )  # fmt: skip
        except (ArchError, SimulatorError) as reason:
            return f"{made.kernel} has no estimate: {reason.message}"
        (found,) = traced.launches
        return KernelTime(made.kernel, made.grid, made.block, found.trace.estimate, main_stall(found.trace))


Pointer = tuple[NamedTensor, int, int]
"""A tensor that an argument points into, how many bytes from its start, and its number among those of the call."""


def _pointers(args: Sequence[KernelArg], kernarg: bytes, tensors: Sequence[NamedTensor]) -> dict[int, Pointer]:
    """The arguments that are addresses of tensors, by offset."""
    found: dict[int, Pointer] = {}
    places = [(tensor.address, tensor.size_bytes) for tensor in tensors]
    for offset in (arg.offset for arg in args if arg.size == 8 and not arg.kind.startswith("hidden_")):
        value = int.from_bytes(kernarg[offset : offset + 8], "little")
        for number, (address, size_bytes) in enumerate(places):
            if address <= value < address + max(size_bytes, 1):
                found[offset] = tensors[number], value - address, number
                break
    return found


def _with(kernarg: bytes, values: Mapping[int, int]) -> bytes:
    """The arguments with other 64-bit numbers at some offsets."""
    changed = bytearray(kernarg)
    for offset, value in values.items():
        changed[offset : offset + 8] = value.to_bytes(8, "little")
    return bytes(changed)


def _copied(argument: NamedTensor, memory: Memory) -> int:
    """The simulated address of a copy of a tensor in host memory, with the gaps that its strides have."""
    tensor, element_bytes = argument.tensor.detach(), argument.tensor.element_size()
    host = tensor.as_strided((argument.size_bytes // element_bytes,), (1,), tensor.storage_offset()).cpu()
    memory.owners.append(host)
    return memory.map(
        host.data_ptr(),
        argument.size_bytes,
        name=argument.name,
        element_bytes=element_bytes,
        label=argument.label,
        writable=argument.writable,
        rows=rows_of(tensor.shape, tensor.stride(), element_bytes),
        offset_bytes=tensor.storage_offset() * element_bytes,
    )


def _product() -> Product:
    """The product that torch's GPU is, or the best known one of its architecture. ArchError for others."""
    names = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).gcnArchName.split(":")[0]
    for plain, product in PRODUCTS.items():
        if plain in plain_name(names[0]):
            return product
    return product_of(names[1])
