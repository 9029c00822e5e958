"""`torch.compile` while a GPU poses: Dynamo traces the GPU's tensors, and Inductor writes Triton for the GPU.

Both are torch's own. This is what they lack in a build without CUDA: a device that torch's C++ knows, the allocations
in the code that Inductor writes, and what they ask torch.cuda when they are imported rather than when they are called.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.of_triton import chosen_by
from flydsl.gpu.streams import CLOCK
from flydsl.gpu.tensor import GpuTensor, on_gpu
from flydsl.gpu.traced_backward import with_traced


def begin(replaced: Replacements) -> None:
    """Give the code that Inductor writes what it asks torch's C++ for."""
    guards: Any = torch._C._dynamo.guards
    view = guards._reinterpret_tensor

    def empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(size, stride, dtype=dtype, device="cuda")

    def reinterpret_tensor(tensor: torch.Tensor, *place: Any) -> torch.Tensor:
        found = view(tensor, *place)
        return on_gpu(found, tensor.gpu_number) if isinstance(tensor, GpuTensor) else found

    replaced.replace(guards, "_empty_strided_cuda", empty_strided)
    replaced.replace(guards, "_reinterpret_tensor", reinterpret_tensor)
    for module in (torch.autograd, torch.autograd.graph):
        replaced.replace(module, "_engine_run_backward", with_traced(module._engine_run_backward))
    replaced.replace(torch._C, "_cuda_getCurrentRawStream", lambda device: CLOCK.of_gpu(device).cuda_stream)
    wrapper = torch._TorchCompileInductorWrapper
    replaced.replace(wrapper, "apply_options", _without_graphs(wrapper.apply_options))
    _let_cpp_know_cuda(replaced)
    _forget(replaced)
    replaced.at_the_end(functools.partial(_forget, replaced))


def changes(replaced: Replacements) -> dict[str, Callable[[ModuleType], None]]:
    """The changes to the modules of Dynamo and Inductor, and to those that trace for them."""
    return {name: functools.partial(change, replaced) for name, change in _CHANGES.items()}


# --- tracing


def _make_no_real_tensor(replaced: Replacements, module: Any) -> None:
    """FakeTensorMode would otherwise make one to wake the GPU up."""
    replaced.replace(module.FakeTensorMode, "avoid_device_init", property(lambda mode: True))


def _trace_operators(replaced: Replacements, module: Any) -> None:
    """Operators of a GpuTensor that is no input, but a constant, are part of a trace. Or their results were constants.

    `make_fx` and `torch.func.linearize` trace so.
    """
    replaced.replace(module, "HANDLED_TYPES", (*module.HANDLED_TYPES, GpuTensor))


def _trace_tensors(replaced: Replacements, module: Any) -> None:
    """A GpuTensor is a tensor like any other for Dynamo, not one with a class that it has to trace."""
    wrap, class_of = module.VariableBuilder._wrap, module.infer_subclass_type
    replaced.replace(
        module.VariableBuilder,
        "_wrap",
        lambda self, value: _wrapped(module, self, value) if type(value) is GpuTensor else wrap(self, value),
    )
    replaced.replace(module, "infer_subclass_type", lambda value: None if type(value) is GpuTensor else class_of(value))


def _wrapped(module: Any, builder: Any, value: GpuTensor) -> Any:
    """Dynamo's variable for a tensor of a GPU. What is compiled holds for the number of its GPU."""
    from torch._dynamo.guards import GuardBuilder, install_guard

    number = module.AttrSource(builder.get_source(), "gpu_number")
    install_guard(number.make_guard(GuardBuilder.EQUALS_MATCH))
    return builder.wrap_tensor(value)


def _show_devices(replaced: Replacements, module: Any) -> None:
    """Dynamo's view of torch.cuda, and of each GPU, is of the posed ones."""
    cuda, worker = module.CudaInterface, module.CudaInterface.Worker
    for name in _ASKED:
        replaced.replace(cuda, name, staticmethod(getattr(torch.cuda, name)))
    for name in ("Event", "Stream"):
        replaced.replace(cuda, name, getattr(torch.cuda, name))
    for name in ("exchange_device", "maybe_exchange_device"):
        replaced.replace(cuda, name, staticmethod(torch.cuda._exchange_device))
    for name in ("current_device", "get_device_properties"):
        replaced.replace(worker, name, staticmethod(getattr(torch.cuda, name)))
    replaced.replace(cuda, "get_raw_stream", staticmethod(torch._C._cuda_getCurrentRawStream))
    module.get_registered_device_interfaces()
    names = {f"cuda:{index}" for index in range(torch.cuda.device_count())} - {*module.device_interfaces}
    for name in names:
        module.device_interfaces[name] = cuda
        replaced.at_the_end(functools.partial(module.device_interfaces.pop, name))


_ASKED = (
    "current_device", "set_device", "device_count", "stream", "current_stream", "set_stream", "synchronize",
    "get_device_properties", "memory_allocated", "is_bf16_supported",
)  # fmt: skip
"""The names of torch.cuda that Dynamo's view of it keeps."""


