"""The compilation target, under FlyDSL's names. The pipeline is in `flydsl.compiler.stages`."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.compiler.backends.rocm import RocmBackend
from flydsl.errors import ArgumentError
from flydsl.runtime.device import target_arch

__all__ = ["BaseBackend", "GPUTarget", "RocmBackend", "compile_backend_name", "get_backend"]

BaseBackend = RocmBackend


@dataclass(frozen=True)
class GPUTarget:
    """A compilation target. arch: such as gfx942. warp_size: threads of a wave."""

    backend: str
    arch: str
    warp_size: int


def compile_backend_name() -> str:
    """The name of the only backend: rocm."""
    return RocmBackend.name


def get_backend(name: str | None = None, *, arch: str = "") -> RocmBackend:
    """The backend of a name, for an architecture; by default for the one that CPU tensors are compiled for."""
    if name not in (None, RocmBackend.name):
        raise ArgumentError(f"there is no backend {name!r}", hint="the one there is: rocm")
    return RocmBackend(arch or target_arch("cpu"))
