"""The compiler's backends, under FlyDSL's names. There is one, `rocm`; a program may register others.

`FLYDSL_COMPILE_BACKEND` names the one that launches are compiled by. Its `pipeline_fragments` says which stages run:
one derived from RocmBackend may leave stages out, or put MLIR's own passes between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flydsl import env
from flydsl.arch import Arch
from flydsl.compiler.backends.base import BaseBackend, GPUTarget
from flydsl.compiler.backends.rocm import RocmBackend
from flydsl.compiler.stages import StageSpec, stage_of, stages
from flydsl.errors import ArgumentError
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.tracing.emit import target_name

__all__ = [
    "BaseBackend", "GPUTarget", "RocmBackend", "compile_backend_name", "current_target", "get_backend",
    "register_backend",
]  # fmt: skip


def compile_backend_name() -> str:
    """The name of the backend that launches are compiled by: `FLYDSL_COMPILE_BACKEND`, or rocm."""
    return env.text("FLYDSL_COMPILE_BACKEND", RocmBackend.name).lower()


def get_backend(name: str | None = None, *, arch: str = "") -> BaseBackend:
    """The backend of a name, for an architecture; by default for the one that CPU tensors are compiled for."""
    found = (name or compile_backend_name()).lower()
    return _make_backend(found, arch or _class_of(found).detect_target().arch)


def current_target() -> GPUTarget:
    """The target that the code of this place is compiled for: in a kernel or launcher its own, else that of the CPU's
    tensors."""
    return get_backend(arch=target_name() or "").target


def register_backend(name: str, backend_cls: type[BaseBackend], *, force: bool = False) -> None:
    """Register a backend under a name. force: replace the one of that name."""
    if not (isinstance(backend_cls, type) and issubclass(backend_cls, BaseBackend)):
        raise ArgumentError(
            f"register_backend({name!r}, ...) must be given a class, got {backend_cls!r}",
            hint="pass a subclass of BaseBackend, such as one of RocmBackend",
        )
    if name.lower() in _BACKENDS and not force:
        raise ArgumentError(f"there is already a backend {name!r}", hint="pass force=True to replace it")
    _BACKENDS[name.lower()] = backend_cls
    _make_backend.cache_clear()


def launch_stages(arch: Arch, hints: Mapping[str, Any]) -> list[StageSpec] | None:
    """The stages of the backend that launches are compiled by; None if they are the usual ones."""
    names = list(get_backend(arch=arch.name).pipeline_fragments(compile_hints=dict(hints)))
    usual = stages(arch)
    return None if names == [spec.name for spec in usual] else [stage_of(name, usual) for name in names]


__getattr__ = unknown_name(__name__, globals())

_BACKENDS: dict[str, type[BaseBackend]] = {RocmBackend.name: RocmBackend}


def _class_of(name: str) -> type[BaseBackend]:
    if name not in _BACKENDS:
        raise ArgumentError(f"there is no backend {name!r}", hint=f"there are {', '.join(_BACKENDS)}")
    return _BACKENDS[name]


@lru_cache(maxsize=64)
def _make_backend(name: str, arch: str) -> BaseBackend:
    backend = _class_of(name)
    return backend(backend.make_target(arch))
