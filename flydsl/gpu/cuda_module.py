"""Stand-ins for torch.cuda's functions while a GPU poses. `REPLACED` names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import torch

from flydsl.arch import get_arch
from flydsl.arch.products import Product
from flydsl.gpu.graphs import CUDAGraph, graph
from flydsl.gpu.memory import MEMORY, gpu_index, stats
from flydsl.gpu.streams import CLOCK, Event, ExternalStream, Stream
from flydsl.gpu.tensor import GpuTensor


class _CudaDeviceProperties(SimpleNamespace):
    """`torch.cuda.get_device_properties`, under the name that torch prints."""


class Posed:
    """The answers of one product, `count` times in the machine."""

    def __init__(self, product: Product, count: int) -> None:
        self.product, self.count = product, count

    def replaced(self) -> dict[str, Any]:
        """The names in torch.cuda that are replaced, with what stands there."""
        own = [name for name in dir(self) if not name.startswith("_") and name not in ("replaced", "product", "count")]
        return {name: getattr(self, name) for name in own} | legacy_types() | {
            "nvtx": _Nvtx(), "Stream": Stream, "Event": Event, "ExternalStream": ExternalStream,
            "CUDAGraph": CUDAGraph, "graph": graph,
            "is_current_stream_capturing": lambda: MEMORY.captured is not None,
            "graph_pool_handle": lambda: (0, 0), "_lazy_init": lambda: None, "init": lambda: None,
            "is_initialized": lambda: True, "is_bf16_supported": lambda including_emulation=True: True,
            "current_device": lambda: MEMORY.current, "get_arch_list": lambda: [self.product.arch],
            "manual_seed": _seed, "manual_seed_all": _seed, "seed": lambda: None, "seed_all": lambda: None,
            "default_generators": (torch.default_generator,) * self.count,
            "get_sync_debug_mode": lambda: 0, "get_allocator_backend": lambda: "native", "_sleep": self._spin,
            "initial_seed": torch.initial_seed, "ipc_collect": lambda: None,
            "_exchange_device": self._exchange, "_maybe_exchange_device": self._exchange,
            "get_rng_state": lambda device="cuda": torch.get_rng_state(),
            "set_rng_state": lambda state, device="cuda": torch.set_rng_state(state),
        }  # fmt: skip

    # --- devices

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return self.count

    def set_device(self, device: Any) -> None:
        MEMORY.current = self._index(device)

    def _exchange(self, device: int) -> int:
        before, MEMORY.current = MEMORY.current, device if device >= 0 else MEMORY.current
        return before

    def get_device_name(self, device: Any = None) -> str:
        self._index(device)
        return self.product.name

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        self._index(device)
        number = self.product.arch.removeprefix("gfx")
        return int(number[:-2]), int(number[-2], 16)

    def get_device_properties(self, device: Any = None) -> SimpleNamespace:
        index = self._index(device)
        product, arch = self.product, get_arch(self.product.arch)
        major, minor = self.get_device_capability()
        return _CudaDeviceProperties(
            name=product.name, major=major, minor=minor, gcnArchName=product.arch, is_multi_gpu_board=0,
            is_integrated=0, multi_processor_count=product.multiprocessors, warp_size=arch.wave_size,
            total_memory=product.memory_gib << 30, L2_cache_size=product.l2_mib << 20,
            shared_memory_per_block=arch.lds_bytes_per_workgroup,
            shared_memory_per_multiprocessor=arch.lds_pool_bytes,
            max_threads_per_multi_processor=arch.max_waves_per_simd * arch.lds_simds * arch.wave_size,
            regs_per_multiprocessor=arch.compute_unit_registers,
            clock_rate=product.clock_mhz * 1000, max_threads_per_block=1024,
            pci_domain_id=0, pci_bus_id=index, pci_device_id=0, uuid=UUID(int=index),
        )  # fmt: skip

    def _index(self, device: Any) -> int:
        index = gpu_index(device)
        if index is None:
            raise ValueError(f"Expected a cuda device, but got: {device}")
        return index

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        return True

    # --- time

    def synchronize(self, device: Any = None) -> None:
        CLOCK.synchronize(None if device is None else self._index(device))

    def _spin(self, cycles: int) -> None:
        CLOCK.advance(cycles / self.product.clock_mhz, "sleep")

    def current_stream(self, device: Any = None) -> Stream:
        return CLOCK.of_gpu(self._index(device))

    def default_stream(self, device: Any = None) -> Stream:
        return CLOCK.default_of(self._index(device))

    def set_stream(self, stream: Stream) -> None:
        CLOCK.current = stream

    def get_stream_from_external(self, data_ptr: int, device: Any = None) -> ExternalStream:
        return ExternalStream(data_ptr, device)

    @contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        with stream or CLOCK.current:
            yield

    # --- memory

    def memory_allocated(self, device: Any = None) -> int:
        return MEMORY.allocated[self._index(device)]

    def max_memory_allocated(self, device: Any = None) -> int:
        return MEMORY.peak[self._index(device)]

    memory_reserved, max_memory_reserved = memory_allocated, max_memory_allocated

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        return stats(self._index(device))

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        MEMORY.capacity_bytes = int(fraction * (self.product.memory_gib << 30))

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        index = self._index(device)
        MEMORY.peak[index] = MEMORY.allocated[index]

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        return MEMORY.capacity_bytes / (self.product.memory_gib << 30)

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        pass  # none is accumulated

    reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        index = self._index(device)
        return MEMORY.capacity_bytes - MEMORY.allocated[index], MEMORY.capacity_bytes

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.memory_stats(device).items())

    def empty_cache(self) -> None:
        pass


class _LegacyType(type):
    """The type of `torch.cuda.FloatTensor` and its like: of elements, called for a tensor. on_host: torch's own."""

    on_host: Any

    def __call__(cls, *args: Any) -> torch.Tensor:
        return cls.on_host(*args).cuda()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, GpuTensor) and instance.dtype == cls.on_host.dtype


def legacy_types() -> dict[str, Any]:
    """torch.cuda.FloatTensor and those like it."""
    kinds = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
    names = [f"{kind}Tensor" for kind in kinds]
    return {name: _LegacyType(name, (), {"on_host": getattr(torch, name)}) for name in names}


class _Nvtx(SimpleNamespace):
    """`torch.cuda.nvtx`: marks for a profiler, of which there is none."""

    def __init__(self) -> None:
        def mark(*text: Any) -> int:
            return 0

        super().__init__(mark=mark, range_push=mark, range_pop=mark, range_start=mark, range_end=mark, range=_range)


@contextmanager
def _range(*text: Any) -> Iterator[None]:
    yield


def _seed(seed: int) -> None:
    """Seed the numbers of a GPU, which are the host's: torch.manual_seed has done so, or this does."""
    torch.default_generator.manual_seed(int(seed))
