"""Errors that name what a posed GPU does not have, instead of torch's about a missing attribute of its C++."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.cuda.nccl
import torch.cuda.tunable
import torch.nested
import torch.nn.parallel.comm

from flydsl.gpu.devices import tensors_in
from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.memory import gpu_index
from flydsl.gpu.refusals import refusing
from flydsl.gpu.tensor import GpuTensor

_NO_LIBRARY = "torch's products run on the host, without hipBLAS"
_NO_DRIVER = "there is no driver to ask"
_NO_ALLOCATOR = "memory is the host's, which torch.cuda.memory_stats counts"
_NO_NCCL = 'torch.distributed with backend="gloo" takes these tensors'
_ONE_PROCESS = "torch.nn.parallel.DistributedDataParallel with gloo takes these tensors"
_EXTENSIONS = "flydsl.binary compiles kernels in HIP, and launches them with these tensors"
_COLLECTIVES = (
    "version", "unique_id", "init_rank", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
)  # fmt: skip
_OF_TUNING = (
    "enable", "is_enabled", "tuning_enable", "tuning_is_enabled", "record_untuned_enable", "set_filename",
    "set_max_tuning_duration", "set_max_tuning_iterations", "get_results", "get_validators", "write_file", "read_file",
    "tune_gemm_in_file",
)  # fmt: skip
_OF_THE_ALLOCATOR = (
    "MemPool", "use_mem_pool", "CUDAPluggableAllocator", "change_current_allocator", "caching_allocator_enable",
    "host_memory_stats", "host_memory_stats_as_nested_dict", "memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats",
)  # fmt: skip
_MAKING_OPERATORS = ("_create_jit_fn", "_create_multi_output_jit_fn")
"""Functions that torch's own tests call when they are imported: what they make is refused where it is called."""

_OF_DATA_PARALLEL = ("broadcast", "broadcast_coalesced", "reduce_add", "scatter", "gather")

_ABSENT: dict[ModuleType, dict[str, str]] = {
    torch.cuda: {
        "current_blas_handle": _NO_LIBRARY, "cudart": "there is no HIP runtime", "utilization": _NO_DRIVER,
        "temperature": _NO_DRIVER, "power_draw": _NO_DRIVER, "clock_rate": _NO_DRIVER, "memory_usage": _NO_DRIVER,
        "device_memory_used": _NO_DRIVER, "list_gpu_processes": _NO_DRIVER,
        "memory_snapshot": "torch.cuda.memory_stats has what is allocated",
        "caching_allocator_alloc": "torch.empty allocates", "caching_allocator_delete": "torch.empty allocates",
        **dict.fromkeys(_OF_THE_ALLOCATOR, _NO_ALLOCATOR),
        "set_sync_debug_mode": "the host waits for nothing",
        "get_gencode_flags": "code is compiled for the architecture in get_device_properties",
        "_compile_kernel": _EXTENSIONS,
    },
    torch.accelerator: {
        "Graph": "torch.cuda.graph captures", "get_device_capability": "it has the types that the host has",
    },
    torch.cuda.memory: {"_record_memory_history": _NO_ALLOCATOR, "_snapshot": _NO_ALLOCATOR},
    torch.cuda.tunable: dict.fromkeys(_OF_TUNING, _NO_LIBRARY),
    torch.cuda.nccl: dict.fromkeys(_COLLECTIVES, _NO_NCCL),
    torch.nn.parallel.comm: dict.fromkeys(_OF_DATA_PARALLEL, _ONE_PROCESS),
    torch.autograd.profiler: {"emit_nvtx": "torch.profiler.profile has the GPU's kernels and operators"},
}  # fmt: skip
"""Functions by module, each with what to do instead, or why there is no such thing."""


