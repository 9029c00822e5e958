"""Devices: what a launcher needs of one, and which one a launch goes to.

The device follows the tensors: CPU tensors run on the simulator, HIP tensors on the GPU.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from flydsl.arch import DEFAULT_ARCH
from flydsl.codegen import CodeObject
from flydsl.errors import ArchError, ArgumentError
from flydsl.utils import env

Dim3 = tuple[int, int, int]


@dataclass(slots=True)
class TensorArgument:
    """A tensor as an argument of a launcher, by the name of its parameter."""

    name: str
    tensor: Any

    @property
    def size_bytes(self) -> int:
        """From the first element to the end of the last one that the strides reach."""
        if self.tensor.numel() == 0:
            return 0
        reach = sum((n - 1) * stride for n, stride in zip(self.tensor.shape, self.tensor.stride(), strict=True))
        return int((reach + 1) * self.tensor.element_size())

    @property
    def label(self) -> str:
        """Type and size, for people."""
        sizes = ", ".join(map(str, self.tensor.shape))
        return f"{str(self.tensor.dtype).removeprefix('torch.')}[{sizes}]"


class LoadedCode(ABC):
    """A code object on a device."""

    @abstractmethod
    def launch(
        self, kernel: str, grid: Dim3, block: Dim3, dynamic_lds_bytes: int, stream: int, params: Any, session: Any
    ) -> None:
        """Launch a kernel. params: a C array of pointers to its arguments. session: of the call that it belongs to."""


class Device(ABC):
    """What runs kernels.

    name: for people. A call of a launcher opens a session, gives every tensor an address in it, and launches.
    """

    name: str

    def session(self) -> Any:
        """The state of one call; None where a device needs none."""
        return None

    @abstractmethod
    def address(self, argument: TensorArgument, session: Any) -> int:
        """Where kernels find a tensor."""

    @abstractmethod
    def stream_handle(self, stream: Any) -> int:
        """The raw handle of a stream argument: None, an int, or an object of torch's."""

    @abstractmethod
    def load(self, code: CodeObject) -> LoadedCode:
        """Load a code object. Raises ArchError where the device does not run its architecture."""


_override: ContextVar[Device | None] = ContextVar("flydsl_device", default=None)


@contextmanager
def use_device(device: Device) -> Iterator[Device]:
    """Send the launches inside the `with` block to a device of your own."""
    token = _override.set(device)
    try:
        yield device
    finally:
        _override.reset(token)


def current_device(place: str) -> Device:
    """The device for tensors at a place as torch writes it: "cpu", or "cuda:0" (its name for the first HIP device)."""
    override = _override.get()
    return override if override is not None else _default_device(place)


def preload() -> None:
    """Import what a launch on the simulator needs, some 100 ms: there is time for it while LLVM compiles."""
    import flydsl.runtime.simulated  # noqa: F401


@cache
def _default_device(place: str) -> Device:
    kind, _, index = place.partition(":")
    if kind == "cpu":
        from flydsl.runtime.simulated import SimulatedDevice

        return SimulatedDevice()
    from flydsl.runtime.hip import HipDevice

    return HipDevice(int(index or 0))


# --- the target architecture -----------------------------------------------------------------------------------------


def target_arch(place: str) -> str:
    """The architecture to compile for: `ARCH` if set, else that of the device where the tensors are ("cpu", "cuda:0").

    The simulator is a gfx942 unless `FLYDSL_GPU_ARCH` or `HSA_OVERRIDE_GFX_VERSION` says otherwise.
    """
    explicit = env.text("ARCH")
    if explicit:
        return explicit
    return get_rocm_arch() if place.startswith("cuda") else _arch_from_environment() or DEFAULT_ARCH.name


def get_rocm_arch() -> str:
    """The GPU's architecture: `FLYDSL_GPU_ARCH`, `HSA_OVERRIDE_GFX_VERSION`, `rocm_agent_enumerator`, else gfx942."""
    return _arch_from_environment() or _enumerated_arch() or DEFAULT_ARCH.name


def _arch_from_environment() -> str | None:
    return env.text("FLYDSL_GPU_ARCH") or arch_of_version(env.text("HSA_OVERRIDE_GFX_VERSION"))


def arch_of_version(version: str) -> str | None:
    """ROCm's version notation as a name; the last two parts are hexadecimal digits.

    >>> arch_of_version("9.4.2"), arch_of_version("12.0.1"), arch_of_version("9.0.10")
    ('gfx942', 'gfx1201', 'gfx90a')
    """
    if not version:
        return None
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        raise ArchError(f"HSA_OVERRIDE_GFX_VERSION={version!r} is not of the form 9.4.2")
    major, minor, stepping = map(int, match.groups())
    return "gfx" + f"{major}{minor:x}{stepping:x}"


@lru_cache(maxsize=1)
def _enumerated_arch() -> str | None:
    tool = shutil.which("rocm_agent_enumerator")
    if tool is None:
        return None
    found = subprocess.run([tool], capture_output=True, text=True, timeout=30, check=False).stdout.split()
    # The enumerator also lists the host's CPU, as number 000.
    return next((name for name in found if not name.endswith("000")), None)


def get_rocm_device_count() -> int:
    """How many AMD GPUs torch can see."""
    import torch

    return torch.cuda.device_count() if torch.version.hip else 0


def is_rdna_arch(arch: str | None = None) -> bool:
    """Whether an architecture (by default the GPU's) is of the RDNA family: numbers 10.., 11.. and 120.."""
    return re.match(r"\D+(10|11|120)\d", arch or get_rocm_arch()) is not None


def raw_stream(stream: Any) -> int | None:
    """The handle of a stream: an int, or what torch calls `cuda_stream`; None for None."""
    if stream is None or (isinstance(stream, int) and not isinstance(stream, bool)):
        return stream
    handle = getattr(stream, "cuda_stream", None)
    if handle is None:
        raise ArgumentError(f"{stream!r} is not a stream", hint="fx.Stream(torch.cuda.Stream()), or None")
    return int(handle)
