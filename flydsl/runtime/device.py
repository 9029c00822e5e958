"""The device that a launch goes to, and the architecture that it is compiled for.

The device follows the tensors: CPU tensors run on the simulator, HIP tensors on the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from flydsl import env
from flydsl.arch import DEFAULT_ARCH
from flydsl.arch.torch_devices import get_gcn_arch as get_gcn_arch
from flydsl.arch.torch_devices import is_gfx120x as is_gfx120x
from flydsl.arch.torch_devices import is_gfx120x_arch as is_gfx120x_arch
from flydsl.arch.torch_devices import require_gfx120x as require_gfx120x
from flydsl.runtime.device_memory import DeviceMemory
from flydsl.runtime.hip import HipDevice, HipMemory
from flydsl.runtime.interface import Device
from flydsl.runtime.rocm import (
    SMEM_CAPACITY_MAP,
    arch_from_environment,
    bf16_global_atomics_arch_description,
    check_smem_capacity,
    get_rocm_arch,
    get_rocm_device_count,
    get_warp_size,
    is_rdna_arch,
    supports_bf16_global_atomics,
)
from flydsl.system.garbage import collection_paused
from flydsl.system.interrupts import holding

__all__ = [
    "SMEM_CAPACITY_MAP",
    "bf16_global_atomics_arch_description",
    "check_smem_capacity",
    "current_device",
    "device_at",
    "device_memory",
    "get_rocm_arch",
    "get_rocm_device_count",
    "get_warp_size",
    "is_rdna_arch",
    "preload",
    "supports_bf16_global_atomics",
    "target_arch",
    "use_device",
]

_override: ContextVar[Device | None] = ContextVar("flydsl_device", default=None)


@contextmanager
def use_device(device: Device) -> Iterator[Device]:
    """Send the launches inside the `with` block to the given device."""
    with holding(_override, device):
        yield device


_is_posing = False


def pose(is_posing: bool) -> None:
    """True if "cuda" is the simulator's: while `flydsl.gpu` lets a GPU pose that is not there."""
    global _is_posing
    _is_posing = is_posing


def is_posing() -> bool:
    """True while "cuda" is the simulator's."""
    return _is_posing


def current_device(place: str) -> Device:
    """The device for tensors at a place as torch writes it: "cpu", or "cuda:0" (its name for the first HIP device)."""
    override = _override.get()
    if override is not None:
        return override
    return device_at("cpu" if _is_posing else place)


@collection_paused()
def preload() -> None:
    """Import what a launch on the simulator needs, which takes some 100 ms: while LLVM compiles, if it does."""
    import flydsl.runtime.simulated

    if env.simulator_backend() == "native":
        import flydsl.simulator.native.machine  # noqa: F401


@cache
def device_at(place: str) -> Device:
    """The device itself; see `current_device`. For `use_device`, where a launch has addresses and no tensors."""
    kind, _, index = place.partition(":")
    if kind == "cpu":
        preload()
        from flydsl.runtime.simulated import SimulatedDevice

        return SimulatedDevice()
    return HipDevice(int(index or 0))


def device_memory(device: Any) -> DeviceMemory:
    """The memory of a device, by its address and under HIP's names: of a `torch.device`, or its name."""
    kind, _, index = str(device).partition(":")
    if kind == "cpu":
        from flydsl.runtime.shared_memory import SharedMemory

        return SharedMemory()
    return HipMemory(int(index or 0))


# --- the target architecture -----------------------------------------------------------------------------------------


def target_arch(place: str) -> str:
    """The architecture to compile for: `ARCH` if set, else that of the tensors' device ("cpu", "cuda:0").

    The simulator is a gfx942 unless `FLYDSL_GPU_ARCH` or `HSA_OVERRIDE_GFX_VERSION` says otherwise.
    """
    explicit = env.text("ARCH")
    if explicit:
        return explicit
    is_hip = isinstance(_override.get(), HipDevice) or (place.startswith("cuda") and not _is_posing)
    return get_rocm_arch() if is_hip else arch_from_environment() or DEFAULT_ARCH.name
