"""The compilation target, under FlyDSL's names. The pipeline is in `flydsl.compiler.stages`."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.compiler.backends.rocm import RocmBackend
from flydsl.errors import ArgumentError
from flydsl.runtime.device import target_arch

__all__ = [
    "BaseBackend",
    "GPUTarget",
    "RocmBackend",
    "compile_backend_name",
    "get_backend",
    "register_backend",
]

BaseBackend = RocmBackend


@dataclass(frozen=True)
class GPUTarget:
    """A compilation target. arch: such as gfx942. warp_size: threads of a wave."""

    backend: str
    arch: str
    warp_size: int


def compile_backend_name() -> str:
    """The name of the backend that launches are compiled by: rocm."""
    return RocmBackend.name


def get_backend(name: str | None = None, *, arch: str = "") -> RocmBackend:
    """The backend of a name, for an architecture; by default for the one that CPU tensors are compiled for."""
    found = _BACKENDS.get(name or RocmBackend.name)
    if found is None:
        raise ArgumentError(f"there is no backend {name!r}", hint=f"there is {', '.join(_BACKENDS)}")
    return found(arch or target_arch("cpu"))


def register_backend(name: str, backend: type[RocmBackend], *, force: bool = False) -> None:
    """Register a backend under a name, for `get_backend`: a class that says which stages it has.

    Launches are compiled by rocm's stages whatever is registered. force: replace the one of that name.
    """
    if not (isinstance(backend, type) and issubclass(backend, RocmBackend)):
        raise ArgumentError(f"register_backend({name!r}, {backend!r}): a subclass of BaseBackend")
    if name in _BACKENDS and not force:
        raise ArgumentError(f"there is a backend {name!r} already", hint="force=True replaces it")
    _BACKENDS[name] = backend


_BACKENDS: dict[str, type[RocmBackend]] = {RocmBackend.name: RocmBackend}