# --- Inductor's code: how it is compiled, launched and timed


def _compile_here(replaced: Replacements, module: Any) -> None:
    """In other processes no GPU is posed."""
    replaced.replace(module, "get_compile_threads", lambda: 1)


def _keep_driver(replaced: Replacements, module: Any) -> None:
    """Triton's driver is the simulator's already; its own would look for HIP."""
    replaced.replace(module, "set_driver_to_gpu", lambda: None)


def _launch_by_triton(replaced: Replacements, module: Any) -> None:
    """Inductor's own launcher is of torch's C++. Triton's is the simulator's."""
    static = staticmethod(lambda *about: None)
    replaced.replace(module.StaticTritonCompileResult, "can_statically_launch", static)


def _time_by_clock(replaced: Replacements, module: Any) -> None:
    """Configurations are compared by the GPU's clock, which does not vary."""

    def benchmark_gpu(self: Any, _callable: Callable[[], Any], *args: Any, **options: Any) -> float:
        return float(chosen_by(_callable))

    for benchmarker in (module.TritonBenchmarker, module.InductorBenchmarker):
        replaced.replace(benchmarker, "benchmark_gpu", benchmark_gpu)


def _compute_attention(replaced: Replacements, module: Any) -> None:
    """Flexible attention outside of `torch.compile`: as its definition says, by operators on the whole matrix."""
    for operator, dense in (
        (module.flex_attention, module.sdpa_dense),
        (module.flex_attention_backward, module.sdpa_dense_backward),
    ):
        operator.python_key_table[GpuTensor] = dense
        replaced.at_the_end(functools.partial(operator.python_key_table.pop, GpuTensor))


_CHANGES: dict[str, Callable[[Replacements, Any], None]] = {
    "torch._higher_order_ops.flex_attention": _compute_attention,
    "torch._subclasses.fake_tensor": _make_no_real_tensor,
    "torch.fx.experimental.proxy_tensor": _trace_operators,
    "torch._dynamo.variables.builder": _trace_tensors,
    "torch._dynamo.device_interface": _show_devices,
    "torch._inductor.async_compile": _compile_here,
    "torch._inductor.runtime.benchmarking": _time_by_clock,
    "torch._inductor.runtime.triton_helpers": _keep_driver,
    "torch._inductor.runtime.triton_heuristics": _launch_by_triton,
}


# --- torch's C++, and what is kept


def _let_cpp_know_cuda(replaced: Replacements) -> None:
    """Let tensors without memory be on "cuda" in torch's C++, which asks a guard of the device to select the device.

    c10::impl::device_guard_impl_registry has a guard for each kind of device, by its number. A build without CUDA has
    none for it, and indexing such a tensor raises an error; the guard of the host does nothing, as is right for a GPU
    in host memory. `torch._C._ensureCUDADeviceGuardSet` is for builds with CUDA, on machines without a GPU.
    """
    name = "libc10.dylib" if sys.platform == "darwin" else "libc10.so"
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
    guards = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    before = guards[1]
    if before is None:
        guards[1] = guards[0]
    else:
        torch._C._ensureCUDADeviceGuardSet()
    replaced.at_the_end(lambda: guards.__setitem__(1, before))


def _without_graphs(apply: Callable[..., None]) -> Callable[..., None]:
    """The choice of Inductor's options, without graphs: launches take the same time here whether they are captured."""

    def apply_options(self: Any, options: dict[str, Any] | None) -> None:
        apply(self, options)
        self.config.pop("triton.cudagraphs", None)

    return apply_options


_CACHED = type(functools.cache(lambda: None))


def _forget(replaced: Replacements) -> None:
    """Clear what Dynamo and Inductor have compiled, and what they keep of the device.

    It is done with torch as it was: with a GPU, Dynamo would look for CUDA's graphs.
    """
    if "torch._dynamo" not in sys.modules:
        return
    with replaced.suspended():
        torch._dynamo.reset()
    for name in _ASK_THE_DEVICE:
        if name in sys.modules:
            for cached in _cached_in(sys.modules[name]):
                cached.cache_clear()


def _cached_in(module: ModuleType) -> Iterator[Any]:
    """The functions of a module and its classes that keep their results. gc has none of those that are frozen."""
    for place in (module, *(value for value in vars(module).values() if isinstance(value, type))):
        for value in vars(place).values():
            function = getattr(value, "__func__", value)  # of a static method
            if type(function) is _CACHED and function.__module__ == module.__name__:  # others it may have imported
                yield function


_ASK_THE_DEVICE = (
    "torch._dynamo.debug_utils", "torch._dynamo.trace_rules", "torch._dynamo.variables.torch",
    "torch._inductor.codecache", "torch._inductor.runtime.hints", "torch._inductor.utils", "torch.utils._triton",
)  # fmt: skip
"""Modules that keep functions of torch.cuda, or its answers."""
