"""The device runtime of each compile backend, under FlyDSL's names.

Launches find their device by the place of the tensors (`flydsl.runtime.device`). A program that brings a backend of its
own says here what it runs on, and whoever sets `FLYDSL_RUNTIME_KIND` to something that does not fit is told so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from flydsl import env
from flydsl.errors import DeviceError
from flydsl.runtime.rocm import get_rocm_device_count

__all__ = [
    "COMPILE_BACKEND_TO_RUNTIME_KIND",
    "DeviceRuntime",
    "RocmDeviceRuntime",
    "ensure_compile_runtime_compatible",
    "ensure_compile_runtime_pairing_from_env",
    "get_device_runtime",
    "register_compile_runtime_mapping",
    "register_device_runtime",
]

__path__: list[str] = []  # a package to `import`, which then says what of FlyDSL's is not in it

COMPILE_BACKEND_TO_RUNTIME_KIND: dict[str, str] = {"rocm": "rocm"}
_EXTRA_MAPPINGS: dict[str, str] = {}


class PairingError(DeviceError, RuntimeError):
    """A compile backend and a device runtime that do not go together."""


class RuntimeKindError(DeviceError, ValueError):
    """A kind of device runtime, or a backend, that is not registered."""


class DeviceRuntime(ABC):
    """A kind of devices. kind: its name."""

    kind: ClassVar[str]

    @abstractmethod
    def device_count(self) -> int:
        """The number of devices."""

    def current_device_id(self) -> int:
        """The number of the device that the calling thread uses."""
        return 0


class RocmDeviceRuntime(DeviceRuntime):
    """AMD's GPUs, as torch sees them."""

    kind = "rocm"

    def device_count(self) -> int:
        return get_rocm_device_count()

    def current_device_id(self) -> int:
        if not self.device_count():
            return 0
        import torch

        return int(torch.cuda.current_device())


_runtimes: dict[str, type[DeviceRuntime]] = {RocmDeviceRuntime.kind: RocmDeviceRuntime}
_runtime_cls_override: type[DeviceRuntime] | None = None
_instance: DeviceRuntime | None = None


def register_compile_runtime_mapping(compile_backend: str, runtime_kind: str) -> None:
    """Say that what a compile backend makes runs on this kind of device runtime."""
    _EXTRA_MAPPINGS[compile_backend.lower()] = runtime_kind.lower()


def register_device_runtime(runtime_cls: type[DeviceRuntime], *, force: bool = False) -> None:
    """Register a device runtime under its kind. force: replace the one that is in use."""
    global _instance
    if not (isinstance(runtime_cls, type) and issubclass(runtime_cls, DeviceRuntime)):
        raise RuntimeKindError(
            f"a device runtime must be a class derived from DeviceRuntime, got {runtime_cls!r}",
            hint="derive a class from DeviceRuntime",
        )
    if _runtimes.get(runtime_cls.kind, runtime_cls) is not runtime_cls and not force:
        raise PairingError(
            f"there is a device runtime {runtime_cls.kind!r} already", hint="pass force=True to replace it"
        )
    _runtimes[runtime_cls.kind] = runtime_cls
    _instance = None


def _expected(compile_backend: str) -> str:
    found = {**COMPILE_BACKEND_TO_RUNTIME_KIND, **_EXTRA_MAPPINGS}.get(compile_backend.lower())
    if found is None:
        raise RuntimeKindError(
            f"no device runtime is known for the compile backend {compile_backend!r}",
            hint="register_compile_runtime_mapping(backend, kind)",
        )
    return found


def ensure_compile_runtime_compatible(compile_backend_id: str, *, runtime: DeviceRuntime | None = None) -> None:
    """Raise DeviceError unless a device runtime, by default the one in use, runs what a compile backend makes."""
    found, wanted = (runtime or get_device_runtime()).kind, _expected(compile_backend_id)
    if found != wanted:
        raise PairingError(
            f"compile backend {compile_backend_id!r} requires device runtime kind {wanted!r}, not {found!r}"
        )


def ensure_compile_runtime_pairing_from_env(compile_backend_id: str) -> None:
    """Raise DeviceError unless `FLYDSL_RUNTIME_KIND` names the kind that goes with a compile backend."""
    found, wanted = env.text("FLYDSL_RUNTIME_KIND", "rocm").lower(), _expected(compile_backend_id)
    if found != wanted:
        raise PairingError(
            f"compile backend {compile_backend_id!r} does not support device runtime kind {found!r}",
            hint=f"FLYDSL_RUNTIME_KIND={wanted}, or leave it unset",
        )


def get_device_runtime() -> DeviceRuntime:
    """The device runtime that goes with `FLYDSL_COMPILE_BACKEND`. Raises DeviceError if there is none."""
    global _instance
    if _instance is None:
        ensure_compile_runtime_pairing_from_env(env.text("FLYDSL_COMPILE_BACKEND", "rocm"))
        kind = env.text("FLYDSL_RUNTIME_KIND", "rocm").lower()
        if _runtime_cls_override is None and kind not in _runtimes:
            raise RuntimeKindError(f"Unknown FLYDSL_RUNTIME_KIND {kind!r}", hint=f"there is {', '.join(_runtimes)}")
        _instance = (_runtime_cls_override or _runtimes[kind])()
    return _instance