def refuse_absent(replaced: Replacements) -> None:
    """Let functions that a posed GPU does not have raise DeviceError."""
    for module, names in _ABSENT.items():
        for name, hint in names.items():
            if hasattr(module, name):
                replaced.replace(module, name, refusing(f"{module.__name__}.{name}", hint))
    for name in _MAKING_OPERATORS:
        refuse = refusing(f"an operator of torch.cuda.jiterator.{name}", _EXTENSIONS)
        replaced.replace(torch.cuda.jiterator, name, lambda *args, refuse=refuse, **options: refuse)
    plans = refusing("torch.backends.cuda.cufft_plan_cache", "torch's transforms run on the host, without plans")
    replaced.replace(torch.backends.cuda.cuFFTPlanCacheManager, "__getitem__", plans)  # of which all else asks


def without_extensions(replaced: Replacements) -> Callable[[Any], None]:
    """The change to `torch.utils.cpp_extension`: kernels in CUDA or HIP would be compiled by a compiler, for a GPU."""

    def change(module: Any) -> None:
        for name in ("load", "load_inline"):
            replaced.replace(module, name, _of_the_host(getattr(module, name), f"torch.utils.cpp_extension.{name}"))
        refusal = refusing("torch.utils.cpp_extension.CUDAExtension", _EXTENSIONS)
        replaced.replace(module, "CUDAExtension", refusal)

    return change


def _of_the_host(load: Callable[..., Any], name: str) -> Callable[..., Any]:
    refuse = refusing(f"{name} with CUDA sources", _EXTENSIONS)

    def loaded(*args: Any, **options: Any) -> Any:
        sources = options.get("sources", args[1] if len(args) > 1 else ())
        sources = [sources] if isinstance(sources, str) else sources
        if (
            options.get("with_cuda")
            or options.get("cuda_sources")
            or any(str(s).endswith((".cu", ".hip")) for s in sources)
        ):
            refuse()
        return load(*args, **options)

    return loaded


def without_default_type() -> dict[str, Callable[..., Any]]:
    """`torch.set_default_tensor_type`, which takes a type of C++'s own for the GPU."""
    set_type = torch.set_default_tensor_type

    def set_default(t: Any) -> None:
        name = str(getattr(t, "__name__", t))
        if hasattr(t, "on_host") or name.startswith("torch.cuda."):
            refusing(f"torch.set_default_tensor_type({name})", 'torch.set_default_device("cuda")')()
        set_type(t)

    return {"set_default_tensor_type": set_default}


def without_jagged() -> dict[str, Callable[..., Any]]:
    """Functions of torch.nested: tensors with rows of different lengths are C++'s own, of the host's memory alone."""
    return {name: _of_host_tensors(name, getattr(torch.nested, name)) for name in _OF_NESTED}


_OF_NESTED = ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select")


def _of_host_tensors(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    refuse = refusing(f"torch.nested.{name} of tensors on a GPU", "of the host's tensors there are: tensor.cpu()")

    def made(*args: Any, **options: Any) -> Any:
        device = options.get("device")
        asked = device is not None and gpu_index(device) is not None
        if asked or any(isinstance(tensor, GpuTensor) for tensor in tensors_in((*args, *options.values()))):
            refuse()
        return make(*args, **options)

    return made


def without_nccl(replaced: Replacements) -> Callable[[Any], None]:
    """The change to `torch.distributed.distributed_c10d`: groups of processes that NCCL would connect."""

    def change(module: Any) -> None:
        init, new = module.init_process_group, module.new_group
        refuse = refusing('torch.distributed with backend="nccl"', _NO_NCCL)

        def init_process_group(backend: Any = None, *args: Any, **options: Any) -> Any:
            if "nccl" in str(backend).lower():
                refuse()
            return init(backend, *args, **options)

        def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, **options: Any) -> Any:
            if "nccl" in str(backend).lower():
                refuse()
            return new(ranks, timeout, backend, **options)

        for place in (module, torch.distributed):
            replaced.replace(place, "init_process_group", init_process_group)
            replaced.replace(place, "new_group", new_group)

    return change


def without_sharding(replaced: Replacements) -> Callable[[Any], None]:
    """The change to `torch.distributed.fsdp`, which asks C++ for the device of parameters."""

    def change(module: Any) -> None:
        for name in ("fully_shard", "FullyShardedDataParallel"):
            replaced.replace(module, name, refusing(f"torch.distributed.fsdp.{name}", _ONE_PROCESS))

    return change
